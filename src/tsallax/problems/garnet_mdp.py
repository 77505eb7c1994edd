"""Garnet: generic average random MDPs, of a given size and branching."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP


def garnet(
    states: int,
    actions: int,
    branching: int,
    discount: float = 0.95,
    seed: int | np.random.Generator = 0,
) -> MDP:
    """Draw a random MDP in which each pair has `branching` successors.

    The successors of a pair are drawn without replacement, their probabilities are the spacings
    of branching - 1 uniform points on [0, 1] (uniform on the simplex), and r(s,a) is uniform on
    [0, 1). The same seed gives the same MDP.

    Args:
        states: number of states.
        actions: number of actions of every state.
        branching: number of successors of every pair, at most `states`.
        discount: γ in [0, 1).
        seed: seed or generator of the randomness.

    >>> garnet(100, 4, 5)
    MDP(100 states, 4 actions, 400 pairs, 2000 transitions, discount 0.95, 0.0 MB)
    """
    states, actions = checks.count("states", states), checks.count("actions", actions)
    branching = checks.count("branching", branching)
    if branching > states:
        limits = f"1 to {states}, the number of states"
        raise InvalidInput(f"branching must be {limits}, got {branching}")
    rng = checks.generator(seed)
    pairs = states * actions
    successors = _subsets(rng, pairs, states, branching)
    cuts = np.ones((pairs, branching))
    cuts[:, :-1] = np.sort(rng.random((pairs, branching - 1)), axis=1)
    chances = np.diff(cuts, axis=1, prepend=0.0)
    starts = np.arange(0, pairs * branching + 1, branching)
    transitions = csr_array((chances.ravel(), successors.ravel(), starts), shape=(pairs, states))
    return MDP(transitions, rng.random((states, actions)), discount)


def _subsets(rng: np.random.Generator, rows: int, n: int, k: int) -> NDArray[np.int32]:
    """Draw k of the numbers 0 to n-1 for each row, sorted, all subsets being equally likely."""
    chosen = np.empty((rows, k), np.int32)
    if k * k > 4 * n:
        block = max(1, (1 << 21) // n)
        for first in range(0, rows, block):
            keys = rng.random((min(block, rows - first), n))
            chosen[first : first + block] = np.argpartition(keys, k - 1, axis=1)[:, :k]
    else:
        for i, last in enumerate(range(n - k, n)):
            drawn = rng.integers(0, last, rows, np.int32, endpoint=True)
            taken = (chosen[:, :i] == drawn[:, None]).any(axis=1)
            chosen[:, i] = np.where(taken, last, drawn)
    chosen.sort(axis=1)
    return chosen
