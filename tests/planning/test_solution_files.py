"""A saved solution is read back bit by bit, and a damaged one is refused by name."""

import numpy as np
import pytest

from planning.functional_models import stock_model
from planning_problems import CHOICES
from solution_checks import every_problem
from tsallax import MDP, Hard, InvalidInput, NotConverged, Soft, Solution, Sparse, Tsallis, solve
from tsallax.planning.methods import METHODS
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


@pytest.mark.parametrize("ending", [".umb", ".csv"])
@pytest.mark.parametrize(
    ("model", "options"),
    [(gridworld(2, 2), {}), (gridworld(2, 2), {"horizon": 3}), (stock_model(), {})],
)
def test_a_solution_is_not_written_under_the_name_of_something_else(
    tmp_path, model, options, ending
):
    solution = solve(model, Hard(), **options)
    with pytest.raises(InvalidInput, match=rf"s\{ending}: unknown ending .*: choose from \.npz"):
        solution.save(tmp_path / f"s{ending}")
    assert not any(tmp_path.iterdir())
    solution.save(tmp_path / "solution")


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


def shifted(by):
    """Changes that move the value and its enclosure in all states but the terminal one."""
    return dict.fromkeys(("value", "lower", "upper"), lambda v: np.where(v == 0, v, v + by))


def one_state_reversed(pi):
    """The policy with the probabilities of the first state in the opposite order."""
    return np.concatenate([pi[:2][::-1], pi[2:]])


def one_infinite(lower):
    return np.where(np.arange(len(lower)) == 3, -np.inf, lower)


def positive_at_end(lower):
    return np.where(np.arange(len(lower)) == len(lower) - 1, 1.0, lower - 1e3)


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
        ({"pointer": np.zeros(0, int)}, "initial has 20 numbers, not -1"),
        ({"pair_policy": lambda p: -3 * p}, "the policy's probability of action 'right' in state"),
        ({"pair_policy": lambda p: 0.5 * p}, "sums to 0.5, not to 1"),
        ({"lower": lambda v: v - 1000}, "converged is True, but .* an error of 500"),
        ({"converged": False}, "converged is False, but"),
        ({"converged": False, "value": lambda v: v * np.nan}, "value contains NaN"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"iterations": -5}, "iterations is -5, not at least 1"),
        ({"sweeps": 0}, "sweeps is 0, not at least 1"),
        ({"seconds": -1.0}, "seconds is -1.0"),
        ({"method": "bogus"}, "method 'bogus'"),
        (shifted(1), "lower is above the value"),
        (shifted(-1), "upper is below the optimal"),
        (shifted(-1e-5), "upper is below"),
        (shifted(1e-5), "lower is above"),
        ({"pair_policy": lambda p: one_state_reversed(p)}, "lower is above the value of the pol"),
        ({"alpha": 0.4}, "upper is below the optimal value, by a sweep in state"),
        ({"alpha": 0.2}, "lower is above the value of the policy, by a sweep in state"),
        ({"rewards": lambda r: r - 0.01}, "lower is above"),
        ({"lower": one_infinite, "converged": False}, "an end of the enclosure is infinite"),
        (
            {
                "lower": positive_at_end,
                "converged": False,
                "upper": np.full(20, 1e3),
                "value": np.full(20, 5e2),
            },
            "the enclosure of a terminal state",
        ),
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


def test_a_value_at_an_end_of_its_enclosure_is_refused(saved, tmp_path):
    """`error` bounds the distance to V* of the centre alone."""
    for end in ("lower", "upper"):
        np.savez(tmp_path / "end.npz", **{**saved, "value": saved[end]})
        with pytest.raises(InvalidInput, match=r"state \d+ \(.*\) is not the centre of its enclos"):
            Solution.load(tmp_path / "end.npz")


@every_problem
def test_every_solution_that_is_saved_is_proven_again(problem, tmp_path):
    """Whatever the regulariser, method, tolerance and first guess, converged or not."""
    mdp, rng = problem.mdp(), np.random.default_rng(len(problem.name))
    path = tmp_path / "solution.npz"
    for choice, tolerance in zip(CHOICES, (1e-2, 1e-6, 1e-12, 1e-14, 1e-2, 1e-6, 1e-12)):
        guess = rng.normal(size=mdp.n_states) * 10.0 ** rng.integers(-3, 12)
        method = str(rng.choice(sorted(METHODS)))
        options = {"initial_value": guess, "max_sweeps": int(rng.integers(1, 300))}
        try:
            solution = solve(mdp, choice.regularizer(problem), tolerance, method, **options)
        except NotConverged as error:
            solution = error.solution
        solution.save(path)
        assert repr(Solution.load(path)) == repr(solution)


def test_an_enclosure_that_claims_nothing_is_read_back(tmp_path):
    with pytest.raises(NotConverged) as caught:
        solve(MDP([[[1.0]]], [[1e308]], 0.99), Hard())
    assert np.isinf(caught.value.solution.upper).all()
    caught.value.solution.save(tmp_path / "solution.npz")
    assert repr(Solution.load(tmp_path / "solution.npz")) == repr(caught.value.solution)
