"""Policy iteration: its solutions against the exact oracle, closed forms and its own monotony."""

from fractions import Fraction

import numpy as np
import pytest

from planning_problems import BY_NAME, CHOICES
from solution_checks import covering, every_check
from tsallax import MDP, Hard, Soft, Sparse, evaluate, solve
from tsallax.planning.bellman import Bellman
from tsallax.planning.methods.policy_iteration import PolicyIteration
from tsallax.problems import garnet


@every_check
@covering("policy_iteration")
def test_policy_iteration_keeps_its_promises(check, problem, choice):
    check(problem, choice, "policy_iteration")


@pytest.mark.parametrize("regularizer", [Sparse(0.5), Soft(0.5)], ids=str)
def test_a_step_is_the_value_of_the_greedy_policy(regularizer):
    mdp = garnet(40, 4, 5, discount=0.9)
    operator, method = Bellman(mdp, regularizer), PolicyIteration(1e-9)
    start = solve(mdp, regularizer, 1e-3).value.copy()
    certificate = operator.certify(operator.start(start))
    iterate, state = method.step(operator, certificate, method.init())
    expected = evaluate(mdp, certificate.policy.weights, regularizer).value
    np.testing.assert_allclose(iterate.value, expected, rtol=0, atol=0.02 * certificate.error)
    assert sorted(state.order) == list(range(40))
    assert iterate.sweeps == 0


def test_steps_are_monotone_and_below_the_optimum():
    """From the value of a policy on, which the first step gives."""
    mdp = garnet(40, 4, 5, discount=0.99)
    best = solve(mdp, Sparse(0.1), 1e-10)
    operator, method = Bellman(mdp, Sparse(0.1)), PolicyIteration(1e-10)
    iterate, state = operator.start(np.zeros(40)), method.init()
    for step in range(6):
        before = iterate.value
        iterate, state = method.step(operator, operator.certify(iterate), state)
        slack = 0.02 * np.abs(best.upper - before).max() + 1e-5  # of the linear system
        assert np.all(iterate.value <= best.upper + slack)
        assert step == 0 or np.all(iterate.value >= before - slack)
    np.testing.assert_allclose(iterate.value, best.value, rtol=0, atol=1e-6)


def test_few_steps_are_taken_where_value_iteration_takes_many():
    problem = BY_NAME["discount-0.999"]
    for choice in CHOICES:
        newton = solve(
            problem.mdp(), choice.regularizer(problem), problem.tolerance, "policy_iteration"
        )
        assert newton.iterations <= 20


@pytest.mark.parametrize("seed", range(195, 202))
@pytest.mark.parametrize("regularizer", [Soft(0.1), Sparse(0.00155)], ids=str)
@pytest.mark.parametrize("method", ["auto", "policy_iteration"])
def test_long_cycles_with_a_discount_near_one_take_few_sweeps(regularizer, method, seed):
    """BiCGSTAB with incomplete factors stalls in some of these: the exact factors are needed."""
    mdp = garnet(35, 1, 1, discount=1 - 1e-5, seed=seed)
    solution = solve(mdp, regularizer, 1e-3, method, max_sweeps=60)
    system = np.eye(35) - mdp.discount * mdp.transitions.toarray()
    exact = np.linalg.solve(system, mdp.rewards)
    assert np.abs(solution.value - exact).max() <= 1e-3 + 1e-6


@pytest.mark.parametrize("distance", [1e-2, 2e-4, 1.1e-4, 1e-4, 1e-6, 1e-8])
def test_a_cycle_with_a_discount_near_one_is_solved(distance):
    """Two states that lead to each other: pivots of 1 - gamma^2 must not cancel."""
    mdp = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]], 1.0 - distance)
    gamma = Fraction(mdp.discount)
    exact = [1 / (1 - gamma**2), gamma / (1 - gamma**2)]
    tolerance = 1e-6 / distance
    solution = solve(mdp, Hard(), tolerance, "policy_iteration", max_sweeps=20)
    for value, right in zip(solution.value, exact):
        assert abs(Fraction(float(value)) - right) <= tolerance
