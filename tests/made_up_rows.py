"""Rows made up for tests: runs of every variant with effects that a test plants."""

from functools import cache

import numpy as np

from tsallax.paper.sweep.sweep_rows import SweepRow
from tsallax.paper.sweep.sweep_tasks import ALPHAS, DDPG_VARIANT, REACHER, VARIANTS
from tsallax.paper.tables.cells import Ranking, gather, ranking
from tsallax.paper.tables.verdicts import claims, updates


@cache
def rising(top, count):
    return tuple(np.linspace(top - 40, top, count).round(3).tolist())


def made_up_row(task, variant, actions, seed, greedy, reached, **changes):
    """The row of a run with this greedy return and first episode at the threshold."""
    episodes = {"reacher": 10_000, "pendulum": 2_000}[task.name]
    given = {
        "task": task.name, "algorithm": variant.name, **vars(variant), "actions": actions,
        "seed": seed, "episodes": episodes, "steps": 50 * episodes, "threshold": task.threshold,
        "reached": reached, "final": greedy - 0.5, "greedy": greedy, "greedy_error": 0.1,
        "sampled": greedy - 0.2, "sampled_error": 0.1, "evaluated": 100, "every": 20,
        "returns": rising(round(greedy, 1), episodes // 20), "seconds": 600.0, "agents": 81,
        "config": {"alpha": variant.alpha, "batch_size": 64, "gamma": 0.99},
        "provenance": {"tsallax": "0.1.0", "device": "gpu: H200", "machine": "x", "date": "d"},
    }  # fmt: skip
    return SweepRow(**(given | changes))


def made_up_sweep(task=REACHER, effect=None, seeds=3, noise=0.3, random=0):
    """Runs of everything; `effect` adds to the return, and takes from the episodes."""
    rng = np.random.default_rng(random)
    rows = []
    for k, actions in enumerate(task.actions):
        for variant in VARIANTS:
            plain = (variant.explore, variant.update) == ("epsilon", "hard")
            shift = 1000 * ALPHAS.index(variant.alpha) * plain
            for seed in range(seeds):
                more = effect(variant, k) if effect else 0.0
                greedy = task.threshold + 1.5 + more + noise * rng.normal()
                reached = int(1500 - 300 * more + 100 * rng.normal())
                row = made_up_row(task, variant, actions, seed + shift, float(greedy), reached)
                rows.append(row)
    rows += [
        made_up_row(task, DDPG_VARIANT, None, s, task.threshold - 5 + float(rng.normal()), None)
        for s in range(6)
    ]
    return rows


def judged(rows, task=REACHER, ranked=False):
    """The claims about these rows, by their statement; those on the top five if `ranked`."""
    data = gather(task, rows)
    order = ranking(data) if ranked else Ranking((), np.zeros(0), np.zeros(0), None)
    return {claim.statement: claim for claim in (*claims(data, order), *updates(data))}


def table(result, name):
    """The rows of one table of a result."""
    return next(t.rows for t in result.tables if t.name == f"{result.name}-{name}")
