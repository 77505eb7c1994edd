"""Every form of an MDP is read into one row for each state-action pair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from refusals import refused
from tsallax import MDP, InvalidInput
from tsallax.planning import forms
from tsallax.planning.names import Index


@given(seed=st.integers(0, 10**6), states=st.integers(1, 6), actions=st.integers(1, 4))
def test_matrices_of_actions_are_interleaved_by_state(seed, states, actions):
    rng = np.random.default_rng(seed)
    shape = (states, actions, states)
    dense = rng.random(shape) * (rng.random(shape) < 0.5)
    matrices = [coo_array(dense[:, a]) if a % 2 else dense[:, a] for a in range(actions)]
    rows = forms.interleave(matrices, "transitions")
    np.testing.assert_array_equal(rows.toarray(), dense.reshape(-1, states))
    assert rows.indices.dtype == rows.indptr.dtype == np.int32


def test_a_matrix_that_can_be_shared_is_not_copied():
    matrix = csr_array(np.eye(3))
    rows, actions, shared = forms.read_rows(matrix, None)
    assert actions == 1
    assert shared
    assert np.shares_memory(rows.data, matrix.data)
    assert not forms.read_rows(np.eye(3), None)[2]


def test_pairs_are_sorted_by_state_and_action_without_terminal_states():
    terminal = np.array([False, False, True])
    pairs = [(1, 4), (0, 0), (2, 0), (1, 1)]
    states = Index("state", 3, ("a", "b", "c"))
    layout = forms.read_layout(pairs, (4, 3), 0, terminal).with_names(states, None)
    assert layout.state.tolist() == [0, 1, 1]
    assert layout.action.tolist() == [0, 1, 4]
    assert layout.order.tolist() == [1, 3, 0]
    assert layout.n_actions == 5
    assert forms.require_actions(layout, terminal).tolist() == [0, 1, 3, 3]
    assert layout.place(2) == "state 1 ('b'), action 4"


def test_a_frozen_view_leaves_the_array_writeable():
    array = np.zeros(2)
    view = forms.frozen(array)
    array[0] = 1.0
    assert view[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 2.0


def test_as_many_dense_arrays_as_states_are_refused_since_they_could_be_of_either():
    dense = np.random.default_rng(0).dirichlet(np.ones(3), (3, 3))
    by_state, by_action = list(dense), [dense[:, a] for a in range(3)]
    message = r"could have one for each action or one for each state: pass numpy.stack\(.*axis=1"
    for matrices in (by_state, by_action):
        with pytest.raises(InvalidInput, match=message):
            MDP(matrices, np.zeros((3, 3)), 0.9)
        with pytest.raises(InvalidInput, match=message):
            MDP(dense, matrices, 0.9)
    expected = MDP(dense, np.zeros((3, 3)), 0.9).transitions
    for form in (np.stack(by_state), np.stack(by_action, axis=1)):
        assert (MDP(form, np.zeros((3, 3)), 0.9).transitions != expected).nnz == 0


def test_a_list_of_one_array_for_each_state_is_refused_with_the_remedy():
    dense = np.random.default_rng(0).dirichlet(np.ones(3), (3, 2))
    with pytest.raises(InvalidInput, match=r"one for each state: pass numpy.stack\(transitions\)"):
        MDP(list(dense), np.zeros((3, 2)), 0.9)


def test_a_mask_of_integers_is_not_taken_for_indices():
    states = Index("state", 4, None)
    for mask, state in (([0, 0, 0, 1], 0), ([0, 1, 1, 1], 1), ([0, 0, 0, 0], 0)):
        with refused(f"state {state} twice: pass numpy.array(terminal, bool), if it is a mask"):
            forms.read_terminal(np.array(mask), states)
    with pytest.raises(InvalidInput, match=r"terminal names state 2 twice$"):
        forms.read_terminal([2, 3, 2], states)
    assert forms.read_terminal([3, 0], states).tolist() == [True, False, False, True]
