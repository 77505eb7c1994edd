"""Policy evaluation against exact rationals; performance bounds and gap certificates."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from oracle import evaluate_policy, exact_mdp, exact_policy, optimal_value
from planning_problems import (
    BY_NAME,
    CHOICES,
    PROBLEMS,
    Problem,
    Row,
    gauss,
    puterman_two_state,
    random_policy,
    random_rows,
    stored,
    truth,
)
from tsallax import problems
from tsallax.errors import InvalidInput
from tsallax.planning.evaluation import evaluate, gap_certificate, performance_bound
from tsallax.planning.linear_systems import PolicySystem
from tsallax.planning.mdp import MDP
from tsallax.planning.solver import solve
from tsallax.regularizer import Hard, Soft, Sparse, Tsallis

every_choice = pytest.mark.parametrize("choice", CHOICES, ids=lambda c: c.name)
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)


def floats(rationals):
    return np.array([float(x) for x in rationals])


def assert_evaluates(evaluation, mdp, pair_policy, alpha, q):
    """Every field of an `Evaluation` against the rational evaluation of the same policy."""
    exact = exact_mdp(mdp)
    expected = evaluate_policy(exact, exact_policy(exact, pair_policy), alpha, q)
    size = max(1e-300, float(max(abs(v) for v in expected.value)), np.max(np.abs(mdp.rewards)))
    close = 1e-12 * size / float(1 - exact.modulus)
    np.testing.assert_allclose(evaluation.value, floats(expected.value), rtol=0, atol=close)
    q_values = mdp.rewards + mdp.discount * (mdp.transitions @ floats(expected.value))
    present = np.zeros((mdp.n_states, mdp.n_actions), bool)
    present[mdp.state_of, mdp.action_of] = True
    np.testing.assert_allclose(evaluation.q[present], q_values, rtol=0, atol=close)
    assert np.all(evaluation.q[~present] == -np.inf)

    visitation = floats(expected.visitation)
    np.testing.assert_allclose(evaluation.visitation, visitation, rtol=1e-10, atol=1e-12)
    pairs = pair_policy * visitation[mdp.state_of]
    table = evaluation.state_action_visitation
    np.testing.assert_allclose(table[present], pairs, rtol=1e-10, atol=1e-12)
    assert np.all(table[~present] == 0)

    assert evaluation.expected_return == pytest.approx(float(expected.expected_return), abs=close)
    assert evaluation.regularized_return == pytest.approx(
        float(expected.regularized_return), abs=close
    )
    if alpha:
        assert evaluation.entropy == pytest.approx(float(expected.entropy), rel=1e-9, abs=1e-12)
    else:
        assert evaluation.entropy == 0
    # J = d'V = rho'r, and the same with the entropy on both sides
    assert mdp.initial @ evaluation.value == pytest.approx(evaluation.regularized_return, abs=close)
    assert table[present] @ mdp.rewards == pytest.approx(evaluation.expected_return, abs=close)


@every_choice
@every_problem
def test_evaluation_is_the_exact_one(problem, choice):
    mdp = problem.mdp()
    policy = random_policy(mdp, 1)
    alpha, q = choice.alpha(problem), choice.q
    evaluation = evaluate(mdp, policy, choice.regularizer(problem))
    assert_evaluates(evaluation, mdp, policy, alpha, q)


@every_problem
def test_tables_and_pair_vectors_are_the_same_policy(problem):
    mdp = problem.mdp()
    policy = random_policy(mdp, 2)
    one = evaluate(mdp, policy, Sparse(0.5))
    two = evaluate(mdp, mdp.table(policy, 0.0), Sparse(0.5))
    for name in ("value", "q", "visitation", "state_action_visitation"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert one.expected_return == two.expected_return


@every_problem
def test_integers_are_a_deterministic_policy(problem):
    mdp = problem.mdp()
    rng = np.random.default_rng(3)
    actions = np.zeros(mdp.n_states, int)
    policy = np.zeros(mdp.n_pairs)
    for s in np.flatnonzero(~mdp.terminal):
        pair = rng.integers(mdp.pointer[s], mdp.pointer[s + 1])
        actions[s] = mdp.action_of[pair]
        policy[pair] = 1.0
    assert_evaluates(evaluate(mdp, actions), mdp, policy, 0, 2)
    regularized = evaluate(mdp, actions, Sparse(0.5))
    assert regularized.entropy == 0
    assert_evaluates(regularized, mdp, policy, 0.5, 2)


@every_problem
def test_without_a_regulariser_the_value_is_that_of_the_rewards(problem):
    mdp = problem.mdp()
    policy = random_policy(mdp, 4)
    plain = evaluate(mdp, policy)
    assert_evaluates(plain, mdp, policy, 0, 2)
    assert plain.regularized_return == plain.expected_return
    assert np.array_equal(plain.value, evaluate(mdp, policy, Hard()).value)


def test_an_initial_state_weighs_the_returns():
    problem = puterman_two_state()
    mdp = problem.mdp("pairs", initial=[0.25, 0.75])
    policy = np.array([0.5, 0.5, 1.0])
    assert_evaluates(evaluate(mdp, policy, Soft(0.5)), mdp, policy, 0.5, 1)


def test_puterman_drifting_for_ever_is_worth_its_closed_form():
    mdp = puterman_two_state(0.95).mdp("pairs", initial=0)
    evaluation = evaluate(mdp, np.array([0, 0]))
    np.testing.assert_allclose(evaluation.value, [-60 / 7, -20.0], rtol=1e-13)
    stay = 1 / (1 - 0.95 / 2)
    np.testing.assert_allclose(evaluation.visitation, [stay, 20 - stay], rtol=1e-12)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    size=st.tuples(st.integers(1, 5), st.integers(1, 4)),
    ends=st.booleans(),
    discount=st.sampled_from([0.0, 0.5, 0.99, 0.9999]),
    choice=st.sampled_from(CHOICES),
)
def test_any_policy_of_any_small_mdp_is_evaluated(seed, size, ends, discount, choice):
    states, actions = size
    terminal = (states - 1,) if ends and states > 1 else ()
    rows = random_rows(
        seed, states, actions, gauss, ragged=True, terminal=terminal, ending=0.5 if ends else 0.0
    )
    problem = Problem("any", states, rows, discount, terminal)
    mdp = problem.mdp()
    policy = random_policy(mdp, seed)
    evaluation = evaluate(mdp, policy, choice.regularizer(problem))
    assert_evaluates(evaluation, mdp, policy, choice.alpha(problem), choice.q)


@pytest.mark.parametrize(("states", "discount"), [(500, 0.999), (3000, 0.99), (3000, 0.9999)])
def test_a_policy_that_goes_in_circles_is_evaluated(states, discount):
    """A random ring, in which the value is a geometric series and every Krylov method is slow."""
    draw = np.random.default_rng(states)
    ring, reward = draw.permutation(states), draw.normal(size=states)
    steps = csr_array((np.ones(states), (ring, np.roll(ring, -1))), shape=(states, states))
    start = int(ring[0])
    mdp = MDP([steps, steps], np.stack([reward, reward + 0.01], 1), discount, initial=start)
    pi = np.full((states, 2), 0.5)
    found = evaluate(mdp, pi, Sparse(0.1))
    weight = discount ** np.arange(states) / -np.expm1(states * np.log(discount))
    assert found.visitation[ring] == pytest.approx(weight, rel=1e-9)
    expected = math.fsum(weight * (reward[ring] + 0.005))
    assert found.expected_return == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found.entropy == pytest.approx(0.25 / (1 - discount), rel=1e-9)
    assert found.value[start] == pytest.approx(found.regularized_return, rel=1e-9, abs=1e-9)
    assert abs(found.value[start] - (expected + 0.025 / (1 - discount))) <= found.error + 1e-9


@pytest.mark.parametrize("reward", [0.0, 1e-30, -1e-12])
def test_a_policy_that_earns_next_to_nothing_is_evaluated(reward):
    """What others could earn sets the scale of its error."""
    half = np.full((2, 2, 2), 0.5)
    found = evaluate(MDP(half, [[reward, 1.0]] * 2, 0.9), [0, 0])
    assert found.expected_return == pytest.approx(10 * reward, rel=1e-9)
    assert found.value == pytest.approx(np.full(2, 10 * reward), rel=1e-9)


def test_an_evaluation_that_is_no_use_is_refused(monkeypatch):
    """Where neither solver gets anywhere, nothing comes back rather than something wrong."""
    mdp = problems.forest(states=5, discount=0.9)
    nothing = lambda self, b, *_, **__: np.zeros_like(b)  # noqa: E731
    for name in ("solve", "solve_transposed", "solve_exactly"):
        monkeypatch.setattr(PolicySystem, name, nothing)
    with pytest.raises(InvalidInput, match="cannot be had in float64"):
        evaluate(mdp, np.zeros(5, int))


def test_evaluating_the_solved_policy_gives_the_solved_value():
    for choice in CHOICES:
        problem = BY_NAME["terminal"]
        mdp, regularizer = problem.mdp(), choice.regularizer(problem)
        solution = solve(mdp, regularizer, 1e-9)
        evaluation = evaluate(mdp, solution.policy, regularizer)
        np.testing.assert_allclose(evaluation.value, solution.value, rtol=0, atol=1e-8)


@every_problem
def test_a_row_that_does_not_sum_to_one_is_refused_by_name(problem):
    mdp = problem.mdp()
    policy = random_policy(mdp, 5)
    state = int(np.flatnonzero(~mdp.terminal)[-1])
    policy[mdp.pointer[state]] += 0.01
    for given_policy in (policy, mdp.table(policy, 0.0)):
        with pytest.raises(InvalidInput, match=rf"state {state}\b") as caught:
            evaluate(mdp, given_policy)
        assert "\n" not in str(caught.value)


def test_mass_on_a_missing_action_is_refused_by_name():
    mdp = puterman_two_state().mdp()
    for mass in (0.5, -0.5, 1e-3, np.nan):
        with pytest.raises(InvalidInput, match="state 1"):
            evaluate(mdp, np.array([[0.5, 0.5], [1.0 - mass, mass]]))
        with pytest.raises(InvalidInput, match="state 1"):
            evaluate(mdp, np.array([[0.5, 0.5], [1.0, mass]]))
    with pytest.raises(InvalidInput, match="state 1"):
        evaluate(mdp, np.array([0, 1]))


def test_masses_on_missing_actions_that_cancel_are_refused():
    mdp = Problem("gaps", 2, (Row(0, 0, 1.0, {1: 1.0}), Row(1, 2, 1.0, {0: 1.0})), 0.9).mdp()
    with pytest.raises(InvalidInput, match="state 0"):
        evaluate(mdp, np.array([[1.0, 0.5, -0.5], [0.0, 0.0, 1.0]]))


def test_what_a_table_says_about_terminal_states_is_ignored():
    mdp = BY_NAME["ladder-5"].mdp()
    assert np.array_equal(evaluate(mdp, np.ones((5, 1))).value, evaluate(mdp, np.ones(4)).value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.25])
def test_a_probability_that_is_none_is_refused(bad):
    mdp = puterman_two_state().mdp()
    with pytest.raises(InvalidInput, match="state 0"):
        evaluate(mdp, np.array([bad, 1 - bad, 1.0]))


@pytest.mark.parametrize("distance", [1e-6, 9e-10, -9e-10, 1e-13, 1e-15])
def test_an_index_next_to_one_is_not_taken_for_one(distance):
    mdp = MDP([[[0.9, 0.1], [1, 0]], [[0, 1], [0.8, 0.2]]], [[1, 0.5], [0, -0.5]], 0.99)
    regularizer = Tsallis(1.0, 1.0 - distance)
    solution = solve(mdp, regularizer, 1e-10)
    found = evaluate(mdp, solution.policy, regularizer)
    assert (found.value >= solution.lower - found.error).all()
    assert found.error < 1e-9


def test_a_policy_of_the_wrong_shape_is_refused():
    mdp = BY_NAME["garnet"].mdp()
    for shape in ((mdp.n_pairs + 1,), (mdp.n_states, mdp.n_actions + 1), (2, 2, 2), ()):
        with pytest.raises(InvalidInput, match="shape"):
            evaluate(mdp, np.ones(shape))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda f: evaluate(f, [0, 0, 0], "sparse"),
            "evaluate needs a regularizer .* not 'sparse'",
        ),
        (lambda f: evaluate(f, [[0, 1], [1], [1]]), "policy must be a regular array"),
        (lambda f: evaluate(f, "stay"), "policy must be real numbers"),
        (lambda f: performance_bound(f, "sparse"), "performance_bound needs a regularizer"),
        (lambda f: performance_bound(f, Sparse(np.array([0.1, 0.2]))), "needs one alpha"),
        (lambda f: performance_bound("f", Sparse(0.1)), "performance_bound needs an MDP, not str"),
        (lambda f: gap_certificate(f, "s"), "gap_certificate needs what solve returns, not 's'"),
        (lambda f: gap_certificate("f", solve(f, Hard())), "gap_certificate needs an MDP, not str"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_in_one_line(call, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        call(problems.forest())
    assert "\n" not in str(caught.value)


def test_an_action_outside_the_range_is_refused():
    mdp = BY_NAME["garnet"].mdp()
    for action in (-1, mdp.n_actions):
        actions = np.zeros(mdp.n_states, int)
        actions[2] = action
        with pytest.raises(InvalidInput, match="state 2"):
            evaluate(mdp, actions)


@pytest.mark.parametrize("n", [1, 2, 9, 49])
@pytest.mark.parametrize("discount", [0.0, 0.9, 0.99])
def test_performance_bound_is_the_theorems_formula(n, discount):
    rows = random_rows(0, 3, n, gauss)
    mdp = Problem("bound", 3, rows, discount).mdp()
    alpha = 0.3
    horizon = alpha / (1 - discount)
    assert performance_bound(mdp, Hard()) == 0
    assert performance_bound(mdp, Sparse(alpha)) == pytest.approx(horizon * (n - 1) / (2 * n))
    assert performance_bound(mdp, Soft(alpha)) == pytest.approx(horizon * math.log(n))
    for q in (0.5, 1.5, 3.0):
        largest = (1 - n ** (1 - q)) / (q * (q - 1))
        assert performance_bound(mdp, Tsallis(alpha, q=q)) == pytest.approx(horizon * largest)
    assert performance_bound(mdp, Tsallis(alpha, q=2.0)) == performance_bound(mdp, Sparse(alpha))
    assert performance_bound(mdp, Tsallis(alpha, q=1.0)) == performance_bound(mdp, Soft(alpha))


def test_performance_bound_of_ragged_actions_is_no_looser_than_the_theorems():
    mdp = BY_NAME["garnet-ragged"].mdp()
    n, horizon = mdp.n_actions, 0.5 / (1 - mdp.discount)
    assert 0 < performance_bound(mdp, Sparse(0.5)) <= horizon * (n - 1) / (2 * n) * (1 + 1e-12)


@every_choice
@every_problem
def test_gap_certificate_covers_the_true_gap_and_keeps_to_the_bound(problem, choice):
    mdp, regularizer = problem.mdp(), choice.regularizer(problem)
    exact = stored(problem.name)
    solution = solve(mdp, regularizer, problem.tolerance)
    certificate = gap_certificate(mdp, solution)
    assert certificate.shape == (mdp.n_states,)
    reached = evaluate_policy(exact, exact_policy(exact, solution.pair_policy)).reward_value
    best = truth(problem.name, "hard").lower
    for s, (high, low) in enumerate(zip(best, reached)):
        assert high >= low
        assert Fraction(float(certificate[s])) >= high - low, f"state {s}"
    bound = performance_bound(mdp, regularizer)
    assert np.all(certificate <= bound * (1 + 1e-9) + 4 * problem.tolerance)
    assert np.all(certificate[mdp.terminal] == 0)


def test_gap_certificate_is_tighter_than_the_theorem_on_a_sparse_solution():
    mdp = BY_NAME["garnet"].mdp()
    solution = solve(mdp, Sparse(0.1), 1e-8)
    assert np.max(gap_certificate(mdp, solution)) < 0.9 * performance_bound(mdp, Sparse(0.1))


def test_gap_certificate_covers_a_rough_solution_too():
    problem = BY_NAME["garnet"]
    mdp = problem.mdp()
    exact = stored("garnet")
    best = optimal_value(exact, 0, 2).lower
    for choice in CHOICES:
        for tolerance in (1.0, 1e-1, 1e-2):
            solution = solve(mdp, choice.regularizer(problem), tolerance, "value_iteration")
            certificate = gap_certificate(mdp, solution)
            reached = evaluate_policy(exact, exact_policy(exact, solution.pair_policy)).reward_value
            for s, (high, low) in enumerate(zip(best, reached)):
                assert Fraction(float(certificate[s])) >= high - low
