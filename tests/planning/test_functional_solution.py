"""Solutions of models from functions."""

import numpy as np
import pytest

from planning.functional_models import stock_mdp, stock_model
from tsallax import FunctionalSolution, InvalidInput, Sparse, solve
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
