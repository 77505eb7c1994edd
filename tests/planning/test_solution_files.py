"""Solutions in files: read back bit by bit, damaged ones refused with the name of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tsallax import problems
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP
from tsallax.planning.solver import NotConverged, Solution, solve
from tsallax.regularizer import Hard, Soft, Sparse, Tsallis


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A file with an MDP of ragged states, terminal ones and names."""
    path = tmp_path / "mdp.npz"
    problems.gridworld(4, 5, goals={(0, 4): 1.0, (2, 2): -1.0}, step_reward=-0.04).save(path)
    return path


def rewritten(path: Path, **changes: Any) -> None:
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    for key, change in changes.items():
        arrays[key] = change(arrays[key]) if callable(change) else change
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "tsallax-mdp"}, "not a file written by Solution.save"),
        ({"version": 9}, "version 9"),
        ({"value": np.zeros(3)}, "value has 3 numbers, not 20"),
        ({"lower": np.full(20, np.nan)}, "lower of a converged solution is not finite"),
        ({"lower": np.full(20, 1e9)}, "outside its enclosure"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"regularizer": "other"}, "unknown regularizer 'other'"),
        ({"discount": 1.5}, "discount must be"),
        ({"pointer": np.zeros(0, int)}, "pointer does not divide"),
        ({"pair_policy": lambda p: -3 * p}, "the policy's probability of action 0 in state"),
        ({"pair_policy": lambda p: 0.5 * p}, "sums to 0.5, not to 1"),
        ({"lower": lambda v: v - 1000}, "converged is True, but .* an error of 500"),
        ({"converged": False}, "converged is False, but"),
        ({"converged": False, "value": lambda v: v * np.nan}, "value holds NaN"),
        ({"tolerance": -1.0}, "tolerance is -1.0, not a positive number"),
        ({"iterations": -5}, "iterations is -5, not at least 1"),
        ({"sweeps": 0}, "sweeps is 0, not at least 1"),
        ({"seconds": -1.0}, "seconds is -1.0, not a time"),
        ({"method": "bogus"}, "the method 'bogus' is none of auto, value_iteration"),
    ],
)
def test_a_damaged_solution_is_refused_with_its_name(saved: Path, tmp_path, changes, message):
    path = tmp_path / "solution.npz"
    solve(MDP.load(saved), Sparse(0.3)).save(path)
    rewritten(path, **changes)
    with pytest.raises(InvalidInput, match=message) as caught:
        Solution.load(path)
    assert str(caught.value).count(str(path)) == 1
    assert "\n" not in str(caught.value)


def test_a_solution_that_did_not_converge_comes_back(saved: Path, tmp_path: Path):
    with pytest.raises(NotConverged) as caught:
        solve(MDP.load(saved), Sparse(0.3), max_sweeps=2)
    caught.value.solution.save(tmp_path / "solution.npz")
    assert repr(Solution.load(tmp_path / "solution.npz")) == repr(caught.value.solution)


@pytest.mark.parametrize("regularizer", [Hard(), Soft(0.2), Tsallis(0.2, 1.5)])
def test_a_solution_comes_back_bit_by_bit(saved: Path, tmp_path: Path, regularizer):
    solution = solve(MDP.load(saved), regularizer)
    solution.save(tmp_path / "solution.npz")
    loaded = Solution.load(tmp_path / "solution.npz")
    assert loaded.regularizer == regularizer
    assert repr(loaded) == repr(solution)
    for key in ("value", "lower", "upper", "pair_q", "pair_policy"):
        assert np.array_equal(getattr(loaded, key), getattr(solution, key))
    for key in ("converged", "iterations", "sweeps", "seconds", "method", "tolerance"):
        assert getattr(loaded, key) == getattr(solution, key)
        assert type(getattr(loaded, key)) is type(getattr(solution, key))
