"""Seconds of `solve_path` for 20 alphas, and those of 20 separate solves with and without gaps.

    python benchmarks/alpha_paths.py

Alphas from a thousandth of the largest reward to the largest reward, to a tolerance of 1e-6.  The
ratios are separate solves over the path, and separate solves with `gap_certificate`, which the path
includes, over the path.  Best of three.  Also the sweeps of U and, in brackets, those of fixed
policies, of the path with its gaps and of the solves: they are the same whatever else runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from tsallax import MDP, Sparse, gap_certificate, problems, solve, solve_path
from tsallax.planning.bellman import Bellman

PROBLEMS = {
    "garnet": lambda: problems.garnet(10_000, 10, 10, discount=0.99, seed=0),
    "maze": lambda: problems.maze(100, seed=1),
    "unicycle": problems.unicycle,
    "multigoal": problems.multigoal,
}


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """The least of three durations, and the result."""
    best, result = np.inf, None
    for _ in range(3):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def sweeps(function: Callable[[], Any]) -> str:
    """The sweeps of U and, in brackets, those of fixed policies."""
    made = []

    def sweep(*arguments: Any, plain: Any = Bellman.sweep) -> Any:
        made.append((1, 0))
        return plain(*arguments)

    def policy_sweeps(*arguments: Any, plain: Any = Bellman.policy_sweeps) -> Any:
        found = plain(*arguments)
        made.append((0, found[1]))
        return found

    with patch.multiple(Bellman, sweep=sweep, policy_sweeps=policy_sweeps):
        function()
    return "{} ({})".format(*np.sum(made, 0))


def solve_each(mdp: MDP, alphas: np.ndarray) -> list[Any]:
    """Separate solves."""
    return [solve(mdp, Sparse(alpha)) for alpha in alphas.tolist()]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print(
        "problem    path s  solves s  gaps s  solves/path  (solves + gaps)/path"
        "  sweeps of path   of solves"
    )
    for name, make in PROBLEMS.items():
        mdp = make()
        alphas = np.geomspace(1e-3, 1.0, 20) * np.abs(mdp.rewards).max()
        solve_path(mdp, alphas[:2])  # compile
        together, apart = partial(solve_path, mdp, alphas), partial(solve_each, mdp, alphas)
        path, _ = seconds(together)
        solves, found = seconds(apart)
        gaps, _ = seconds(lambda: [gap_certificate(mdp, solution) for solution in found])  # noqa: B023
        print(
            f"{name:<10} {path:6.3f} {solves:9.3f} {gaps:7.3f} {solves / path:12.2f} "
            f"{(solves + gaps) / path:21.2f} {sweeps(together):>15} {sweeps(apart):>11}",
            flush=True,
        )
