"""States from which an episode can be kept from ending, against all deterministic policies."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tsallax import MDP
from tsallax.planning.bellman import kernel_arrays
from tsallax.planning.kernels.end_components import endless_pairs


def random_mdp(seed):
    """A few states with one to three actions, few successors, and ends of both kinds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    pairs, rows, stops = [], [], []
    terminal = rng.random(n) < 0.3
    terminal[rng.integers(n)] = False
    for s in np.flatnonzero(~terminal):
        for a in range(rng.integers(1, 4)):
            stop = float(rng.choice([0.0, 0.0, 0.5, 1.0]))
            row = np.zeros(n)
            row[rng.choice(n, size=rng.integers(1, 3), replace=False)] = 1.0
            pairs.append((int(s), a))
            rows.append(row / row.sum() * (1 - stop))
            stops.append(stop)
    rewards = rng.normal(size=len(pairs))
    return MDP(rows, rewards, 1.0, pairs=pairs, terminal=terminal, termination=stops)


def can_go_on(mdp):
    """The states from which some deterministic policy never ends, by looking at all of them."""
    n = mdp.n_states
    stops = np.zeros(mdp.n_pairs) if mdp.termination is None else mdp.termination
    choices = [range(mdp.pointer[s], mdp.pointer[s + 1]) or [None] for s in range(n)]
    endless = set()
    for chosen in product(*choices):
        reaches = {s for s, i in enumerate(chosen) if i is None or stops[i] > 0}
        steps = [set() if i is None else set(mdp.transitions[[i]].indices) for i in chosen]
        while more := {s for s in range(n) if s not in reaches and steps[s] & reaches}:
            reaches |= more
        endless |= set(range(n)) - reaches
    return endless


@given(st.integers(0, 10**6))
def test_endless_pairs_are_those_of_policies_that_never_end(seed):
    mdp = random_mdp(seed)
    stops = np.zeros(0) if mdp.termination is None else np.array(mdp.termination)
    alive = endless_pairs(kernel_arrays(mdp), stops)
    inside = set(mdp.state_of[alive].tolist())
    assert inside == can_go_on(mdp)
    for i in np.flatnonzero(alive):
        assert set(mdp.transitions[[i]].indices.tolist()) <= inside
