"""Policies in every accepted form are the same policy; what is none is refused by name."""

import numpy as np
import pytest

from planning_problems import BY_NAME, Problem, Row, puterman_two_state, random_policy
from solution_checks import every_problem
from tsallax import MDP, Hard, InvalidInput, Sparse, evaluate, solve
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


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([[0.5, 0.5], [1.01, 0.0]], r"state 1 sums to 1\.01"),
        (np.array([0.5, 0.51, 1.0]), r"state 0 sums to 1\.01"),
        *(([[0.5, 0.5], [1.0 - mass, mass]], "state 1") for mass in (0.5, -0.5, 1e-3, np.nan)),
        *(([[0.5, 0.5], [1.0, mass]], "state 1") for mass in (0.5, -0.5, 1e-3, np.nan)),
        *((np.array([bad, 1 - bad, 1.0]), "state 0") for bad in (np.nan, np.inf, -0.25)),
        *((np.array([0, action]), f"state 1 has no action {action}") for action in (1, -1, 2)),
        *((np.ones(shape), "shape") for shape in ((4,), (2, 3), (2, 2, 2), ())),
        (
            np.ones((5, 2, 2)),
            r"not \(5, 2, 2\); with a policy for each step, pass lambda t: policy",
        ),
        ([[0, 1], [1], [1]], "policy must be a regular array"),
        ("stay", "policy must be real numbers"),
    ],
)
def test_what_is_no_policy_is_refused_in_one_line_with_the_state(policy, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        read_policy(puterman_two_state().mdp(), policy)
    assert "\n" not in str(caught.value)


def test_the_table_of_a_solution_is_refused_with_its_pivot():
    mdp = puterman_two_state().mdp()
    table = solve(mdp, Hard()).to_frame()
    with pytest.raises(InvalidInput, match=r'pass table\.pivot\(index="state", columns="action"'):
        read_policy(mdp, table)
    pivot = table.pivot(index="state", columns="action", values="probability")
    assert np.array_equal(read_policy(mdp, pivot), table.probability)


def test_masses_on_missing_actions_that_cancel_are_refused():
    mdp = Problem("gaps", 2, (Row(0, 0, 1.0, {1: 1.0}), Row(1, 2, 1.0, {0: 1.0})), 0.9).mdp()
    with pytest.raises(InvalidInput, match="state 0"):
        read_policy(mdp, np.array([[1.0, 0.5, -0.5], [0.0, 0.0, 1.0]]))


def test_rows_of_a_table_for_terminal_states_are_ignored():
    mdp = BY_NAME["ladder-5"].mdp()
    assert np.array_equal(read_policy(mdp, np.ones((5, 1))), read_policy(mdp, np.ones(4)))


@pytest.mark.parametrize("named", [False, True])
def test_a_pivot_of_the_frame_of_a_solution_is_its_policy(named):
    names = {"state_names": ["c", "dead", "b", "a"], "action_names": ["run", "none", "rest"]}
    rows = [[0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0.5, 0.5]]
    mdp = MDP(
        rows, [1.0, 0.9, 2.0, 1.0], 0.9, pairs=[(0, 0), (0, 2), (2, 2), (3, 0)], terminal=[1],
        **(names if named else {}),
    )  # fmt: skip
    solution = solve(mdp, Sparse(10.0))
    frame = solution.to_frame()
    pivot = frame.pivot(index="state", columns="action", values="probability")
    assert pivot.shape == (3, 2)
    assert pivot.isna().to_numpy().any()
    expected = evaluate(mdp, solution).value
    np.testing.assert_allclose(evaluate(mdp, pivot).value, expected, rtol=1e-14)
    with pytest.raises(InvalidInput, match=r"probability of action .* is nan"):
        evaluate(mdp, pivot.where(pivot < 0.9))
    with pytest.raises(InvalidInput, match=r"the policy lacks state|has shape"):
        evaluate(mdp, pivot.iloc[:-1])
    wrong = pivot.fillna(0.5)
    with pytest.raises(InvalidInput, match="which it lacks"):
        evaluate(mdp, wrong)
