"""`solve`: the loop that all methods share, its limits, restarts and refusals."""

import contextlib
import pickle
import re
import signal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import exact_mdp, optimal_support, optimal_value
from planning_problems import BY_NAME, CHOICES, PROBLEMS, Problem, Row, gauss, random_rows, truth
from solution_checks import (
    METHODS,
    assert_certificates_true,
    assert_enclosed,
    assert_solves,
    distance,
    every_check,
    every_choice,
    every_method,
    every_problem,
)
from tsallax import (
    MDP,
    Hard,
    InvalidInput,
    NotConverged,
    Soft,
    SolveInterrupted,
    Sparse,
    Tsallis,
    solve,
)
from tsallax.planning import devices, iteration
from tsallax.planning.bellman import Bellman
from tsallax.planning.methods.value_iteration import ValueIteration
from tsallax.problems import garnet, gridworld


@pytest.mark.slow
@every_check
@every_problem
def test_every_method_keeps_its_promises_with_every_regulariser(check, problem):
    for choice in CHOICES:
        for method in METHODS:
            check(problem, choice, method)


@every_method
@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS if p.hard_value is not None], ids=lambda p: p.name
)
def test_textbook_values_come_out(problem, method):
    solution = solve(problem.mdp(), Hard(), problem.tolerance, method)
    np.testing.assert_allclose(solution.value, problem.hard_value, rtol=0, atol=1.01e-6)


@every_choice
@pytest.mark.parametrize("distance_to_one", [1e-6, 1e-9, 1e-12])
def test_enclosure_holds_for_discounts_close_to_one(distance_to_one, choice):
    problem = Problem("patient", 4, random_rows(21, 4, 3, gauss), 1 - distance_to_one)
    mdp, regularizer = problem.mdp(), choice.regularizer(problem)
    enclosure = optimal_value(exact_mdp(mdp), choice.alpha(problem), choice.q)
    for method in METHODS:
        try:
            solution = solve(mdp, regularizer, 1e-3 / distance_to_one, method, max_sweeps=500)
        except NotConverged as unfinished:
            solution = unfinished.solution
        assert_enclosed(solution, enclosure)


@every_method
@pytest.mark.parametrize("distance_to_one", [1e-14, 3e-15, 1e-15, 2.0**-52, 2.0**-53])
def test_a_discount_equal_to_one_up_to_rounding_is_never_called_solved(distance_to_one, method):
    """Row sums carry an error of this size, so no finite enclosure is a proof."""
    mdp = Problem("patient", 4, random_rows(21, 4, 3, gauss), 1 - distance_to_one).mdp()
    with pytest.raises((NotConverged, InvalidInput)) as caught:
        solve(mdp, Sparse(0.5), 1e6, method, max_sweeps=50)
    if isinstance(caught.value, NotConverged):
        solution = caught.value.solution
        assert np.all(solution.lower <= solution.upper)
        assert not np.any(np.isnan(solution.value))


def test_enclosure_holds_where_cancellation_is_worst():
    """Large rewards that cancel: tiny values out of numbers of size 1e12."""
    rows = (
        Row(0, 0, 1e12, {1: 1.0}),
        Row(0, 1, 1e12 + 1, {1: 0.5, 0: 0.5}),
        Row(1, 0, -1e12, {0: 1.0}),
        Row(1, 1, -1e12 / 3, {1: 1 / 3, 0: 2 / 3}),
    )
    problem = Problem("cancel", 2, rows, 0.97)
    mdp = problem.mdp()
    exact = exact_mdp(mdp)
    for choice in CHOICES:
        enclosure = optimal_value(exact, choice.alpha(problem), choice.q)
        for method in METHODS:
            solution = solve(mdp, choice.regularizer(problem), 10.0, method)
            assert_enclosed(solution, enclosure)
            assert distance(solution.value, enclosure) <= 10


@every_method
@every_choice
def test_two_solves_are_equal_bit_for_bit_and_a_warm_start_is_quicker(choice, method):
    problem = BY_NAME["garnet-ragged"]
    mdp, regularizer = problem.mdp(), choice.regularizer(problem)
    one, two = (solve(mdp, regularizer, 1e-8, method) for _ in range(2))
    for name in ("value", "lower", "upper", "pair_policy"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert (one.iterations, one.sweeps) == (two.iterations, two.sweeps)
    warm = solve(mdp, regularizer, 1e-8, method, initial_value=one.value)
    assert warm.sweeps < one.sweeps
    np.testing.assert_allclose(warm.value, one.value, rtol=0, atol=2e-8)
    assert_enclosed(warm, truth(problem.name, choice.name))


@every_method
@every_choice
def test_a_misleading_start_is_overcome_and_left_alone(choice, method):
    problem = BY_NAME["ending-and-terminal-negative"]
    mdp, regularizer = problem.mdp(), choice.regularizer(problem)
    for number in (1e5, -1e5, 1e13):
        start = np.full(mdp.n_states, number)
        solution = solve(mdp, regularizer, 1e-6, method, initial_value=start)
        assert_enclosed(solution, truth(problem.name, choice.name))
        assert distance(solution.value, truth(problem.name, choice.name)) <= 1e-6
        assert np.all(start == number)


@every_method
def test_running_out_of_sweeps_names_error_and_remedy(method):
    mdp = BY_NAME["discount-0.999"].mdp()
    with pytest.raises(NotConverged, match=r"sweeps, .*: raise max_sweeps or tol") as caught:
        solve(mdp, Soft(0.5), 1e-5, method, max_sweeps=np.int64(2))
    sweeps = caught.value.solution.sweeps
    assert f"after {sweeps} sweeps" in str(caught.value)
    assert 2 <= sweeps <= 2 + 3
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"initial_value": [0, 0, 0, x, 0, 0, 0]}, "state 3 is") for x in (np.nan, -np.inf)),
        *(({"initial_value": np.zeros(shape)}, "shape") for shape in ((8,), (7, 1), ())),
        ({"initial_value": "zero"}, "initial_value is an array of numbers, not str"),
        *(({"tolerance": x}, "tolerance") for x in (0.0, -1e-6, np.nan, np.inf, True, "1")),
        *(({"max_sweeps": x}, "max_sweeps") for x in (0, True, 2.5)),
        ({"method": "value-iteration"}, "auto, value_iteration, policy_iteration, modified_"),
    ],
    ids=str,
)
def test_other_arguments_are_refused_by_name(options, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        solve(BY_NAME["garnet"].mdp(), Sparse(0.5), **options)
    assert "\n" not in str(caught.value)


@every_method
def test_a_start_far_beyond_all_values_is_overcome_and_one_at_the_end_of_float64_named(method):
    mdp = garnet(200, 4, 5)
    solution = solve(mdp, Sparse(0.1), method=method, initial_value=np.full(200, 1e300))
    assert np.abs(solution.value - solve(mdp, Sparse(0.1)).value).max() < 1e-6
    with pytest.raises(NotConverged, match=r"initial_value reaches 1.*at most: start nearer"):
        solve(mdp, Sparse(0.1), method=method, initial_value=np.full(200, 1.7e308))


@every_method
def test_rewards_that_overflow_are_never_called_solved(method):
    """Finite rewards whose values are beyond float64: an error, not a NaN or inf answer."""
    rows = (Row(0, 0, 1e308, {1: 1.0}), Row(1, 0, 1e308, {0: 1.0}), Row(1, 1, -1e308, {1: 1.0}))
    mdp = Problem("overflow", 2, rows, 0.999).mdp()
    for regularizer in (Hard(), Soft(1.0), Sparse(1.0)):
        with pytest.raises(NotConverged) as error, np.errstate(all="ignore"):
            solve(mdp, regularizer, 1e-6, method)
        reached = error.value.solution
        assert np.isfinite(reached.value).all()
        assert (reached.lower == -np.inf).all()
        assert (reached.upper == np.inf).all()


def solve_until_interrupted(mdp, method, seconds):
    """An alarm is repeated: one in a callback of the garbage collector is lost."""
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    for _ in range(100_000):
        with contextlib.suppress(NotConverged):
            solve(mdp, Sparse(0.5), 1e-6, method)


@every_method
def test_an_interrupt_is_raised_at_any_moment_and_leaves_no_file(method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problem = Problem("long", 40, random_rows(30, 40, 4, gauss), 1 - 1e-9)
    mdp = problem.mdp()
    for compiled in ("policy_iteration", method):
        with pytest.raises(NotConverged):
            solve(mdp, Sparse(0.5), 1e-6, compiled, max_sweeps=5)

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for seconds in np.linspace(0.001, 0.009, 60):
            with pytest.raises(KeyboardInterrupt):
                solve_until_interrupted(mdp, method, seconds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert list(tmp_path.iterdir()) == []


regularizers = st.one_of(
    st.tuples(st.just(0.0), st.just(2.0)),
    st.tuples(
        st.sampled_from([1e-3, 0.05, 0.5, 2.0, 30.0]),
        st.sampled_from([0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.0, 2.5, 4.0, 10.0]),
    ),
)


@settings(max_examples=80)
@given(
    seed=st.integers(0, 10**6),
    size=st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4)),
    ragged=st.booleans(),
    ends=st.booleans(),
    discount=st.sampled_from([0.0, 0.3, 0.9, 0.99]),
    rewards=st.sampled_from([(1e-3, 0.0), (1.0, 0.0), (1.0, -3.0), (1.0, 10.0), (1e4, 1.0)]),
    regularizer=regularizers,
    method=st.sampled_from(METHODS),
)
def test_any_small_mdp_is_solved_and_certified(
    seed, size, ragged, ends, discount, rewards, regularizer, method
):
    states, actions, branches = size
    spread, shift = rewards
    terminal = (states - 1,) if ends and states > 1 else ()
    rows = random_rows(
        seed, states, actions, lambda g: spread * (g.normal() + shift), branches=branches,
        ragged=ragged, ending=0.5 if ends else 0.0, terminal=terminal,
    )  # fmt: skip
    mdp = Problem("any", states, rows, discount, terminal).mdp()
    alpha, q = Fraction(regularizer[0]), Fraction(regularizer[1])
    exact = exact_mdp(mdp)
    enclosure = optimal_value(exact, alpha, q)
    chosen = Tsallis(float(alpha), q=float(q)) if alpha else Hard()
    tolerance = 1e-8 * max(1.0, spread)
    solution = solve(mdp, chosen, tolerance, method)
    assert_solves(solution, mdp, exact, enclosure, alpha, q, tolerance)
    truths = [v for row in optimal_support(exact, enclosure, alpha, q) for v in row]
    assert_certificates_true(solution, mdp, truths)


def test_a_first_guess_with_more_rounding_than_the_tolerance_is_overcome():
    """The rounding of values around 1e5 is above the tolerance, that of the right ones is not."""
    mdp = gridworld(5, noise=0.0, discount=0.99999)
    cold = solve(mdp, Hard())
    warm = solve(mdp, Hard(), initial_value=np.full(25, 1e5))
    assert np.abs(warm.value - cold.value).max() <= 2e-6
    assert warm.sweeps < 60


def test_rounding_is_not_the_reason_to_stop_before_the_error_is_down_to_it():
    """A cycle in which one step pays: for some sweeps v does not show it."""
    n = 19
    steps = [np.roll(np.eye(n), shift, axis=1) for shift in (1, -1)]
    rewards = np.zeros((n, 2))
    rewards[0, 0] = 1.0
    solution = solve(MDP(steps, rewards, 0.99999), Hard(), 8e-6)
    assert solution.value.max() == pytest.approx(1 / (1 - 0.99999**2), abs=8e-6)


@every_method
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("regularizer", [Hard(), Sparse(0.1), Soft(0.1)], ids=str)
def test_the_tolerance_that_a_refusal_names_is_reached(regularizer, gap, method):
    mdp = garnet(8, 3, 3, discount=1 - gap)
    with pytest.raises(NotConverged, match="below what float64 can prove") as caught:
        solve(mdp, regularizer, 1e-13 / gap, method)
    assert caught.value.solution.iterations < 10_000
    named = float(re.search(r"which is about (\S+):", str(caught.value))[1])
    assert named > 1e-13 / gap
    solution = solve(mdp, regularizer, named, method)
    assert solution.converged
    with contextlib.suppress(NotConverged):
        assert solve(mdp, regularizer, named / 2, method).error <= named / 2


@pytest.mark.parametrize("method", ["auto", "policy_iteration"])
def test_a_tolerance_near_to_rounding_is_reached_or_refused_soon(method):
    mdp = garnet(8, 3, 3, discount=1 - 1e-6)
    refused = []
    for tolerance in np.geomspace(1e-6, 1e-2, 30):
        try:
            solution = solve(mdp, Sparse(0.1), tolerance, method)
        except NotConverged as error:
            solution = error.solution
        refused.append(not solution.converged)
        assert solution.iterations < 60
    assert refused == sorted(refused, reverse=True)


@every_method
def test_a_relative_tolerance_is_in_units_of_the_largest_value(method):
    problem = BY_NAME["huge-rewards"]
    mdp, enclosure = problem.mdp(), truth("huge-rewards", "hard")
    largest = max(abs(v) for v in enclosure.lower)
    solution = solve(mdp, Hard(), 0.0, method, relative_tolerance=1e-7)
    assert solution.converged
    assert solution.error <= solution.tolerance <= 1e-7 * largest
    assert distance(solution.value, enclosure) <= 1e-7 * largest
    looser = solve(mdp, Hard(), 1e3, method, relative_tolerance=1e-12)
    assert looser.tolerance == 1e3
    assert looser.sweeps <= solution.sweeps


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"relative_tolerance": x}, "relative_tolerance") for x in (0, -1, 1.0, np.nan, True)),
        *(({"time_limit": x}, "time_limit") for x in (0, -1, np.inf, "1")),
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": -1.0, "relative_tolerance": 0.1}, "tolerance"),
    ],
    ids=str,
)
def test_limits_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        solve(BY_NAME["garnet"].mdp(), Sparse(0.5), **options)


@every_method
def test_a_time_limit_ends_a_solve_with_what_is_proven(method):
    problem = BY_NAME["discount-0.999"]
    with pytest.raises(NotConverged, match=r"after .* s, above the .* raise time_limit") as caught:
        solve(problem.mdp(), Sparse(0.5), 1e-5, method, time_limit=1e-9)
    assert caught.value.solution.iterations == 1
    assert_enclosed(caught.value.solution, truth(problem.name, "sparse"))


class Interrupting(Bellman):
    """An operator that is interrupted in its third sweep."""

    sweeps = 0

    def certify(self, iterate):
        self.sweeps += 1
        if self.sweeps == 3:
            raise KeyboardInterrupt
        return super().certify(iterate)


@every_method
def test_an_interrupt_carries_the_enclosure_so_far(method, monkeypatch):
    monkeypatch.setattr(devices, "Bellman", Interrupting)
    problem = BY_NAME["discount-0.999"]
    with pytest.raises(SolveInterrupted, match=r"interrupted after [1-4] sweeps") as caught:
        solve(problem.mdp(), Sparse(0.5), 1e-9, method)
    solution = caught.value.solution
    assert not solution.converged
    assert_enclosed(solution, truth(problem.name, "sparse"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_the_best_enclosure_is_returned_and_not_the_last(monkeypatch):
    class Worsening(ValueIteration):
        def step(self, operator, certificate, state):
            return certificate.iterate(certificate.updated * 3.0 + 1e3), None

    monkeypatch.setitem(iteration.METHODS, "auto", Worsening)
    problem = BY_NAME["garnet"]
    with pytest.raises(NotConverged) as caught:
        solve(problem.mdp(), Sparse(0.5), 1e-6, max_sweeps=5)
    first = solve(problem.mdp(), Sparse(0.5), 1e3, "value_iteration")
    assert first.iterations == 1
    assert caught.value.solution.error == first.error


def test_several_processes_have_no_time_limit():
    mesh = SimpleNamespace(is_multi_process=True)
    with pytest.raises(InvalidInput, match="several processes has no time limit"):
        solve(garnet(5, 2, 2), Hard(), time_limit=1.0, mesh=mesh)
