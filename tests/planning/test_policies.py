"""Policies in every accepted form are the same policy; what is none is refused by name."""

import numpy as np
import pytest

from planning_problems import BY_NAME, Problem, Row, puterman_two_state, random_policy
from solution_checks import every_problem
from tsallax import InvalidInput
from tsallax.planning.policies import read_policy, sum_by_state


@every_problem
def test_tables_and_pair_vectors_are_the_same_policy(problem):
    mdp = problem.mdp()
    policy = random_policy(mdp, 2)
    found = read_policy(mdp, policy)
    assert np.array_equal(found, read_policy(mdp, mdp.table(policy)))
    np.testing.assert_allclose(found, policy, rtol=1e-15)
    np.testing.assert_allclose(sum_by_state(mdp, found)[~mdp.terminal], 1, rtol=1e-15)


@every_problem
def test_integers_are_a_deterministic_policy(problem):
    mdp = problem.mdp()
    rng = np.random.default_rng(3)
    actions, policy = np.zeros(mdp.n_states, int), np.zeros(mdp.n_pairs)
    for s in np.flatnonzero(~mdp.terminal):
        pair = rng.integers(mdp.pointer[s], mdp.pointer[s + 1])
        actions[s] = mdp.action_of[pair]
        policy[pair] = 1.0
    assert np.array_equal(read_policy(mdp, actions), policy)


@every_problem
def test_a_row_that_does_not_sum_to_one_is_refused_by_name(problem):
    mdp = problem.mdp()
    policy = random_policy(mdp, 5)
    state = int(np.flatnonzero(~mdp.terminal)[-1])
    policy[mdp.pointer[state]] += 0.01
    for given_policy in (policy, mdp.table(policy, 0.0)):
        with pytest.raises(InvalidInput, match=rf"state {state}\b") as caught:
            read_policy(mdp, given_policy)
        assert "\n" not in str(caught.value)


def test_mass_on_a_missing_action_is_refused_by_name():
    mdp = puterman_two_state().mdp()
    for mass in (0.5, -0.5, 1e-3, np.nan):
        with pytest.raises(InvalidInput, match="state 1"):
            read_policy(mdp, np.array([[0.5, 0.5], [1.0 - mass, mass]]))
        with pytest.raises(InvalidInput, match="state 1"):
            read_policy(mdp, np.array([[0.5, 0.5], [1.0, mass]]))
    with pytest.raises(InvalidInput, match="state 1"):
        read_policy(mdp, np.array([0, 1]))


def test_masses_on_missing_actions_that_cancel_are_refused():
    mdp = Problem("gaps", 2, (Row(0, 0, 1.0, {1: 1.0}), Row(1, 2, 1.0, {0: 1.0})), 0.9).mdp()
    with pytest.raises(InvalidInput, match="state 0"):
        read_policy(mdp, np.array([[1.0, 0.5, -0.5], [0.0, 0.0, 1.0]]))


def test_rows_of_a_table_for_terminal_states_are_ignored():
    mdp = BY_NAME["ladder-5"].mdp()
    assert np.array_equal(read_policy(mdp, np.ones((5, 1))), read_policy(mdp, np.ones(4)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.25])
def test_a_probability_that_is_negative_or_not_finite_is_refused(bad):
    mdp = puterman_two_state().mdp()
    with pytest.raises(InvalidInput, match="state 0"):
        read_policy(mdp, np.array([bad, 1 - bad, 1.0]))


def test_a_policy_of_the_wrong_shape_is_refused():
    mdp = BY_NAME["garnet"].mdp()
    for shape in ((mdp.n_pairs + 1,), (mdp.n_states, mdp.n_actions + 1), (2, 2, 2), ()):
        with pytest.raises(InvalidInput, match="shape"):
            read_policy(mdp, np.ones(shape))


def test_an_action_outside_the_range_is_refused():
    mdp = BY_NAME["garnet"].mdp()
    for action in (-1, mdp.n_actions):
        actions = np.zeros(mdp.n_states, int)
        actions[2] = action
        with pytest.raises(InvalidInput, match="state 2"):
            read_policy(mdp, actions)


@pytest.mark.parametrize("policy", [[[0, 1], [1], [1]], "stay"], ids=str)
def test_what_is_no_array_of_numbers_is_refused(policy):
    with pytest.raises(InvalidInput, match="policy"):
        read_policy(puterman_two_state().mdp(), policy)
