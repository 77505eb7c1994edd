"""Probabilities are rescaled within float32 accuracy and refused beyond it, pair by pair."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tsallax import MDP, Hard, InvalidInput, solve
from tsallax.planning import forms, validation

SKEW = np.random.default_rng(0).dirichlet(np.ones(3), (3, 3))
"""Transitions (S, A, S) with as many actions as states, whose sums over other axes are not one."""


def layout_of(states: int, actions: int) -> forms.Layout:
    return forms.read_layout(None, (states * actions, states), actions, np.zeros(states, bool))


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 30), density=st.floats(0, 1))
def test_row_sums_are_those_of_the_dense_matrix(seed, rows, density):
    rng = np.random.default_rng(seed)
    matrix = csr_array(rng.random((rows, 5)) * (rng.random((rows, 5)) < density))
    sums = validation.row_sums(matrix.data, matrix.indptr)
    np.testing.assert_allclose(sums, matrix.toarray().sum(1), atol=1e-14)


@pytest.mark.parametrize("blocks", [1, 2])
def test_rows_close_to_one_are_rescaled_and_the_given_matrix_is_not_changed(blocks, monkeypatch):
    monkeypatch.setattr(validation, "BLOCK", 4 // blocks)
    given_rows = csr_array(np.array([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5000002], [1.0, 0.0]]))
    data, before = given_rows.data, given_rows.data.copy()
    rows, termination = validation.distributions(given_rows, True, None, layout_of(2, 2))
    assert termination is None
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=4e-16)
    np.testing.assert_array_equal(data, before)
    np.testing.assert_array_equal(rows.toarray()[:2], [[0.5, 0.5], [0.25, 0.75]])


def test_only_arrays_that_nobody_can_write_to_are_shared():
    layout = layout_of(2, 1)
    values = np.array([1.0, 2.0])
    for view in (values, forms.frozen(values), np.broadcast_to(values[:, None], (2, 1))):
        assert not np.shares_memory(validation.per_pair(view, layout), values)
    values.flags.writeable = False
    assert np.shares_memory(validation.per_pair(values, layout), values)


def ring(states: int, actions: int) -> np.ndarray:
    """Transitions (S, A, S): action a moves a states onward, with a chance to stay."""
    eye = np.eye(states)
    return np.stack([0.5 * eye + 0.5 * np.roll(eye, a, axis=1) for a in range(actions)], 1)


RING = ring(4, 3)


@pytest.mark.parametrize(
    ("wrong", "message", "remedy"),
    [
        (
            RING.transpose(1, 0, 2),
            r"\(A, S, S\).* numpy.transpose\(transitions, \(1, 0, 2\)\)",
            (1, 0, 2),
        ),
        (
            RING.transpose(0, 2, 1),
            r"\(S, S, A\).* numpy.transpose\(transitions, \(0, 2, 1\)\)",
            (0, 2, 1),
        ),
        (SKEW.transpose(2, 1, 0), "transpose the matrix of each action", (2, 1, 0)),
        (SKEW.transpose(0, 2, 1), r"pass numpy.transpose\(transitions, \(0, 2, 1\)\)", (0, 2, 1)),
    ],
)
def test_transitions_in_another_order_are_refused_with_the_remedy(wrong, message, remedy):
    with pytest.raises(InvalidInput, match=message) as caught:
        MDP(wrong, np.zeros(wrong.shape[:2]), 0.9)
    assert "\n" not in str(caught.value)
    right = wrong.transpose(remedy)
    MDP(right, np.zeros(right.shape[:2]), 0.9)


def test_a_list_of_matrices_by_action_is_the_array_with_its_axes_exchanged():
    by_action = RING.transpose(1, 0, 2)
    one, other = (MDP(form, np.zeros((4, 3)), 0.9) for form in (list(by_action), RING))
    assert (one.transitions != other.transitions).nnz == 0


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        (np.zeros((3, 4)), r"it looks like \(A, S\): pass rewards.T"),
        (np.zeros((3, 4, 4)), r"\(A, S, S\).* pass numpy.transpose\(rewards, \(1, 0, 2\)\)"),
    ],
)
def test_rewards_in_another_order_are_refused_with_the_remedy(rewards, message):
    with pytest.raises(InvalidInput, match=message):
        MDP(RING, rewards, 0.9)


def test_an_action_forbidden_by_its_reward_is_to_be_left_out():
    transitions, rewards = RING, np.zeros((4, 3))
    rewards[2, 1] = -np.inf
    with pytest.raises(InvalidInput, match=r"pairs=numpy.argwhere\(rewards > -numpy.inf\)"):
        MDP(transitions, rewards, 0.9)
    has = rewards > -np.inf
    assert MDP(transitions[has], rewards[has], 0.9, pairs=np.argwhere(has)).n_pairs == 11
    by_successor = np.broadcast_to(rewards[:, :, None], (4, 3, 4))
    for form in (by_successor, csr_array(by_successor.reshape(12, 4))):
        with pytest.raises(InvalidInput, match="state 2, action 1 is not finite; leave out an act"):
            MDP(transitions, form, 0.9)
    rewards[2, 1] = np.nan
    with pytest.raises(InvalidInput, match=r"is not finite: nan$"):
        MDP(transitions, rewards, 0.9)


def test_probabilities_that_leave_no_room_for_the_termination_are_refused_with_the_remedy():
    transitions = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    with pytest.raises(InvalidInput, match=r"sum to 1\.5, .* multiply them by 1 - term"):
        MDP(transitions, [[1.0], [0.0]], 0.9, termination=[[0.5], [0.5]])
    mdp = MDP(0.5 * transitions, [[1.0], [0.0]], 0.9, termination=[[0.5], [0.5]])
    # V(0) = 1 + 0.9 (0.25 V(0) + 0.25 V(1)), V(1) = 0
    assert abs(solve(mdp, Hard()).value[0] - 1.0 / 0.775) < 1e-6


@pytest.mark.parametrize("goal", [10.0, -10.0])
def test_an_unusual_reward_of_a_terminal_state_is_ignored_with_a_warning(goal):
    transitions = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    message = f"the reward {goal} of terminal state 1 .'goal'. is ignored: give it to the pairs"
    rewards, names = [[0.0, 0.0], [goal, 0.0]], ["start", "goal"]
    with pytest.warns(UserWarning, match=message) as caught:
        MDP(transitions, rewards, 0.9, terminal=["goal"], state_names=names)
    assert caught[0].filename == __file__


def test_rewards_of_terminal_states_like_those_of_others_are_ignored_without_a_warning():
    transitions = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mdp = MDP(transitions, [[-1.0, -2.0], [-1.0, 0.0]], 0.9, terminal=[1])
    assert solve(mdp, Hard()).value.tolist() == [-1.0, 0.0]


def test_rows_of_pairs_are_not_taken_for_those_of_terminal_states():
    rewards = [[0.0, 5.0, 5.0], [1.0, 2.0, 3.0], [-9.0, 9.0, 9.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mdp = MDP(np.eye(3), rewards, 0.9, pairs=[[0, 0], [0, 1], [1, 0]], terminal=[2])
    assert mdp.rewards.tolist() == [0.0, 2.0, 9.0]
