"""Probabilities of improvement: ways to explore, and ways to update, against each other.

Runs are compared with runs that differ in this one way alone: the same number of actions, the same
alpha, the same other half of the algorithm.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tsallax.paper.result import Line
from tsallax.paper.tables.cells import DDPG_CELL, Cell, SweepRuns
from tsallax.paper.tables.formatting import EXPLORERS, UPDATES
from tsallax.statistics import (
    INCONCLUSIVE,
    Array,
    Estimate,
    earlier,
    has_interval,
    higher,
    improvement,
    iqm_of,
)

FACTORS: Mapping[str, Mapping[str, str]] = {"explore": EXPLORERS, "update": UPDATES}
FACTOR_NAMES = {"explore": "exploration", "update": "update"}
MEASURES = ("return", "episodes")


@dataclass(frozen=True, eq=False)
class Improvement:
    """The probability that one way to explore or update, x, does better than another, y.

    `won` and `lost` are the shares of pairs of runs that x won and lost; the others are undecided.
    """

    factor: str
    """Either "explore" or "update"."""
    x: str
    y: str
    """May be "DDPG"."""
    measure: str
    """Either "return", where higher is better, or "episodes" to the threshold."""
    actions: tuple[int, ...]
    chance: Estimate
    """Ties count half; without an interval where it would have no width."""
    verdict: str
    """Whether the chance is above one half."""
    won: float
    lost: float
    matches: int
    """The number of pairs of cells."""


def improvement_between(
    sweep: SweepRuns, factor: str, x: str, y: str, measure: str, actions: Sequence[int]
) -> Improvement | None:
    """Compare x with y at these numbers of actions; None where nothing matches.

    Cells with one run are left out where others have more.  So are, of episodes, matches in which
    no run reached the threshold; where this is all of them, they are undecided.
    """
    pairs: list[tuple[Cell, Cell]] = []
    for n in actions:
        if y == "DDPG":
            pairs += [
                (cell, DDPG_CELL)
                for cell in sweep.cells_of_kind(factor, x, n)
                if DDPG_CELL in sweep.cells
            ]
        else:
            pairs += sweep.matches(factor, x, y, n)
    if not pairs:
        return None
    pairs = _with_several_runs(sweep, pairs)
    runs, better = sweep.greedy, higher
    if measure == "episodes":
        pairs = [pair for pair in pairs if _reached(sweep, pair)] or pairs
        runs, better = {cell: np.column_stack(t) for cell, t in sweep.times.items()}, earlier
    chance = improvement(runs, sweep.weights, pairs, better)
    verdict = chance.verdict(0.5)
    if chance.low == chance.high:
        # Without spread over the draws only a comparison won or lost by all runs is conclusive.
        verdict = verdict if chance.value in (0.0, 1.0) else INCONCLUSIVE
        chance = Estimate(chance.value)
    scores = [better(runs[a], runs[b]) for a, b in pairs]
    won, lost = (float(np.mean([np.mean(s == end) for s in scores])) for end in (1.0, 0.0))
    compared = tuple(n for n in actions if any(cell[1] == n for cell, _ in pairs))
    return Improvement(factor, x, y, measure, compared, chance, verdict, won, lost, len(pairs))


def _reached(sweep: SweepRuns, cells: Iterable[Cell]) -> bool:
    return any(bool(sweep.times[cell].reached.any()) for cell in cells)


def leads(sweep: SweepRuns, x: str, y: str, measure: str) -> dict[int, tuple[float, Array | None]]:
    """The mean lead of exploring as x over y, and its draws, by number of actions.

    Only algorithms with runs at all of these numbers count, so that the leads differ in nothing
    else.  Of episodes, a run that never reached the threshold counts with those of the
    longest run, and numbers of actions where none did are left out.
    """
    pairs = {n: _with_several_runs(sweep, sweep.matches("explore", x, y, n)) for n in sweep.actions}
    names = {n: {(p[0], q[0]) for p, q in found} for n, found in pairs.items() if found}
    common = set.intersection(*names.values()) if names else set()
    if not common:
        return {}
    runs, sign = (sweep.greedy, 1.0) if measure == "return" else (sweep.capped_episodes, -1.0)
    found: dict[int, tuple[float, Array | None]] = {}
    for n in names:
        both = [((p, n), (q, n)) for p, q in sorted(common)]
        if measure == "episodes" and not any(_reached(sweep, pair) for pair in both):
            continue
        value = np.mean([runs[p].mean() - runs[q].mean() for p, q in both])
        known = has_interval(runs, both)
        drawn = [sweep.weights[p] @ runs[p] - sweep.weights[q] @ runs[q] for p, q in both]
        found[n] = float(sign * value), sign * np.mean(drawn, axis=0) if known else None
    return found


def _with_several_runs(sweep: SweepRuns, pairs: list[tuple[Cell, Cell]]) -> list[tuple[Cell, Cell]]:
    """The pairs with two runs or more on both sides; all of them where there is none."""
    many = [pair for pair in pairs if all(len(sweep.cells[cell]) > 1 for cell in pair)]
    return many or pairs


def all_improvements(sweep: SweepRuns) -> list[Improvement]:
    """All pairs of ways at each number of actions, in both measures, where any was decided."""
    found = [
        improvement_between(sweep, factor, x, y, measure, [n])
        for factor, ways in FACTORS.items()
        for measure in MEASURES
        for n in sweep.actions
        for x, y in combinations(ways, 2)
    ]
    return [one for one in found if one and (one.measure == "return" or one.won + one.lost)]


def improvement_rows(found: Sequence[Improvement]) -> tuple[Line, ...]:
    """The comparisons as rows of a table."""
    return tuple(
        {
            "factor": FACTOR_NAMES[one.factor],
            "better": one.x,
            "than": one.y,
            "actions": one.actions[0],
            "measure": one.measure,
            "probability": round(one.chance.value, 4),
            "low": _cell(one.chance.low),
            "high": _cell(one.chance.high),
            "matched_cells": one.matches,
        }
        for one in found
    )


def group_rows(sweep: SweepRuns) -> tuple[Line, ...]:
    """Each way to explore or update at each number of actions: return and runs that learned."""
    rows: list[Line] = []
    for factor, ways in FACTORS.items():
        for n in sweep.actions:
            for way in ways:
                cells = sweep.cells_of_kind(factor, way, n)
                if not cells:
                    continue
                middle = iqm_of(sweep.greedy, sweep.weights, cells)
                reached = [sweep.times[cell].reached for cell in dict.fromkeys(cells)]
                rows.append(
                    {
                        "factor": FACTOR_NAMES[factor],
                        "way": way,
                        "actions": n,
                        "algorithms": len(dict.fromkeys(cells)),
                        "runs": sum(map(len, reached)),
                        "iqm_of_greedy_return": round(middle.value, 4),
                        "low": _cell(middle.low),
                        "high": _cell(middle.high),
                        "runs_that_reached_the_threshold": int(sum(part.sum() for part in reached)),
                    }
                )
    return tuple(rows)


def _cell(value: float | None) -> float | str:
    return "" if value is None else round(value, 4)
