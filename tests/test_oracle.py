"""The oracle itself: against closed forms, textbook values, and policies it did not choose."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from oracle import (
    CONTEXT,
    ExactMDP,
    Pair,
    action_values,
    evaluate_policy,
    greedy,
    max_entropy,
    optimal_support,
    optimal_value,
    solve_linear,
    sparsemax,
    summing_to_one,
    to_fraction,
    to_mpf,
    tsallis_entropy,
)
from planning_problems import PROBLEMS, bandit, puterman_two_state, stored, truth
from solution_checks import two_choices

INDICES = [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)]
TEXTBOOK = [problem for problem in PROBLEMS if problem.hard_value is not None]


def one_state(rewards, discount="9/10"):
    pairs = tuple(Pair(a, Fraction(r), ((0, Fraction(1)),)) for a, r in enumerate(rewards))
    return ExactMDP((pairs,), Fraction(discount), (Fraction(1),))


def contains(enclosure, state, number, slack=Fraction(1, 10**40)):
    return enclosure.lower[state] - slack <= number <= enclosure.upper[state] + slack


@pytest.mark.parametrize("problem", TEXTBOOK, ids=lambda p: p.name)
def test_hard_values_are_the_textbooks(problem):
    value = optimal_value(problem.exact(), 0, 2).middle
    np.testing.assert_allclose(value, problem.hard_value, rtol=1e-12)


def test_puterman_switches_its_action_with_the_discount():
    patient, hasty = (puterman_two_state(g).exact() for g in (0.95, 0.5))
    assert optimal_support(patient, optimal_value(patient, 0, 2), 0, 2)[0] == [1, -1]
    assert optimal_support(hasty, optimal_value(hasty, 0, 2), 0, 2)[0] == [-1, 1]
    assert np.isclose(optimal_value(patient, 0, 2).middle[0], -60 / 7)


@pytest.mark.parametrize("q", INDICES)
def test_equal_actions_are_worth_reward_plus_largest_entropy(q):
    alpha, n = Fraction(1, 2), 5
    enclosure = optimal_value(bandit(n, 1.5, 0.5).exact(), alpha, q)
    expected = (Fraction(3, 2) + alpha * to_fraction(max_entropy(n, q))) * 2
    assert contains(enclosure, 0, expected)


def test_two_sparse_actions_follow_the_quadratic_formula():
    r, alpha, gamma = (Fraction(1), Fraction(3, 4)), Fraction(1, 2), Fraction(9, 10)
    gap = (r[0] - r[1]) / alpha
    p = (1 + gap) / 2
    reward = p * r[0] + (1 - p) * r[1] + alpha * (1 - p**2 - (1 - p) ** 2) / 2
    enclosure = optimal_value(one_state(r), alpha, 2)
    assert contains(enclosure, 0, reward / (1 - gamma), 0)


def test_two_soft_actions_follow_the_logarithm():
    alpha = Fraction(1, 2)
    enclosure = optimal_value(one_state((1, 2)), alpha, 1)
    expected = to_mpf(alpha) * CONTEXT.log(CONTEXT.exp(2) + CONTEXT.exp(4)) * 10
    assert contains(enclosure, 0, to_fraction(expected))


@pytest.mark.parametrize("q", INDICES)
def test_max_entropy_is_the_closed_form(q):
    for n in (1, 2, 7):
        if q == 1:
            expected = CONTEXT.log(n)
        else:
            expected = (1 - CONTEXT.mpf(n) ** (1 - to_mpf(q))) / (to_mpf(q) * (to_mpf(q) - 1))
        assert abs(to_mpf(Fraction(to_fraction(max_entropy(n, q)))) - expected) < 1e-60


def test_sparsemax_is_the_projection_onto_the_simplex():
    rng = np.random.default_rng(0)
    for _ in range(50):
        z = [Fraction(float(x)) for x in rng.normal(size=rng.integers(1, 7))]
        tau, p, value = sparsemax(z)
        assert sum(p) == 1
        assert all(x == max(y - tau, 0) for x, y in zip(p, z))
        mean = sum(a * b for a, b in zip(p, z))
        assert value == mean + tsallis_entropy(p, Fraction(2))


@pytest.mark.parametrize("q", INDICES)
def test_no_distribution_beats_the_greedy_one(q):
    rng = np.random.default_rng(1)
    for _ in range(10):
        n = int(rng.integers(2, 6))
        z = [to_mpf(Fraction(float(x))) for x in rng.normal(size=n)]
        best, policy = greedy(z, Fraction(1), q)
        assert abs(sum(policy) - 1) < 1e-60
        assert all(p >= 0 for p in policy)
        rivals = [rng.dirichlet(np.full(n, 0.5)) for _ in range(20)]
        rivals += [0.999 * np.array([float(p) for p in policy]) + 0.001 * r for r in rivals]
        for rival in rivals:
            p = [Fraction(float(x)) for x in rival]
            p = [to_mpf(x / sum(p)) for x in p]
            assert sum(a * b for a, b in zip(p, z)) + tsallis_entropy(p, q) <= best + 1e-60


def test_linear_systems_are_solved_exactly():
    matrix = [[Fraction(0), Fraction(2)], [Fraction(3), Fraction(1, 7)]]
    assert solve_linear(matrix, [Fraction(1), Fraction(5)]) == [Fraction(23, 14), Fraction(1, 2)]


@two_choices
def test_enclosures_are_narrow_and_met_by_their_greedy_policy(problem, choice):
    """The greedy policy's exact value is a lower bound of V* that reaches the enclosure."""
    alpha, q = Fraction(choice.alpha(problem)), Fraction(choice.q)
    mdp, enclosure = stored(problem.name), truth(problem.name, choice.name)
    scale = 1 + max(abs(v) for v in enclosure.upper)
    assert 0 <= enclosure.width < Fraction(1, 10**20) * scale
    number = (lambda x: x) if alpha == 0 or q == 2 else to_mpf
    policy = []
    for row in action_values(mdp, [number(v) for v in enclosure.lower]):
        weights = [to_fraction(p) for p in greedy(row, alpha, q)[1]] if row else []
        policy.append(summing_to_one(weights))
    value = evaluate_policy(mdp, policy, alpha, q).value
    for reached, lower, upper in zip(value, enclosure.lower, enclosure.upper):
        assert lower - scale / 10**20 <= reached <= upper + scale / 10**40


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_hard_value_beats_every_deterministic_policy(problem):
    mdp = stored(problem.name)
    best = truth(problem.name, "hard").upper
    choices = [range(max(1, len(row))) for row in mdp.pairs]
    rng = np.random.default_rng(0)
    for _, choice in zip(range(20), product(*(rng.permutation(list(c)) for c in choices))):
        chosen = zip(choice, mdp.pairs)
        policy = [[Fraction(int(i == c)) for i in range(len(row))] for c, row in chosen]
        assert all(a <= b for a, b in zip(evaluate_policy(mdp, policy).value, best))


def test_visitation_and_returns_agree_in_both_directions():
    """J = d'V = rho'r, and rho sums to 1/(1-gamma) where nothing ends."""
    mdp = stored("garnet")
    rng = np.random.default_rng(2)
    draws = [rng.dirichlet(np.ones(len(row))) for row in mdp.pairs]
    policy = [summing_to_one([Fraction(float(x)) for x in draw]) for draw in draws]
    result = evaluate_policy(mdp, policy, Fraction(1, 2), 2)
    rewards = [
        sum(w * pair.reward for w, pair in zip(weights, row))
        for weights, row in zip(policy, mdp.pairs)
    ]
    entropies = [tsallis_entropy(weights, Fraction(2)) for weights in policy]
    assert sum(a * b for a, b in zip(result.visitation, rewards)) == result.expected_return
    assert sum(a * b for a, b in zip(result.visitation, entropies)) == result.entropy
    assert abs(sum(result.visitation) - 1 / (1 - mdp.discount)) < Fraction(1, 10**10)


def test_an_action_exactly_on_the_threshold_is_out():
    """Exactly on the threshold (gap equal to alpha) the inferior action has probability 0."""
    mdp, alpha = one_state((1, "1/2"), 0), Fraction(1, 2)
    assert optimal_support(mdp, optimal_value(mdp, alpha, 2), alpha, 2) == [[1, -1]]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_stored_mdp_is_the_one_that_was_given(problem):
    """Up to the rescaling of rows whose floats do not quite sum to one."""
    for ours, theirs in zip(problem.exact().pairs, stored(problem.name).pairs):
        assert [(p.action, p.reward) for p in ours] == [(p.action, p.reward) for p in theirs]
        for a, b in zip(ours, theirs):
            assert [s for s, _ in a.successors] == [s for s, _ in b.successors]
            for (_, x), (_, y) in zip(a.successors, b.successors):
                assert abs(x - y) <= 1e-14 * float(x)
