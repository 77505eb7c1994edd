"""Problems of about a hundred states in which value iteration is slow at discounts near one."""

import numpy as np
from scipy.sparse import csr_array

from tsallax import MDP


def chain(discount, n=100):
    """States in a row, moves that fail with 0.2, costs from 1 to 3, no end."""
    transitions = np.zeros((n, 2, n))
    for s in range(n):
        for action, step in enumerate((-1, 1)):
            transitions[s, action, np.clip(s + step, 0, n - 1)] += 0.8
            transitions[s, action, np.clip(s - step, 0, n - 1)] += 0.2
    return MDP(transitions, -np.random.default_rng(0).uniform(1, 3, size=(n, 2)), discount)


def cycle(discount, n=60):
    """States in a circle, one step to either side, random rewards."""
    steps = [np.roll(np.eye(n), shift, axis=1) for shift in (1, -1)]
    return MDP(steps, np.random.default_rng(0).normal(size=(n, 2)), discount)


def grid(discount, n=12):
    """n x n cells, moves that succeed with 0.8, costs from 1 to 3, a terminal corner."""
    transitions = np.zeros((n * n, 4, n * n))
    for s in range(n * n):
        x, y = divmod(s, n)
        for action, (dx, dy) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
            to = np.clip(x + dx, 0, n - 1) * n + np.clip(y + dy, 0, n - 1)
            transitions[s, action, to] += 0.8
            transitions[s, action, s] += 0.2
    costs = np.random.default_rng(0).uniform(1, 3, size=(n * n, 4))
    return MDP(transitions, -costs, discount, terminal=[n * n - 1])


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


def gambler(discount, n=60):
    """Gambler's ruin: stakes up to 10, won with 0.4, a reward of one at the goal n."""
    pairs = [(s, b) for s in range(1, n) for b in range(1, min(s, n - s, 10) + 1)]
    rows = np.zeros((len(pairs), n + 1))
    for i, (s, stake) in enumerate(pairs):
        rows[i, [s + stake, s - stake]] = 0.4, 0.6
    rewards = [0.4 * (s + stake == n) for s, stake in pairs]
    return MDP(csr_array(rows), np.array(rewards), discount, pairs=pairs, terminal=[0, n])


PROBLEMS = (chain, cycle, grid, clusters, gambler)
