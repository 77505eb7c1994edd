"""Every solver x representation x regulariser x problem, against the exact oracle."""

import contextlib
import math
import signal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import (
    bellman as exact_bellman,
)
from oracle import (
    evaluate_policy,
    exact_mdp,
    exact_policy,
    greedy,
    optimal_support,
    optimal_value,
    to_fraction,
    to_mpf,
    tsallis_entropy,
)
from planning_problems import (
    BY_NAME,
    CHOICES,
    PROBLEMS,
    Problem,
    Row,
    bandit,
    gauss,
    random_rows,
    stored,
    symmetric_ring,
    true_support,
    truth,
)
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP
from tsallax.planning.solver import NotConverged, bellman, solve
from tsallax.problems import garnet, gridworld, maze
from tsallax.regularizer import Hard, Soft, Sparse, Tsallis

METHODS = ("value_iteration", "policy_iteration", "modified_policy_iteration", "auto")
CHOICE = {choice.name: choice for choice in CHOICES}
EPS = Fraction(float(np.finfo(float).eps))

every_method = pytest.mark.parametrize("method", METHODS)
every_choice = pytest.mark.parametrize("choice", CHOICES, ids=lambda c: c.name)
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)


def assert_enclosed(solution, enclosure):
    """lower <= V* <= upper and lower <= value <= upper, with no slack but the oracle's width."""
    for s, (low, high) in enumerate(zip(enclosure.lower, enclosure.upper)):
        assert Fraction(float(solution.lower[s])) <= high, f"lower exceeds V* in state {s}"
        assert Fraction(float(solution.upper[s])) >= low, f"upper is below V* in state {s}"
    assert np.all(solution.lower <= solution.value)
    assert np.all(solution.value <= solution.upper)


def assert_certificates_true(solution, mdp, truths):
    """No pair is certified in or out against the oracle, which says +1, -1 or 0 per pair."""
    certified = solution.certified_support
    assert set(np.unique(certified)) <= {-1, 0, 1}
    for s, a, true in zip(mdp.state_of, mdp.action_of, truths):
        assert certified[s, a] * true >= 0, f"state {s}, action {a} is wrongly {certified[s, a]}"
    present = np.zeros(certified.shape, bool)
    present[mdp.state_of, mdp.action_of] = True
    assert np.all(certified[~present] <= 0)


def distance(value, enclosure):
    """A lower bound of max |value - V*| that is exact up to the oracle's width."""
    gaps = [
        max(Fraction(float(v)) - high, low - Fraction(float(v)), Fraction(0))
        for v, low, high in zip(value, enclosure.lower, enclosure.upper)
    ]
    return max(gaps)


def scale_of(exact, enclosure, alpha):
    """The size of the numbers a sweep adds up."""
    rewards = [abs(pair.reward) for row in exact.pairs for pair in row]
    return max(*(abs(v) for v in enclosure.upper), *rewards, Fraction(alpha))


def assert_solves(solution, mdp, exact, enclosure, alpha, q, tolerance):
    """Everything a converged solution promises about one MDP."""
    scale = scale_of(exact, enclosure, alpha)
    assert solution.converged is True or solution.converged is np.True_
    assert_enclosed(solution, enclosure)
    assert distance(solution.value, enclosure) <= Fraction(tolerance)
    assert distance(solution.value, enclosure) <= Fraction(float(solution.error))
    assert solution.error <= tolerance
    assert solution.error >= 0.499 * np.max(solution.upper - solution.lower)
    assert solution.tolerance == tolerance
    assert solution.iterations >= 1
    assert solution.sweeps >= 1
    assert 0 <= solution.seconds < 600
    assert solution.method in METHODS

    living = ~mdp.terminal
    assert np.all(solution.value[~living] == 0)
    assert np.all(solution.lower[~living] == 0)
    assert np.all(solution.upper[~living] == 0)
    expected_q = mdp.rewards + mdp.discount * (mdp.transitions @ solution.value)
    np.testing.assert_allclose(solution.pair_q, expected_q, rtol=0, atol=tolerance)
    present = np.zeros((mdp.n_states, mdp.n_actions), bool)
    present[mdp.state_of, mdp.action_of] = True
    assert np.array_equal(solution.q[present], solution.pair_q)
    assert np.all(solution.q[~present] == -np.inf)
    assert np.array_equal(solution.policy[present], solution.pair_policy)
    assert np.all(solution.policy[~present] == 0)
    assert np.all(solution.policy >= 0)
    np.testing.assert_allclose(solution.policy[living].sum(axis=1), 1, rtol=0, atol=1e-14)

    assert np.array_equal(solution.support, solution.policy > 0)
    if q > 1:  # a soft probability is positive but may underflow
        assert np.all(solution.support[solution.certified_support == 1])
    assert not np.any(solution.support[solution.certified_support == -1])

    assert_policy_is_greedy(solution, exact, alpha, q, scale)
    reached = evaluate_policy(exact, exact_policy(exact, solution.pair_policy), alpha, q).value
    slack = 64 * EPS * scale / (1 - exact.modulus)
    for v, low in zip(reached, solution.lower):
        assert v >= Fraction(float(low)) - slack, "the policy is worth less than the lower bound"


def assert_policy_is_greedy(solution, exact, alpha, q, scale):
    """pi(.|s) attains max_p <p, q(s,.)> + alpha Omega(p) to the error and to rounding."""
    slack = 2 * Fraction(float(solution.error)) + 64 * EPS * scale
    start = 0
    for row, weights in zip(exact.pairs, exact_policy(exact, solution.pair_policy)):
        values = [Fraction(float(x)) for x in solution.pair_q[start : start + len(row)]]
        start += len(row)
        if not row:
            continue
        exact_kind = alpha == 0 or q == 2
        best, _ = greedy(values if exact_kind else [to_mpf(x) for x in values], alpha, q)
        reached = sum(w * x for w, x in zip(weights, values))
        if alpha:
            reached += alpha * to_fraction(tsallis_entropy(weights, q))
        assert reached >= to_fraction(best) - slack


@every_method
@every_choice
@every_problem
def test_solution_is_certified_against_the_oracle(problem, choice, method):
    exact, enclosure = stored(problem.name), truth(problem.name, choice.name)
    alpha, q = Fraction(choice.alpha(problem)), Fraction(choice.q)
    first = None
    for representation in problem.representations:
        mdp = problem.mdp(representation)
        solution = solve(mdp, choice.regularizer(problem), problem.tolerance, method)
        if first is None:
            first = solution
            assert_solves(solution, mdp, exact, enclosure, alpha, q, problem.tolerance)
            assert_certificates_true(solution, mdp, true_support(problem.name, choice.name))
        assert exact_mdp(mdp) == exact, f"{representation} is stored as another MDP"
        assert np.array_equal(solution.value, first.value)
        assert np.array_equal(solution.policy, first.policy)
        assert np.array_equal(solution.lower, first.lower)
        assert np.array_equal(solution.upper, first.upper)


@every_problem
def test_stored_mdp_is_the_one_that_was_given(problem):
    """Up to the rescaling of rows whose floats do not quite sum to one."""
    for ours, theirs in zip(problem.exact().pairs, stored(problem.name).pairs):
        assert [(p.action, p.reward) for p in ours] == [(p.action, p.reward) for p in theirs]
        for a, b in zip(ours, theirs):
            assert [s for s, _ in a.successors] == [s for s, _ in b.successors]
            for (_, x), (_, y) in zip(a.successors, b.successors):
                assert abs(x - y) <= 1e-14 * float(x)


@every_method
@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS if p.hard_value is not None], ids=lambda p: p.name
)
def test_textbook_values_come_out(problem, method):
    solution = solve(problem.mdp(), Hard(), problem.tolerance, method)
    np.testing.assert_allclose(solution.value, problem.hard_value, rtol=0, atol=1.01e-6)


@every_method
@every_choice
@pytest.mark.parametrize("n", [1, 2, 50])
def test_equal_actions_are_worth_reward_plus_largest_entropy(n, choice, method):
    problem = bandit(n, -1.25, 0.8)
    regularizer = choice.regularizer(problem)
    solution = solve(problem.mdp("dense"), regularizer, 1e-9, method)
    largest = 0.0 if choice.name == "hard" else float(regularizer.max_entropy(n))
    expected = (-1.25 + choice.alpha(problem) * largest) / (1 - 0.8)
    assert solution.value[0] == pytest.approx(expected, abs=2e-6 if n > 1 else 1e-8)
    if choice.name != "hard":
        np.testing.assert_allclose(solution.policy, 1 / n, rtol=1e-6)


@every_method
@every_choice
@every_problem
def test_enclosure_holds_when_sweeps_run_out(problem, choice, method):
    """An unfinished solve is raised, carries what it has, and its bounds still hold."""
    enclosure = truth(problem.name, choice.name)
    mdp, regularizer = problem.mdp(), choice.regularizer(problem)
    for sweeps in (1, 2, 5):
        try:
            solution = solve(mdp, regularizer, problem.tolerance, method, max_sweeps=sweeps)
        except NotConverged as unfinished:
            solution = unfinished.solution
            assert not solution.converged
            assert solution.error > problem.tolerance
        assert_enclosed(solution, enclosure)
        assert_certificates_true(solution, mdp, true_support(problem.name, choice.name))
        np.testing.assert_allclose(
            solution.policy[~mdp.terminal].sum(axis=1), 1, rtol=0, atol=1e-14
        )


@every_method
@every_choice
@every_problem
def test_a_tolerance_within_reach_of_float64_is_reached(problem, choice, method):
    enclosure, mdp = truth(problem.name, choice.name), problem.mdp()
    exact = stored(problem.name)
    scale = scale_of(exact, enclosure, choice.alpha(problem))
    tolerance = float(1e-12 * scale / (1 - exact.modulus))
    solution = solve(mdp, choice.regularizer(problem), tolerance, method)
    assert_enclosed(solution, enclosure)
    assert_certificates_true(solution, mdp, true_support(problem.name, choice.name))
    assert distance(solution.value, enclosure) <= Fraction(tolerance)


@every_method
@every_choice
@every_problem
def test_a_tolerance_below_rounding_ends_with_the_reason(problem, choice, method):
    mdp = problem.mdp()
    with pytest.raises(NotConverged, match="float64") as caught:
        solve(mdp, choice.regularizer(problem), 1e-300, method)
    assert "\n" not in str(caught.value)
    solution = caught.value.solution
    assert not solution.converged
    assert_enclosed(solution, truth(problem.name, choice.name))
    assert_certificates_true(solution, mdp, true_support(problem.name, choice.name))


@every_method
@every_choice
@pytest.mark.parametrize("distance_to_one", [1e-6, 1e-9, 1e-12])
def test_enclosure_holds_for_discounts_close_to_one(distance_to_one, choice, method):
    problem = Problem("patient", 4, random_rows(21, 4, 3, gauss), 1 - distance_to_one)
    mdp = problem.mdp()
    exact = exact_mdp(mdp)
    alpha, q = choice.alpha(problem), choice.q
    enclosure = optimal_value(exact, alpha, q)
    try:
        solution = solve(
            mdp, choice.regularizer(problem), 1e-3 / distance_to_one, method, max_sweeps=2000
        )
    except NotConverged as unfinished:
        solution = unfinished.solution
    assert_enclosed(solution, enclosure)


@every_method
@pytest.mark.parametrize("distance_to_one", [1e-14, 3e-15, 1e-15, 2.0**-52, 2.0**-53])
def test_a_discount_that_rounding_cannot_tell_from_one_is_never_called_solved(
    distance_to_one, method
):
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


@every_choice
def test_value_satisfies_its_defining_equation(choice):
    for problem in PROBLEMS:
        mdp, regularizer = problem.mdp(), choice.regularizer(problem)
        solution = solve(mdp, regularizer, problem.tolerance)
        residual = np.max(np.abs(bellman(mdp, regularizer, solution.value) - solution.value))
        assert residual <= (1 + mdp.discount) * problem.tolerance * (1 + 1e-9)


@every_choice
@every_problem
def test_bellman_operator_is_the_exact_one_to_rounding(problem, choice):
    exact = stored(problem.name)
    mdp = problem.mdp()
    value = np.where(mdp.terminal, 0.0, np.random.default_rng(3).normal(size=mdp.n_states))
    rationals = [Fraction(float(v)) for v in value]
    alpha, q = Fraction(choice.alpha(problem)), Fraction(choice.q)
    if choice.name not in ("hard", "sparse"):
        rationals = [to_mpf(v) for v in rationals]
    expected = [float(to_fraction(v)) for v in exact_bellman(exact, rationals, alpha, q)]
    size = max(np.max(np.abs(mdp.rewards)), np.max(np.abs(value)), float(alpha))
    image = bellman(mdp, choice.regularizer(problem), value)
    assert image.shape == (mdp.n_states,)
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-14 * size)


@every_method
@every_choice
def test_two_solves_are_equal_bit_for_bit(choice, method):
    problem = BY_NAME["terminal"]
    mdp, regularizer = problem.mdp("csr"), choice.regularizer(problem)
    one, two = (solve(mdp, regularizer, 1e-8, method) for _ in range(2))
    for name in ("value", "lower", "upper", "q", "policy", "certified_support"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert (one.iterations, one.sweeps) == (two.iterations, two.sweeps)


@every_method
@every_choice
def test_warm_start_gives_the_same_answer_sooner(choice, method):
    problem = BY_NAME["garnet-ragged"]
    mdp, regularizer = problem.mdp(), choice.regularizer(problem)
    cold = solve(mdp, regularizer, 1e-8, method)
    warm = solve(mdp, regularizer, 1e-8, method, initial_value=cold.value)
    assert warm.sweeps < cold.sweeps
    np.testing.assert_allclose(warm.value, cold.value, rtol=0, atol=2e-8)
    assert_enclosed(warm, truth(problem.name, choice.name))


@every_method
@every_choice
def test_a_misleading_start_is_overcome(choice, method):
    problem = BY_NAME["ending-and-terminal-negative"]
    mdp = problem.mdp()
    for start in (1e5, -1e5, 1e13):
        solution = solve(
            mdp,
            choice.regularizer(problem),
            1e-6,
            method,
            initial_value=np.full(mdp.n_states, start),
        )
        assert_enclosed(solution, truth(problem.name, choice.name))
        assert distance(solution.value, truth(problem.name, choice.name)) <= 1e-6


def test_the_callers_start_is_left_alone():
    mdp = BY_NAME["garnet"].mdp()
    start = np.ones(mdp.n_states)
    for method in METHODS:
        solve(mdp, Sparse(0.5), 1e-6, method, initial_value=start)
        assert np.array_equal(start, np.ones(mdp.n_states))


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


@pytest.mark.parametrize("regularizer", [Soft(0.5), Tsallis(0.5, q=0.5)], ids=repr)
def test_full_supports_never_certify_an_action_out(regularizer):
    solution = solve(BY_NAME["many-actions"].mdp(), regularizer, 1e-9)
    assert np.all(solution.certified_support >= 0)
    assert np.all(solution.policy > 0)


@every_method
def test_running_out_of_sweeps_says_how_far_it_came(method):
    problem = BY_NAME["discount-0.999"]
    with pytest.raises(NotConverged) as caught:
        solve(problem.mdp(), Soft(0.5), 1e-5, method, max_sweeps=2)
    assert "\n" not in str(caught.value)
    assert "max_sweeps" in str(caught.value)
    assert f"{caught.value.solution.sweeps} sweeps" in str(caught.value)
    assert 2 <= caught.value.solution.sweeps <= 2 + 3
    assert isinstance(caught.value, RuntimeError)


@every_method
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_start_that_is_not_finite_is_refused(bad, method):
    mdp = BY_NAME["garnet"].mdp()
    start = np.zeros(mdp.n_states)
    start[3] = bad
    with pytest.raises(InvalidInput, match="value") as caught:
        solve(mdp, Sparse(0.5), initial_value=start, method=method)
    assert "3" in str(caught.value)


def test_a_start_of_the_wrong_shape_is_refused():
    mdp = BY_NAME["garnet"].mdp()
    for shape in ((mdp.n_states + 1,), (mdp.n_states, 1), ()):
        with pytest.raises(InvalidInput, match="shape"):
            solve(mdp, Sparse(0.5), initial_value=np.zeros(shape))


@pytest.mark.parametrize("tolerance", [0.0, -1e-6, np.nan, np.inf])
def test_a_tolerance_that_is_none_is_refused(tolerance):
    with pytest.raises(InvalidInput, match="tolerance"):
        solve(BY_NAME["garnet"].mdp(), Hard(), tolerance)


def test_an_unknown_method_is_refused_with_the_choices():
    with pytest.raises(InvalidInput) as caught:
        solve(BY_NAME["garnet"].mdp(), Hard(), method="value-iteration")
    for method in METHODS:
        assert method in str(caught.value)


@pytest.mark.parametrize("sweeps", [0, -1, True, 2.5])
def test_a_budget_without_sweeps_is_refused(sweeps):
    with pytest.raises(InvalidInput, match="max_sweeps"):
        solve(BY_NAME["garnet"].mdp(), Hard(), max_sweeps=sweeps)


def test_a_budget_may_be_any_kind_of_integer():
    with pytest.raises(NotConverged, match="after 3 sweeps"):
        solve(BY_NAME["garnet"].mdp(), Hard(), 1e-9, "value_iteration", max_sweeps=np.int64(3))


@every_method
def test_a_start_far_beyond_all_values_is_overcome(method):
    mdp = garnet(200, 4, 5)
    solution = solve(mdp, Sparse(0.1), method=method, initial_value=np.full(200, 1e300))
    assert np.abs(solution.value - solve(mdp, Sparse(0.1)).value).max() < 1e-6


@every_method
def test_a_start_at_the_end_of_float64_is_named(method):
    mdp = garnet(200, 4, 5)
    with pytest.raises(NotConverged, match=r"initial_value reaches 1.*at most: start nearer"):
        solve(mdp, Sparse(0.1), method=method, initial_value=np.full(200, 1.7e308))


def test_the_bellman_operator_refuses_what_is_no_mdp_or_regulariser():
    mdp = BY_NAME["garnet"].mdp()
    with pytest.raises(InvalidInput, match=r"bellman needs a regularizer .* not 'x'"):
        bellman(mdp, "x", np.zeros(mdp.n_states))
    with pytest.raises(InvalidInput, match="bellman needs an MDP, not str"):
        bellman("x", Hard(), [0.0])


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
    signal.setitimer(signal.ITIMER_REAL, seconds)
    for _ in range(100_000):
        with contextlib.suppress(NotConverged):
            solve(mdp, Sparse(0.5), 1e-6, method)


@every_method
def test_an_interrupt_comes_through_at_any_moment_and_leaves_no_file(method, tmp_path, monkeypatch):
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
        for seconds in np.linspace(0.001, 0.009, 100):
            with pytest.raises(KeyboardInterrupt):
                solve_until_interrupted(mdp, method, seconds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert list(tmp_path.iterdir()) == []


def test_repr_tells_the_story_in_a_few_lines():
    solution = solve(BY_NAME["garnet"].mdp(), Sparse(0.5), 1e-6)
    text = repr(solution)
    assert len(text) < 600
    for word in ("parse", "converged", solution.method, str(solution.sweeps)):
        assert word in text


def test_solution_is_frozen():
    solution = solve(BY_NAME["garnet"].mdp(), Sparse(0.5), 1e-6)
    with pytest.raises(AttributeError):
        solution.value = None


def test_integer_arguments_and_plain_names_are_enough():
    mdp = MDP([[[1.0], [1.0]]], [[1.0, 0.0]], 0)
    assert solve(mdp, Hard()).value[0] == 1.0
    assert solve(mdp, Sparse(1), 1).converged


regularizers = st.one_of(
    st.tuples(st.just(0.0), st.just(2.0)),
    st.tuples(
        st.sampled_from([1e-3, 0.05, 0.5, 2.0, 30.0]),
        st.sampled_from([0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.0, 2.5, 4.0, 10.0]),
    ),
)


@settings(max_examples=120)
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
    rows = random_rows(
        seed,
        states,
        actions,
        lambda g: spread * (g.normal() + shift),
        branches=branches,
        ragged=ragged,
        ending=0.5 if ends else 0.0,
        terminal=(states - 1,) if ends and states > 1 else (),
    )
    terminal = (states - 1,) if ends and states > 1 else ()
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


def test_policy_iteration_takes_few_steps_where_value_iteration_takes_many():
    problem = BY_NAME["discount-0.999"]
    for choice in CHOICES:
        newton = solve(
            problem.mdp(), choice.regularizer(problem), problem.tolerance, "policy_iteration"
        )
        assert newton.iterations <= 20


def test_error_is_half_the_widest_enclosure():
    solution = solve(BY_NAME["garnet"].mdp(), Sparse(0.5), 1e-3, "value_iteration")
    half = np.max(solution.upper - solution.lower) / 2
    assert math.isclose(solution.error, half, rel_tol=1e-6)


def test_a_first_guess_that_leads_nowhere_is_dropped():
    mdp = maze(300, discount=0.999)
    guess = solve(mdp, Hard(), tolerance=375.0).value
    assert solve(mdp, Sparse(1.0), initial_value=guess).sweeps < 150


def test_a_first_guess_with_more_rounding_than_the_tolerance_is_overcome():
    """The rounding of values around 1e5 is above the tolerance, that of the right ones is not."""
    mdp = gridworld(5, noise=0.0, discount=0.99999)
    cold = solve(mdp, Hard())
    warm = solve(mdp, Hard(), initial_value=np.full(25, 1e5))
    assert np.abs(warm.value - cold.value).max() <= 2e-6
    assert warm.sweeps < 60


def test_rounding_is_not_blamed_before_the_error_is_down_to_it():
    """A circle in which one step pays: nothing is known of it for some sweeps."""
    n = 19
    steps = [np.roll(np.eye(n), shift, axis=1) for shift in (1, -1)]
    rewards = np.zeros((n, 2))
    rewards[0, 0] = 1.0
    solution = solve(MDP(steps, rewards, 0.99999), Hard(), 8e-6)
    assert solution.value.max() == pytest.approx(1 / (1 - 0.99999**2), abs=8e-6)


@pytest.mark.parametrize("seed", range(195, 202))
@pytest.mark.parametrize("regularizer", [Soft(0.1), Sparse(0.00155)], ids=str)
@pytest.mark.parametrize("method", ["auto", "policy_iteration"])
def test_long_circles_next_to_no_discount_take_few_sweeps(regularizer, method, seed):
    """BiCGSTAB with incomplete factors gets nowhere in some of these: the exact ones have to."""
    mdp = garnet(35, 1, 1, discount=1 - 1e-5, seed=seed)
    solution = solve(mdp, regularizer, 1e-3, method, max_sweeps=60)
    after, now = mdp.transitions.indices, np.arange(35)
    discount, gamma, exact = 1.0, mdp.discount, np.zeros(35)
    for _ in range(3_500_000 // 100):  # the states run into circles of at most 35
        exact += discount * mdp.rewards[now]
        now, discount = after[now], discount * gamma
    tail = discount * np.abs(mdp.rewards).max() / (1 - gamma)
    assert np.abs(solution.value - exact).max() <= tail + 1e-3


@pytest.mark.parametrize("distance", [1e-2, 2e-4, 1.1e-4, 1e-4, 1e-6, 1e-8])
def test_newton_solves_a_circle_next_to_no_discount(distance):
    """Two states that lead to each other: pivots of 1 - gamma^2 must not be lost."""
    mdp = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]], 1.0 - distance)
    gamma = Fraction(mdp.discount)
    exact = [1 / (1 - gamma**2), gamma / (1 - gamma**2)]
    tolerance = 1e-6 / distance
    solution = solve(mdp, Hard(), tolerance, "policy_iteration", max_sweeps=20)
    for value, right in zip(solution.value, exact):
        assert abs(Fraction(float(value)) - right) <= tolerance
