"""Discount 1: the proof that every policy ends, and all that rests on it, in exact rationals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from planning_problems import CHOICES, Problem, Row, random_policy
from tsallax import (
    MDP,
    Hard,
    InvalidInput,
    Solution,
    Sparse,
    evaluate,
    gap_certificate,
    performance_bound,
    problems,
    q_learning,
    simulate,
    solve,
    solve_path,
)
from tsallax.planning.bellman import kernel_arrays
from tsallax.planning.termination_proof import longest_durations

METHODS = ("auto", "value_iteration", "modified_policy_iteration", "policy_iteration")


def absorbing(seed, n=5, alpha=0.3):
    """States that every action leaves for the next one with some probability; the last one ends."""
    rng = np.random.default_rng(seed)
    rows = []
    for s in range(n):
        for a in range(rng.integers(1, 4)):
            onward = float(rng.choice([0.3, 0.6, 1.0]))
            back = rng.dirichlet(np.ones(s + 1)) * (1 - onward)
            successors = {j: float(p) for j, p in enumerate(back) if p > 0}
            if s < n - 1:
                successors[s + 1] = onward
            stop = onward if s == n - 1 else 0.0
            rows.append(Row(s, a, float(rng.normal()), successors, stop))
    return Problem("absorbing", n, tuple(rows), 1.0, alpha=alpha)


def exact_duration(exact):
    """The longest expected duration from every state, in rationals."""
    ones = tuple(
        tuple(oracle.Pair(p.action, Fraction(1), p.successors) for p in row) for row in exact.pairs
    )
    counting = oracle.ExactMDP(ones, exact.discount, exact.initial)
    return oracle.optimal_value(counting, 0, 2).lower


def enclosed_value(exact, alpha, q):
    """V* in rationals, and a bound on its error: the residual times the longest duration."""
    alpha, q = Fraction(alpha), Fraction(q)
    if alpha == 0:
        return oracle.optimal_value(exact, 0, 2).lower, Fraction(0)
    approximate = oracle._newton(exact, alpha, q)
    value = [oracle.to_fraction(v) for v in approximate]
    given_to = value if q == 2 else approximate
    image = [oracle.to_fraction(v) for v in oracle.bellman(exact, given_to, alpha, q)]
    residual = max(abs(a - b) for a, b in zip(image, value)) + oracle.WIDENING
    return value, residual * max(exact_duration(exact))


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_the_duration_is_proven_and_close_to_the_longest(seed):
    mdp = absorbing(seed).mdp()
    proven = longest_durations(mdp, kernel_arrays(mdp))
    for bound, exact in zip(proven, exact_duration(oracle.exact_mdp(mdp)), strict=True):
        assert exact <= Fraction(bound) <= exact * Fraction(12, 10)


@pytest.mark.parametrize("choice", [c for c in CHOICES if c.q < 50], ids=lambda c: c.name)
@given(seed=st.integers(0, 10**6), method=st.sampled_from(METHODS))
@settings(max_examples=6)
def test_the_enclosure_holds_the_exact_value(choice, seed, method):
    problem = absorbing(seed)
    mdp, regularizer = problem.mdp(), choice.regularizer(problem)
    solution = solve(mdp, regularizer, 1e-8, method)
    value, error = enclosed_value(oracle.exact_mdp(mdp), choice.alpha(problem), choice.q)
    assert error < Fraction(1, 10**40)
    assert (solution.lower <= solution.value).all()
    assert (solution.value <= solution.upper).all()
    for low, v, high in zip(solution.lower, value, solution.upper):
        assert Fraction(low) <= v + error
        assert v - error <= Fraction(high)
    assert solution.error <= 1e-8


@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_evaluations_and_gaps_are_bounds(seed):
    problem = absorbing(seed)
    mdp, exact = problem.mdp(), oracle.exact_mdp(problem.mdp())
    pi = random_policy(mdp, seed)
    found = evaluate(mdp, pi, Sparse(0.3))
    truth = oracle.evaluate_policy(exact, oracle.exact_policy(exact, pi), Fraction(0.3), 2)
    close = Fraction(found.error) + Fraction(1, 10**12)  # the policy's rounding
    assert all(abs(Fraction(a) - b) <= close for a, b in zip(found.value, truth.value))
    assert found.error < 1e-9
    assert found.expected_return == pytest.approx(float(truth.expected_return), abs=1e-9)
    np.testing.assert_allclose(found.visitation, [float(x) for x in truth.visitation], rtol=1e-9)

    solution = solve(mdp, Sparse(0.3))
    best = oracle.optimal_value(exact, 0, 2).lower
    plain = oracle.evaluate_policy(exact, oracle.exact_policy(exact, solution.pair_policy))
    gaps = gap_certificate(mdp, solution)
    for s in range(mdp.n_states):
        assert best[s] - plain.value[s] <= Fraction(gaps[s])
    assert gaps.max() <= performance_bound(mdp, Sparse(0.3)) + 1e-5


def gambler(n, p):
    """Bet 1 or as much as possible at odds p until 0 or n is reached; reaching n earns 1."""
    pairs, rows, rewards = [], [], []
    for s in range(1, n):
        for a, bet in enumerate((1, min(s, n - s))):
            row = np.zeros(n + 1)
            row[s + bet] += p
            row[s - bet] += 1 - p
            pairs.append((s, a))
            rows.append(row)
            rewards.append(p if s + bet == n else 0.0)
    return MDP(rows, rewards, 1.0, pairs=pairs, terminal=[0, n])


def test_the_fair_gambler_wins_with_his_share_and_plays_for_long():
    mdp = gambler(64, 0.5)
    solution = solve(mdp, Hard(), 1e-9)
    expected = np.append(np.arange(64) / 64, 0.0)
    np.testing.assert_allclose(solution.value, expected, atol=1e-9)
    w = longest_durations(mdp, kernel_arrays(mdp))
    s = np.arange(65)
    steps = s * (64 - s)  # betting 1
    assert (steps <= w).all()
    assert (w <= 1.2 * steps).all()
    width = solution.upper - solution.lower
    assert width[1] < 0.2 * width[32]  # narrow where episodes are short


def test_a_discount_next_to_one_gives_nearly_the_same_value():
    mdp = gambler(20, 0.45)
    near = solve(mdp.with_discount(1 - 1e-7), Sparse(0.01)).value
    np.testing.assert_allclose(solve(mdp, Sparse(0.01)).value, near, atol=1e-4)


def test_files_simulations_and_paths_work_without_discount(tmp_path):
    mdp = gambler(10, 0.5)
    solution = solve(mdp, Sparse(0.01))
    solution.save(tmp_path / "s.npz")
    assert Solution.load(tmp_path / "s.npz").mdp.discount == 1.0
    assert (solution.certified_support != 0).any()
    found = simulate(mdp, solution, 20_000, 0, max_steps=2000)
    assert not found.truncated.any()
    expected = evaluate(mdp, solution).expected_return
    assert abs(found.mean - expected) < 4.5 * found.standard_error
    path = solve_path(mdp, [0.01, 0.1])
    np.testing.assert_allclose(path.values[0], solution.value, atol=3e-6)


FOREVER = {
    "a loop": (
        MDP([[[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [1.0]], 1.0, terminal=[1]),
        "for ever: state 0 by action 0, and again",
    ),
    "a cycle": (
        MDP(
            [[[0, 1.0, 0], [0, 0, 1.0]], [[1.0, 0, 0], [0, 0, 1.0]], [[0, 0, 0]] * 2],
            np.zeros((3, 2)), 1.0, terminal=[2], state_names=[*"abc"], action_names=["on", "out"],
        ),
        r"state 0 \('a'\) by action 0 \('on'\), state 1 \('b'\) by action 0 \('on'\), and again",
    ),
    "no end": (problems.forest().with_discount(1.0), "an episode may go on for ever: state"),
    "a ring": (
        Problem("ring", 9, tuple(Row(s, 0, 0.0, {(s + 1) % 9: 1.0}) for s in range(9)), 1.0).mdp(),
        r"state 3 by action 0, \.\.\. \(9 states\), and again; "
        "use a discount below 1, or a horizon in solve and evaluate$",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREVER)
def test_a_policy_that_never_ends_is_named(name):
    mdp, message = FOREVER[name]
    for call in (
        lambda: solve(mdp, Hard()),
        lambda: performance_bound(mdp, Sparse(1.0)),
    ):
        with pytest.raises(InvalidInput, match=message) as refusal:
            call()
        assert "\n" not in str(refusal.value)
    assert solve(mdp, Hard(), horizon=3).converged


def test_a_policy_that_never_ends_cannot_be_evaluated_and_others_do_not_count():
    mdp, _ = FOREVER["a cycle"]
    assert evaluate(mdp, ["out", "out", None]).value.tolist() == [0.0, 0.0, 0.0]
    message = (
        r"^discount 1 needs an end, and this policy never ends: state 0 \('a'\), state 1 \('b'\), "
        "and again; use a discount below 1, or a horizon$"
    )
    with pytest.raises(InvalidInput, match=message):
        evaluate(mdp, ["on", "on", None])


def test_durations_beyond_float64_are_refused():
    rows = (Row(0, 0, 1.0, {0: 1.0 - 1e-15}, 1e-15), Row(0, 1, 1.0, {}, 1.0))
    with pytest.raises(InvalidInput, match="too many steps to prove it in float64"):
        solve(Problem("slow", 1, rows, 1.0).mdp(), Hard())


def test_learning_needs_a_discount():
    with pytest.raises(InvalidInput, match="discount must be a number of at least 0 and below 1"):
        q_learning(gambler(4, 0.5), Hard(), steps=10)
