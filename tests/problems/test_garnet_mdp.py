"""Garnet MDPs are drawn from their distribution and built in little memory."""

import itertools
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from mdp_checks import assert_stochastic
from tsallax.errors import InvalidInput
from tsallax.problems import garnet


@given(
    states=st.integers(1, 60),
    actions=st.integers(1, 4),
    share=st.floats(0, 1),
    seed=st.integers(0, 10**6),
)
def test_garnet_pairs_have_exactly_the_asked_for_successors(states, actions, share, seed):
    branching = max(1, round(share * states))
    mdp = garnet(states, actions, branching, seed=seed)
    assert (mdp.n_states, mdp.n_actions, mdp.n_pairs) == (states, actions, states * actions)
    assert (np.diff(mdp.transitions.indptr) == branching).all()
    assert_stochastic(mdp)
    assert ((mdp.rewards >= 0) & (mdp.rewards < 1)).all()


@pytest.mark.parametrize(("states", "branching"), [(12, 3), (9, 8), (40, 4)])
def test_garnet_draws_all_successors_alike_and_probabilities_from_the_simplex(states, branching):
    mdp = garnet(states, 3000 // states * 10, branching, seed=5)
    seen = np.bincount(mdp.transitions.indices, minlength=states)
    assert chisquare(seen).pvalue > 1e-3
    firsts = mdp.transitions.data[mdp.transitions.indptr[:-1]]
    assert kstest(firsts, lambda x: 1 - (1 - x) ** (branching - 1)).pvalue > 1e-3
    assert kstest(mdp.rewards, "uniform").pvalue > 1e-3


def test_garnet_draws_all_subsets_alike():
    rows = garnet(6, 1000, 2, seed=1).transitions.indices.reshape(-1, 2)
    counts = Counter(map(tuple, rows.tolist()))
    assert set(counts) == set(itertools.combinations(range(6), 2))
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_garnet_is_reproducible_and_quick():
    start = time.process_time()
    mdp = garnet(10_000, 10, 10, discount=0.99)
    assert time.process_time() - start < 2.0
    assert mdp.transitions.nnz == 1_000_000
    again, other = garnet(10_000, 10, 10), garnet(10_000, 10, 10, seed=1)
    np.testing.assert_array_equal(mdp.transitions.data, again.transitions.data)
    assert (mdp.transitions.indices != other.transitions.indices).any()
    drawn = garnet(50, 2, 3, seed=np.random.default_rng(0))
    np.testing.assert_array_equal(garnet(50, 2, 3).rewards, drawn.rewards)


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ((0, 2, 1), {}, "states must be an integer of at least 1, got 0"),
        ((5, 0, 1), {}, "actions must be an integer of at least 1, got 0"),
        ((5, 2, 6), {}, "branching must be 1 to 5"),
        ((5, 2, 0), {}, "branching must be an integer of at least 1"),
        ((5, 2, 2), {"seed": -1}, "seed must be an integer of at least 0 .* got -1"),
        ((5, 2, 2), {"discount": 1.5}, "discount must be"),
    ],
)
def test_unusable_parameters_are_named(sizes, options, message):
    with pytest.raises(InvalidInput, match=message):
        garnet(*sizes, **options)
