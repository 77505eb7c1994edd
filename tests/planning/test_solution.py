"""`Solution`: its tables, its certificates, and `NotConverged`."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from planning_problems import BY_NAME, symmetric_ring
from solution_checks import every_method, present
from tsallax import MDP, Hard, InvalidInput, NotConverged, Sparse, Tsallis, solve


@pytest.mark.parametrize("name", ["garnet-ragged", "terminal", "ending-and-terminal-negative"])
def test_tables_are_laid_out_by_state_and_action(name):
    problem = BY_NAME[name]
    mdp = problem.mdp()
    solution = solve(mdp, Sparse(0.5), 1e-6)
    has = present(mdp)
    assert np.array_equal(solution.q[has], solution.pair_q)
    assert np.all(solution.q[~has] == -np.inf)
    assert np.array_equal(solution.policy[has], solution.pair_policy)
    assert np.all(solution.policy[~has] == 0)
    assert np.array_equal(solution.support, solution.policy > 0)
    assert solution.support_ratio == np.count_nonzero(solution.pair_policy) / mdp.n_pairs
    assert solution.regularized_return == mdp.initial @ solution.value


@every_method
def test_exact_ties_are_never_certified_out(method):
    problem = symmetric_ring(5)
    hard = solve(problem.mdp("dense"), Hard(), 1e-9, method)
    assert np.all(hard.certified_support[:, :2] >= 0)
    assert np.all(hard.certified_support[:, 2] == -1)
    sparse = solve(problem.mdp("dense"), Sparse(0.1), 1e-9, method)
    np.testing.assert_allclose(sparse.policy[:, :2], 0.5, rtol=0, atol=1e-7)
    assert np.all(sparse.certified_support == [1, 1, -1])


@every_method
def test_certificates_decide_nearly_every_pair_at_a_tight_tolerance(method):
    problem = BY_NAME["garnet"]
    for regularizer in (Sparse(0.5), Tsallis(0.5, q=1.5), Tsallis(0.5, q=3.0)):
        solution = solve(problem.mdp(), regularizer, 1e-9, method)
        assert np.all(solution.certified_support != 0)


def test_not_converged_survives_pickling_with_its_solution():
    with pytest.raises(NotConverged) as caught:
        solve(BY_NAME["garnet"].mdp(), Sparse(0.5), 1e-9, max_sweeps=2)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert np.array_equal(copy.solution.value, caught.value.solution.value)


def test_columns_are_one_row_for_each_pair_with_names():
    mdp = MDP(
        [[0.5, 0.5], [1.0, 0.0]], [1.0, 2.0], 0.5, pairs=[(0, 0), (0, 2)], terminal=["end"],
        state_names=["start", "end"], action_names=["a", "b", "c"],
    )  # fmt: skip
    solution = solve(mdp, Sparse(0.5))
    columns = solution.to_columns()
    assert list(columns) == ["state", "action", "value", "q", "probability"]
    assert columns["state"].tolist() == ["start", "start"]
    assert columns["action"].tolist() == ["a", "c"]
    assert columns["value"].tolist() == [solution.value[0]] * 2
    assert columns["q"].tolist() == [solution.q[0, 0], solution.q[0, 2]]
    assert columns["probability"].tolist() == [solution.policy[0, 0], solution.policy[0, 2]]


def test_a_frame_is_made_of_the_columns_and_needs_pandas(monkeypatch):
    solution = solve(BY_NAME["terminal"].mdp(), Sparse(0.5))
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    frame, columns = solution.to_frame(), solution.to_columns()
    assert all(np.array_equal(frame[name], columns[name]) for name in columns)
    assert columns["state"].tolist() == solution.mdp.state_of.tolist()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidInput, match=r"to_frame: needs pandas: .* or use to_columns\(\)"):
        solution.to_frame()
