"""Solutions of models from functions."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from planning.functional_models import stock_mdp, stock_model, weather_model
from refusals import refused
from tsallax import (
    FunctionalSolution,
    Hard,
    InvalidInput,
    Soft,
    Sparse,
    Tsallis,
    memory,
    solve,
)
from tsallax.planning import functional_solution

MODEL, AGAIN = stock_model(), stock_model()
"""The same model, defined twice; sweeps are compiled once for each."""


def test_a_solution_is_that_of_the_stored_mdp_and_computes_its_policy_on_demand(monkeypatch):
    found, stored = solve(MODEL, Sparse(0.5)), solve(stock_mdp(), Sparse(0.5), 1e-9)
    assert found.converged
    assert np.abs(found.value - stored.value).max() <= found.error + stored.error
    assert found.error <= found.tolerance
    np.testing.assert_allclose(found.policy, stored.policy, atol=1e-6)
    np.testing.assert_array_equal(found.policy_at([3, 1]), found.policy[[3, 1]])
    np.testing.assert_array_equal(found.actions, found.policy.argmax(-1))
    assert found.support_ratio == np.count_nonzero(found.policy) / 24
    assert found.regularized_return == pytest.approx(stored.regularized_return, abs=1e-6)
    for states in ([6], [-1], [0.5], 3):
        with pytest.raises(InvalidInput, match="states"):
            found.policy_at(states)
    again = solve(AGAIN, Sparse(0.5), initial_value=found.value)
    assert again.iterations <= 2
    monkeypatch.setattr(functional_solution, "MAX_TABLE", 10)
    with pytest.raises(InvalidInput, match="policy_at"):
        _ = again.policy


def test_tables_of_no_states_are_empty():
    found = solve(MODEL, Sparse(0.5))
    for table in (found.policy_at, found.q_at, found.certified_support_at):
        assert table([]).shape == (0, 4)
    assert [len(column) for column in found.to_columns([]).values()] == [0] * 5


def test_action_values_are_computed_once_where_they_alone_count(monkeypatch):
    found, calls = solve(MODEL, Soft(0.5)), []
    operator = type(found.greedy.operator)
    compute = operator.action_values
    monkeypatch.setattr(operator, "action_values", lambda *v: calls.append(v) or compute(*v))
    assert (found.certified_support >= 0).all()
    assert len(calls) == 1


@pytest.mark.parametrize(
    "regularizer", [Hard(), Sparse(0.5), Tsallis(0.5, 1.5), Soft(0.5)], ids=str
)
def test_tables_and_certificates_are_those_of_the_stored_mdp(regularizer):
    found, stored = solve(MODEL, regularizer), solve(stock_mdp(), regularizer, 1e-9)
    states = [4, 0, 5, 4]
    q = found.q_at(states)
    np.testing.assert_array_equal(q == -np.inf, stored.q[states] == -np.inf)
    present = np.isfinite(q)
    np.testing.assert_allclose(q[present], stored.q[states][present], rtol=0, atol=1e-5)
    certified = found.certified_support
    assert certified.dtype == np.int8
    np.testing.assert_array_equal(certified, stored.certified_support)
    np.testing.assert_array_equal(found.certified_support_at(states), certified[states])


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("regularizer", [Hard(), Sparse(0.5)], ids=str)
def test_a_wide_enclosure_certifies_less_and_nothing_wrong(regularizer, precision):
    exact = solve(stock_mdp(), regularizer, 1e-12).certified_support
    decided = []
    for tolerance in (10.0, 0.3, 1e-2):
        found = solve(MODEL, regularizer, tolerance, precision=precision)
        certified = found.certified_support
        assert (certified * exact >= 0).all()
        decided.append(np.count_nonzero(certified))
    assert decided[0] < decided[-1]


@pytest.mark.parametrize(("regularizer", "proven"), [(Sparse(0.5), 0), (Soft(0.5), 1)], ids=str)
def test_an_enclosure_that_is_infinite_certifies_nothing_but_what_holds_for_any(
    regularizer, proven
):
    found = solve(MODEL, regularizer)
    nothing = replace(found, lower=np.full(6, -np.inf), upper=np.full(6, np.inf))
    present = found.q_at(range(6)) > -np.inf
    np.testing.assert_array_equal(nothing.certified_support, np.where(present, proven, 0))


def test_columns_are_one_row_for_each_pair_of_the_states_asked_for(monkeypatch):
    found, stored = solve(MODEL, Sparse(0.5)), solve(stock_mdp(), Sparse(0.5))
    columns, expected = found.to_columns(), stored.to_columns()
    assert list(columns) == list(expected)
    for name in ("state", "action"):
        np.testing.assert_array_equal(columns[name], expected[name])
    for name in ("value", "q", "probability"):
        np.testing.assert_allclose(columns[name], expected[name], rtol=0, atol=1e-5)
    monkeypatch.setattr(functional_solution, "TABLE_PART", 8)  # two states at a time
    some = found.to_columns(states=[5, 1, 2])
    rows = np.concatenate([np.flatnonzero(columns["state"] == s) for s in (5, 1, 2)])
    for name, column in some.items():
        np.testing.assert_array_equal(column, columns[name][rows])
    np.testing.assert_array_equal(
        found.certified_support_at([5, 1, 2]), found.certified_support[[5, 1, 2]]
    )


def test_columns_name_states_and_actions_by_their_coordinates():
    model = weather_model()
    named = solve(model, Hard(), 1e-3).to_columns(states=[3, 1], names=True)
    plain = solve(model, Hard(), 1e-3).to_columns(states=[3, 1])
    assert named["state"].tolist() == [model.states.describe(s) for s in plain["state"]]
    assert named["action"].tolist() == [model.actions.describe(a) for a in plain["action"]]
    assert named["state"][0] == "(1, 0)"


def test_a_frame_is_made_of_the_columns(monkeypatch):
    solution = solve(MODEL, Sparse(0.5))
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    frame, columns = solution.to_frame(range(3), True), solution.to_columns(range(3), True)
    assert all(np.array_equal(frame[name], columns[name]) for name in columns)


def test_tables_that_do_not_fit_are_refused_with_what_they_would_take(monkeypatch):
    solution = solve(MODEL, Sparse(0.5))
    monkeypatch.setattr(memory, "available_bytes", lambda device=None: 100)
    for what, make in (
        ("columns", solution.to_columns), ("policy", lambda: solution.policy),
        ("action values", lambda: solution.q_at(range(6))),
    ):  # fmt: skip
        with refused(f"not enough memory for the {what} of 24 pairs", "states=range(1000)"):
            make()
    solution.q_at([1])
    monkeypatch.setattr(functional_solution, "MAX_TABLE", 10)
    with refused("a table of 24 certificates is too large: use certified_support_at(states)"):
        _ = solution.certified_support


def test_a_saved_solution_is_read_with_its_model_and_proven_again(tmp_path):
    found, file = solve(MODEL, Sparse(0.5)), tmp_path / "stock.npz"
    found.save(file)
    again = FunctionalSolution.load(file, AGAIN)
    np.testing.assert_array_equal(again.lower, found.lower)
    np.testing.assert_array_equal(again.policy, found.policy)
    assert repr(again) == repr(found)
    with pytest.raises(InvalidInput, match="more than the limit"):
        FunctionalSolution.load(file, AGAIN, max_bytes=10)
    with pytest.raises(InvalidInput, match="needs the model, not MDP"):
        FunctionalSolution.load(file, stock_mdp())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "stock.npz"
    solve(MODEL, Sparse(0.5)).save(path)
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "tsallax-solution"}, "not a file written by FunctionalSolution.save"),
        ({"actions": np.array([None] * 6)}, "actions"),
        ({"value": np.zeros(5)}, "value has 5 numbers for 6 states"),
        ({"greedy_value": np.zeros((6, 6))}, "greedy_value has type float64 and 2 dim"),
        ({"value": np.full(6, np.nan)}, "value"),
        ({"lower": np.full(6, -np.inf)}, "lower"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"precision": "float16"}, "precision"),
        ({"discount": 0.8}, "of a model with discount 0.8"),
        ({"method": "bogus"}, "method 'bogus'"),
        ({"converged": False}, "converged is False, but"),
        ({"value": lambda a: a["upper"]}, "a value is not the centre of its enclosure"),
        ({"lower": lambda a: a["value"]}, "lower is not what a sweep of this model proves"),
        ({"upper": lambda a: a["value"]}, "upper is not what a sweep of this model proves"),
        ({"greedy_value": lambda a: a["value"] + 1e-3 * np.arange(6)}, "is not what a sweep"),
        ({"alpha": 0.6}, "upper is not what a sweep of this model proves"),
    ],
)
def test_a_damaged_file_is_refused_in_a_line(saved, tmp_path, changes, message):
    path, arrays = tmp_path / "damaged.npz", dict(saved)
    for key, change in changes.items():
        arrays[key] = change(saved) if callable(change) else change
    np.savez(path, **arrays)
    with pytest.raises(InvalidInput, match=message) as caught:
        FunctionalSolution.load(path, MODEL)
    assert str(caught.value).count(str(path)) == 1
    assert "\n" not in str(caught.value)
