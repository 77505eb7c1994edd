"""Expectations over transitions against SciPy's products."""

import numpy as np
import pytest

from planning_problems import BY_NAME
from tsallax.planning.bellman import kernel_arrays
from tsallax.planning.kernels.mdp_arrays import action_values, best_action, row_values


@pytest.mark.parametrize("name", ["garnet", "garnet-ragged", "terminal-ragged", "ending"])
def test_action_values_and_their_maxima_are_those_of_a_sparse_product(name):
    mdp = BY_NAME[name].mdp()
    v = np.random.default_rng(0).normal(size=mdp.n_states)
    arrays, found = kernel_arrays(mdp), np.empty(mdp.n_pairs)
    action_values(arrays, v, found)
    expected = mdp.rewards + mdp.discount * (mdp.transitions @ v)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
    row = np.empty(mdp.max_actions)
    for s in np.flatnonzero(~mdp.terminal):
        pairs = slice(mdp.pointer[s], mdp.pointer[s + 1])
        assert row_values(arrays, s, v, row) == found[pairs].max()
        assert np.array_equal(row[: len(found[pairs])], found[pairs])
        value, pair = best_action(arrays, s, v)
        assert (value, pair) == (found[pairs].max(), mdp.pointer[s] + found[pairs].argmax())


def test_arrays_are_shared_and_unsigned():
    mdp = BY_NAME["garnet"].mdp()
    arrays = kernel_arrays(mdp)
    assert np.shares_memory(arrays.data, mdp.transitions.data)
    assert np.shares_memory(arrays.indices, mdp.transitions.indices)
    assert {x.dtype.kind for x in (arrays.indptr, arrays.indices, arrays.pointer)} == {"u"}
