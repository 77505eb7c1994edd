"""Processor time of every method where the discount is next to one, and `auto` over the best.

    export NUMBA_NUM_THREADS=1                        # ratios that other work does not disturb
    python benchmarks/discount_near_one.py            # all problems
    python benchmarks/discount_near_one.py chain      # those whose name contains "chain"

Chains, cycles, grids, clusters and gambler's ruin, hard, sparse, soft and Tsallis, each to a
tolerance of 1e-7 (from 1 - 1e-7 on: 1e-5) of the largest value that the rewards allow.  Value
iteration and modified policy iteration are stopped after ten times the seconds of the quicker of
the other two.  A line ends with the ratio of `auto` to the best; the last line has the largest.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tsallax import MDP, Hard, NotConverged, Soft, Sparse, Tsallis, solve

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from patient_problems import chain, clusters, cycle, gambler, grid

REGULARIZERS = (Hard(), Sparse(1.0), Sparse(30.0), Soft(0.1), Soft(30.0), Tsallis(1.0, 1.5))
GAPS = (1e-3, 1e-5, 1e-7, 1e-9)
METHODS = ("auto", "policy_iteration", "modified_policy_iteration", "value_iteration")


PROBLEMS: dict[str, Callable[[float], MDP]] = {
    "grid 30": lambda discount: grid(discount, 30),
    "grid 100": lambda discount: grid(discount, 100),
    "chain 300": lambda discount: chain(discount, 300),
    "cycle 200": lambda discount: cycle(discount, 200),
    "clusters 10": lambda discount: clusters(discount, 10),
    "gambler 100": lambda discount: gambler(discount, 100, 20),
}


def seconds(mdp: MDP, regularizer: object, tolerance: float, method: str, limit: float) -> float:
    """The processor time of the best of five solves, infinite where the limit is exceeded."""
    best = np.inf
    for _ in range(5):
        begin = time.process_time()
        try:
            solve(mdp, regularizer, tolerance, method, time_limit=limit)
        except NotConverged:
            return np.inf
        best = min(best, time.process_time() - begin)
    return best


def main(part: str) -> None:
    """Print the table."""
    print(
        f"{'problem':<13}{'1 - gamma':>10}  {'regulariser':<26}", *(f"{m[:9]:>10}" for m in METHODS)
    )
    largest = 0.0
    for name, make in PROBLEMS.items():
        if part not in name:
            continue
        for gap in GAPS:
            mdp = make(1.0 - gap)
            for regularizer in REGULARIZERS:
                bonus = regularizer.alpha * float(regularizer.max_entropy(mdp.max_actions))
                scale = (np.abs(mdp.rewards).max() + bonus) / gap
                tolerance = (1e-7 if gap > 1e-7 else 1e-5) * scale
                found = [seconds(mdp, regularizer, tolerance, m, 100.0) for m in METHODS[:2]]
                found += [
                    seconds(mdp, regularizer, tolerance, m, 10 * min(found)) for m in METHODS[2:]
                ]
                ratio = found[0] / min(found)
                largest = max(largest, ratio)
                cells = " ".join(f"{1e3 * x:8.2f}ms" for x in found)
                print(
                    f"{name:<13}{gap:>10.0e}  {regularizer!s:<26} {cells} {ratio:6.2f}", flush=True
                )
    print(f"largest ratio of auto to the best: {largest:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", default="", help="only problems whose name contains it")
    main(parser.parse_args().part)
