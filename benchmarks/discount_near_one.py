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

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.sparse import coo_array, csr_array

from tsallax import MDP, Hard, NotConverged, Soft, Sparse, Tsallis, solve

REGULARIZERS = (Hard(), Sparse(1.0), Sparse(30.0), Soft(0.1), Soft(30.0), Tsallis(1.0, 1.5))
GAPS = (1e-3, 1e-5, 1e-7, 1e-9)
METHODS = ("auto", "policy_iteration", "modified_policy_iteration", "value_iteration")


def grid(n: int, discount: float) -> MDP:
    """n x n cells, moves that succeed with 0.8, costs from 1 to 3, a terminal corner."""
    s = np.arange(n * n)
    x, y = np.divmod(s, n)
    rows, columns, data = [], [], []
    for action, (dx, dy) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
        to = np.clip(x + dx, 0, n - 1) * n + np.clip(y + dy, 0, n - 1)
        for successor, probability in ((to, 0.8), (s, 0.2)):
            rows.append(4 * s + action)
            columns.append(successor)
            data.append(np.full(n * n, probability))
    entries = np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))
    costs = np.random.default_rng(0).uniform(1, 3, size=(n * n, 4))
    return MDP(csr_array(coo_array(entries)), -costs, discount, terminal=[n * n - 1])


def chain(n: int, discount: float) -> MDP:
    """n states in a row, moves that fail with 0.2, costs from 1 to 3, no end."""
    transitions = np.zeros((n, 2, n))
    for s in range(n):
        for action, step in enumerate((-1, 1)):
            transitions[s, action, np.clip(s + step, 0, n - 1)] += 0.8
            transitions[s, action, np.clip(s - step, 0, n - 1)] += 0.2
    return MDP(transitions, -np.random.default_rng(0).uniform(1, 3, size=(n, 2)), discount)


def cycle(n: int, discount: float) -> MDP:
    """n states in a circle, one step to either side, random rewards."""
    steps = [csr_array(np.roll(np.eye(n), shift, axis=1)) for shift in (1, -1)]
    return MDP(steps, np.random.default_rng(0).normal(size=(n, 2)), discount)


def clusters(n: int, discount: float) -> MDP:
    """n groups of 20 states, left with probability 1e-5."""
    rng = np.random.default_rng(0)
    states = 20 * n
    transitions = np.zeros((states, 3, states))
    for s in range(states):
        for action in range(3):
            inside = 20 * (s // 20) + rng.choice(20, size=5, replace=False)
            transitions[s, action, inside] = (1 - 1e-5) * rng.dirichlet(np.ones(5))
            transitions[s, action, rng.integers(states)] += 1e-5
    return MDP(transitions, rng.normal(size=(states, 3)), discount)


def gambler(n: int, discount: float) -> MDP:
    """Gambler's ruin: stakes up to 20, won with 0.4, a reward of one at the goal n."""
    stakes = [(s, b) for s in range(1, n) for b in range(1, min(s, n - s, 20) + 1)]
    pairs = np.array(stakes)
    rows = np.arange(len(pairs))
    entries = (
        np.repeat([0.4, 0.6], len(pairs)),
        (np.tile(rows, 2), np.concatenate([pairs.sum(axis=1), pairs[:, 0] - pairs[:, 1]])),
    )
    transitions = csr_array(coo_array(entries, shape=(len(pairs), n + 1)))
    rewards = 0.4 * (pairs.sum(axis=1) == n)
    return MDP(transitions, rewards, discount, pairs=pairs, terminal=[0, n])


PROBLEMS: dict[str, Callable[[float], MDP]] = {
    "grid 30": lambda discount: grid(30, discount),
    "grid 100": lambda discount: grid(100, discount),
    "chain 300": lambda discount: chain(300, discount),
    "cycle 200": lambda discount: cycle(200, discount),
    "clusters 10": lambda discount: clusters(10, discount),
    "gambler 100": lambda discount: gambler(100, discount),
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
    main(sys.argv[1] if len(sys.argv) > 1 else "")
