"""Problems in which value iteration is slow at discounts near one, as functions of the discount.

`benchmarks/discount_near_one.py` solves larger ones.
"""

import numpy as np
from scipy.sparse import coo_array, csr_array

from tsallax import MDP


def chain(discount, n=100):
    """n states in a row, moves that fail with 0.2, costs from 1 to 3, no end."""
    transitions = np.zeros((n, 2, n))
    for s in range(n):
        for action, step in enumerate((-1, 1)):
            transitions[s, action, np.clip(s + step, 0, n - 1)] += 0.8
            transitions[s, action, np.clip(s - step, 0, n - 1)] += 0.2
    return MDP(transitions, -np.random.default_rng(0).uniform(1, 3, size=(n, 2)), discount)


def cycle(discount, n=60):
    """n states in a circle, one step to either side, random rewards."""
    steps = [csr_array(np.roll(np.eye(n), shift, axis=1)) for shift in (1, -1)]
    return MDP(steps, np.random.default_rng(0).normal(size=(n, 2)), discount)


def grid(discount, n=12):
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


def clusters(discount, n=5):
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


def gambler(discount, n=60, largest_stake=10):
    """Gambler's ruin: stakes won with 0.4, a reward of one at the goal n."""
    stakes = range(1, largest_stake + 1)
    pairs = np.array([(s, b) for s in range(1, n) for b in stakes if b <= min(s, n - s)])
    rows, won = np.arange(len(pairs)), pairs.sum(axis=1)
    entries = (
        np.repeat([0.4, 0.6], len(pairs)),
        (np.tile(rows, 2), np.concatenate([won, pairs[:, 0] - pairs[:, 1]])),
    )
    transitions = csr_array(coo_array(entries, shape=(len(pairs), n + 1)))
    return MDP(transitions, 0.4 * (won == n), discount, pairs=pairs, terminal=[0, n])


PROBLEMS = (chain, cycle, grid, clusters, gambler)
