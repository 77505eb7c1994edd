"""A saved solution is read back bit by bit, and a damaged one is refused by name."""

import numpy as np
import pytest

from tsallax import Hard, InvalidInput, NotConverged, Soft, Solution, Sparse, Tsallis, solve
from tsallax.problems import gridworld

ARRAYS = ("value", "lower", "upper", "pair_q", "pair_policy", "certified_support")
NUMBERS = ("converged", "iterations", "sweeps", "seconds", "method", "tolerance")


@pytest.mark.parametrize("regularizer", [Hard(), Soft(0.2), Sparse(0.2), Tsallis(0.2, 1.5)])
def test_a_solution_is_read_back_bit_by_bit(tmp_path, regularizer):
    solution = solve(gridworld(5, 4), regularizer)
    path = tmp_path / "solution.npz"
    solution.save(path)
    loaded = Solution.load(path)
    assert loaded.regularizer == regularizer
    assert loaded.mdp.state_names == solution.mdp.state_names
    assert repr(loaded) == repr(solution)
    for key in ARRAYS:
        assert np.array_equal(getattr(loaded, key), getattr(solution, key)), key
    for key in NUMBERS:
        assert getattr(loaded, key) == getattr(solution, key)
        assert type(getattr(loaded, key)) is type(getattr(solution, key))
    first = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == first


def test_a_solution_that_did_not_converge_is_read_back(tmp_path):
    with pytest.raises(NotConverged) as caught:
        solve(gridworld(5, 4), Sparse(0.3), max_sweeps=2)
    caught.value.solution.save(tmp_path / "solution.npz")
    assert repr(Solution.load(tmp_path / "solution.npz")) == repr(caught.value.solution)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "solution.npz"
    solve(gridworld(5, 4), Sparse(0.3)).save(path)
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "tsallax-mdp"}, "not a file written by Solution.save"),
        ({"value": np.zeros(3)}, "value has 3 numbers, not 20"),
        ({"lower": np.full(20, np.nan)}, "lower of a converged solution is not finite"),
        ({"lower": np.full(20, 1e9)}, "outside its enclosure"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"regularizer": "other"}, "regularizer 'other'"),
        ({"discount": 1.5}, "discount"),
        ({"pointer": np.zeros(0, int)}, "pointer does not divide"),
        ({"pair_policy": lambda p: -3 * p}, "the policy's probability of action . in state"),
        ({"pair_policy": lambda p: 0.5 * p}, "sums to 0.5, not to 1"),
        ({"lower": lambda v: v - 1000}, "converged is True, but .* an error of 500"),
        ({"converged": False}, "converged is False, but"),
        ({"converged": False, "value": lambda v: v * np.nan}, "value contains NaN"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"iterations": -5}, "iterations is -5, not at least 1"),
        ({"sweeps": 0}, "sweeps is 0, not at least 1"),
        ({"seconds": -1.0}, "seconds is -1.0"),
        ({"method": "bogus"}, "method 'bogus'"),
    ],
)
def test_a_damaged_solution_is_refused_by_name(saved, tmp_path, changes, message):
    path = tmp_path / "damaged.npz"
    arrays = dict(saved)
    for key, change in changes.items():
        arrays[key] = change(arrays[key]) if callable(change) else change
    np.savez(path, **arrays)
    with pytest.raises(InvalidInput, match=message) as caught:
        Solution.load(path)
    assert str(caught.value).count(str(path)) == 1
    assert "\n" not in str(caught.value)
