"""What every solution must satisfy, against the exact oracle, and the cases to check it on.

A check is a function of a problem, a regulariser and a method. The full product of 24 problems, 7
regularisers and 4 methods is slow; `covering` selects cases in which each problem meets each
method, with four different regularisers, and each regulariser meets each method three times.
"""

from fractions import Fraction

import numpy as np
import pytest

from oracle import (
    evaluate_policy,
    exact_mdp,
    exact_policy,
    greedy,
    to_fraction,
    to_mpf,
    tsallis_entropy,
)
from planning_problems import CHOICES, PROBLEMS, stored, true_support, truth
from tsallax import NotConverged, solve

METHODS = ("value_iteration", "policy_iteration", "modified_policy_iteration", "auto")
EPS = Fraction(float(np.finfo(float).eps))

every_method = pytest.mark.parametrize("method", METHODS)
every_choice = pytest.mark.parametrize("choice", CHOICES, ids=lambda c: c.name)
every_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)


def _selection(*shifts):
    """Parameters (problem, choice): every problem with the regularisers at its place + shift."""
    cases = [
        (problem, CHOICES[(i + shift) % len(CHOICES)])
        for i, problem in enumerate(PROBLEMS)
        for shift in shifts
    ]
    names = [f"{problem.name}-{choice.name}" for problem, choice in cases]
    return pytest.mark.parametrize(("problem", "choice"), cases, ids=names)


def covering(method):
    """Every problem with one regulariser, another one for each method."""
    return _selection(2 * METHODS.index(method))


two_choices = _selection(0, 4)
"""Every problem with two regularisers."""


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
    assert np.all(certified[~present(mdp)] <= 0)


def present(mdp):
    """Which actions the states have, as a table (S, A)."""
    table = np.zeros((mdp.n_states, mdp.n_actions), bool)
    table[mdp.state_of, mdp.action_of] = True
    return table


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
    assert solution.converged is True
    assert_enclosed(solution, enclosure)
    assert distance(solution.value, enclosure) <= Fraction(tolerance)
    assert distance(solution.value, enclosure) <= Fraction(float(solution.error))
    assert solution.error <= tolerance == solution.tolerance
    assert solution.error >= 0.499 * np.max(solution.upper - solution.lower)
    assert 1 <= solution.iterations <= solution.sweeps
    assert 0 <= solution.seconds < 600

    for array in (solution.value, solution.lower, solution.upper):
        assert np.all(array[mdp.terminal] == 0)
    expected_q = mdp.rewards + mdp.discount * (mdp.transitions @ solution.value)
    np.testing.assert_allclose(solution.pair_q, expected_q, rtol=0, atol=tolerance)
    rows = solution.policy[~mdp.terminal]
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-14)
    assert np.all(rows >= 0)
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


def solved_and_certified(problem, choice, method):
    """A solve keeps all its promises, the same from every representation of the MDP."""
    exact, enclosure = stored(problem.name), truth(problem.name, choice.name)
    alpha, q = Fraction(choice.alpha(problem)), Fraction(choice.q)
    first = None
    for representation in problem.representations:
        mdp = problem.mdp(representation)
        assert exact_mdp(mdp) == exact, f"{representation} is stored as another MDP"
        solution = solve(mdp, choice.regularizer(problem), problem.tolerance, method)
        if first is None:
            first = solution
            assert_solves(solution, mdp, exact, enclosure, alpha, q, problem.tolerance)
            assert_certificates_true(solution, mdp, true_support(problem.name, choice.name))
        for name in ("value", "policy", "lower", "upper"):
            assert np.array_equal(getattr(solution, name), getattr(first, name))
    assert first.method == method


def checked(problem, choice, tolerance, method, **options):
    """A solution, finished or not, whose enclosure and certificates hold."""
    mdp = problem.mdp()
    try:
        solution = solve(mdp, choice.regularizer(problem), tolerance, method, **options)
    except NotConverged as unfinished:
        solution = unfinished.solution
    assert solution.converged == (solution.error <= tolerance)
    assert_enclosed(solution, truth(problem.name, choice.name))
    assert_certificates_true(solution, mdp, true_support(problem.name, choice.name))
    np.testing.assert_allclose(solution.policy[~mdp.terminal].sum(axis=1), 1, rtol=0, atol=1e-14)
    return solution


def enclosed_when_sweeps_run_out(problem, choice, method):
    """An unfinished solve is raised with what it has, and its bounds hold."""
    for sweeps in (1, 2, 5):
        checked(problem, choice, problem.tolerance, method, max_sweeps=sweeps)


def accurate_to_rounding(problem, choice, method):
    """A tolerance that float64 allows is reached."""
    exact, enclosure = stored(problem.name), truth(problem.name, choice.name)
    scale = scale_of(exact, enclosure, choice.alpha(problem))
    tolerance = float(1e-12 * scale / (1 - exact.modulus))
    solution = checked(problem, choice, tolerance, method)
    assert solution.converged
    assert distance(solution.value, enclosure) <= Fraction(tolerance)


def refused_below_rounding(problem, choice, method):
    """A tolerance below rounding ends with the reason, and the enclosure holds."""
    with pytest.raises(NotConverged, match="float64") as caught:
        solve(problem.mdp(), choice.regularizer(problem), 1e-300, method)
    assert "\n" not in str(caught.value)
    assert not checked(problem, choice, 1e-300, method).converged


CHECKS = (
    solved_and_certified,
    enclosed_when_sweeps_run_out,
    accurate_to_rounding,
    refused_below_rounding,
)
every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
