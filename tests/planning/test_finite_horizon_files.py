"""Files of solutions with a finite horizon: written and read, damaged ones refused."""

import numpy as np
import pytest

from tsallax import FiniteHorizonSolution, InvalidInput, Solution, Sparse, Tsallis, problems, solve


@pytest.fixture
def solution():
    return solve(problems.gridworld(3), Tsallis(0.5, 1.5), horizon=4)


def test_a_solution_is_read_as_it_was_written(solution, tmp_path):
    solution.save(tmp_path / "s.npz")
    read = FiniteHorizonSolution.load(tmp_path / "s.npz")
    assert read.regularizer == Tsallis(0.5, 1.5)
    assert read.horizon == 4
    assert (read.seconds, read.tolerance) == (solution.seconds, solution.tolerance)
    np.testing.assert_array_equal(read.values, solution.values)
    np.testing.assert_array_equal(read.errors, solution.errors)
    np.testing.assert_array_equal(read.policy_at(2), solution.policy_at(2))
    assert not read.values.flags.writeable


def damaged(solution, tmp_path, **changes):
    solution.save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as file:
        arrays = {**file, **{key: change(file[key]) for key, change in changes.items()}}
    np.savez(tmp_path / "d.npz", **arrays)
    return tmp_path / "d.npz"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": lambda v: v[:, :-1]}, r"damaged: values of shape \(5, 8\) and errors"),
        ({"values": lambda v: v[:1], "errors": lambda e: e[:1]}, r"values of shape \(1, 9\)"),
        ({"errors": lambda e: e[1:]}, r"errors of shape \(4,\) do not belong"),
        ({"errors": lambda e: -e - 1}, "a bound on its error is not a finite number"),
        ({"values": lambda v: v * np.nan}, "a value or a bound on its error is not a finite"),
        ({"values": lambda v: v + 1}, "damaged: a terminal state is not worth 0"),
        ({"values": lambda v: v + 5 * (v != 0)}, "damaged: the values of step 3 are off by 5, by"),
        ({"values": lambda v: v * (1 + 1e-12)}, "damaged: the values of step . are off by .*e-1"),
        ({"errors": lambda e: e * 0}, "damaged: the error of step 3 is below that of rounding"),
        ({"errors": lambda e: e + 1}, "damaged: the final value has an error"),
        ({"seconds": lambda x: -x - 1}, "damaged: seconds is -"),
        ({"regularizer": lambda x: np.array("odd")}, "unknown regularizer 'odd'"),
    ],
)
def test_damaged_files_are_refused_by_name(solution, tmp_path, changes, message):
    path = damaged(solution, tmp_path, **changes)
    with pytest.raises(InvalidInput, match=message) as refusal:
        FiniteHorizonSolution.load(path)
    assert str(refusal.value).startswith(str(path))


def test_other_kinds_of_solutions_are_refused(solution, tmp_path):
    solution.save(tmp_path / "finite.npz")
    solve(problems.forest(), Sparse(0.1)).save(tmp_path / "infinite.npz")
    with pytest.raises(InvalidInput, match=r"not a file written by Solution\.save"):
        Solution.load(tmp_path / "finite.npz")
    with pytest.raises(InvalidInput, match=r"written by FiniteHorizonSolution\.save"):
        FiniteHorizonSolution.load(tmp_path / "infinite.npz")


def test_rounding_of_another_machine_is_accepted_and_added_to_the_errors(solution, tmp_path):
    def rounded_otherwise(values):
        return np.where(np.arange(5)[:, None] == 1, np.nextafter(values, -np.inf), values) * (
            values != 0
        )

    read = FiniteHorizonSolution.load(damaged(solution, tmp_path, values=rounded_otherwise))
    off = np.abs(read.values[1] - solution.values[1]).max()
    assert off > 0
    assert (read.errors[:2] >= solution.errors[:2] + 0.99 * off).all()
    np.testing.assert_array_equal(read.errors[2:], solution.errors[2:])


def test_larger_bounds_on_errors_than_needed_are_kept(solution, tmp_path):
    read = FiniteHorizonSolution.load(damaged(solution, tmp_path, errors=lambda e: 2 * e))
    np.testing.assert_array_equal(read.errors, 2 * solution.errors)
