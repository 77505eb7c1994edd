"""Policy iteration: its solutions against the exact oracle, closed forms and its own monotony."""

from fractions import Fraction

import numpy as np
import pytest

from oracle import exact_mdp, optimal_value
from patient_problems import PROBLEMS, chain, clusters, grid
from planning_problems import BY_NAME, CHOICES
from solution_checks import assert_enclosed, covering, every_check
from tsallax import MDP, Hard, Soft, Sparse, Tsallis, evaluate, solve
from tsallax.planning.bellman import MAX_FACTORIZATION_WORK, Bellman
from tsallax.planning.linear_systems import PolicySystem
from tsallax.planning.methods.policy_iteration import LOOSE_RESIDUAL, PolicyIteration
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
    assert iterate.sweeps == 0  # of Gauss-Seidel


def test_gauss_seidel_sweeps_follow_every_step_of_a_hard_policy_and_slow_ones_of_others():
    mdp = chain(0.999, 50)
    for regularizer, usual in ((Hard(), 1), (Sparse(1.0), 0)):
        operator, method = Bellman(mdp, regularizer), PolicyIteration(1e-9)
        certificate = operator.certify(operator.start(np.zeros(50)))
        iterate, state = method.step(operator, certificate, method.init())
        assert iterate.sweeps == 1 + usual  # and one of U, for the policy to start with
        certificate = operator.certify(iterate)
        for before, sweeps in ((1e9, usual), (certificate.error, 2)):
            iterate, _ = method.step(operator, certificate, state._replace(error=before))
            assert iterate.sweeps == sweeps


def test_steps_are_monotone_and_below_the_optimum():
    """From the value of a policy on, which the first step gives."""
    mdp = garnet(40, 4, 5, discount=0.99)
    best = solve(mdp, Sparse(0.1), 1e-10)
    operator, method = Bellman(mdp, Sparse(0.1)), PolicyIteration(1e-10)
    iterate, state = operator.start(np.zeros(40)), method.init()
    slack = 0.0
    for step in range(6):
        before, certificate = iterate.value, operator.certify(iterate)
        iterate, state = method.step(operator, certificate, state)
        change = max(abs(certificate.change[0]), abs(certificate.change[1]))
        unsolved = LOOSE_RESIDUAL * change / (1 - mdp.discount)  # of the linear system
        slack, before_last = unsolved + 1e-9, slack
        assert np.all(iterate.value <= best.upper + slack)
        assert step == 0 or np.all(iterate.value >= before - slack - before_last)
    np.testing.assert_allclose(iterate.value, best.value, rtol=0, atol=1e-6)


def test_the_first_policy_is_evaluated_no_more_accurately_than_its_distance_asks_for():
    """A v that is nearly constant after few sweeps, and a policy that is far from it."""
    mdp = clusters(0.999, 10)
    operator, method = Bellman(mdp, Soft(30.0)), PolicyIteration(1e-3)
    certificate = operator.certify(operator.start(None))
    for _ in range(8):
        centre = operator.shifted(certificate.updated, certificate.middle)
        certificate = operator.certify(certificate.iterate(centre))
    start = operator.newton_start(certificate)
    asked = []
    operator.policy_value = lambda *arguments: asked.append(arguments) or (arguments[1], 0.0)
    method.step(operator, certificate, None)
    missing = operator.residual(
        start.certificate.policy.weights, start.certificate.policy.rewards, start.guess
    )
    assert np.abs(certificate.change).max() < 0.01 * np.ptp(missing)
    assert asked[0][2] == pytest.approx(1e-3 * np.ptp(missing))


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("regularizer", [Hard(), Sparse(1.0), Tsallis(1.0, 1.5)], ids=str)
def test_better_states_far_away_are_found_in_few_steps(gap, regularizer):
    """A row of states without an end, in which policies head for one cheap pair after another."""
    mdp = chain(1.0 - gap, 300)
    for method in ("auto", "policy_iteration"):
        assert solve(mdp, regularizer, 1e-6 / gap, method).iterations <= 35


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


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.__name__)
@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("method", ["auto", "policy_iteration"])
def test_few_steps_are_taken_whatever_the_discount(problem, gap, method):
    mdp = problem(1 - gap)
    for regularizer in (Hard(), Sparse(0.01), Sparse(30.0), Soft(0.1), Tsallis(1.0, 1.5)):
        operator = Bellman(mdp, regularizer)
        tolerance = (1e-5 if gap < 1e-6 else 1e-8) * operator.scale / gap
        assert solve(mdp, regularizer, tolerance, method).iterations <= 45, regularizer


FOUR_STATES = MDP(
    [
        [[0.998, 0.002, 0, 0], [0.289, 0.267, 0.444, 0]],
        [[0.96, 0, 0.04, 0], [0, 0, 0.996, 0.004]],
        [[0, 0.988, 0, 0.012], [0, 0, 1, 0]],
        [[0.308, 0, 0, 0.692], [0.072, 0.012, 0.916, 0]],
    ],
    [[0.31, -0.71], [-0.94, 0.26], [0.72, -1.07], [0.11, -1.15]],
    0.99999,
)


def test_hard_policy_iteration_ends_after_as_many_steps_as_policies_change():
    """Systems that are nearly singular must be solved to the accuracy that the value needs."""
    exact = optimal_value(exact_mdp(FOUR_STATES), 0, 2)
    solution = solve(FOUR_STATES, Hard(), 0.1, "policy_iteration")
    assert solution.iterations <= 8
    assert_enclosed(solution, exact)


@pytest.mark.parametrize("regularizer", [Sparse(30.0), Soft(30.0)], ids=str)
@pytest.mark.parametrize("method", ["auto", "policy_iteration"])
def test_a_certificate_that_rises_before_it_falls_is_no_reason_to_give_up(regularizer, method):
    solution = solve(grid(0.99999, 30), regularizer, 0.3, method)
    assert solution.iterations <= 40


def test_random_graphs_are_not_factored():
    """A complete factorisation would fill in and take minutes."""
    operator = Bellman(garnet(3000, 1, 4, discount=1 - 1e-6), Hard())
    certificate = operator.certify(operator.start(None))
    order = np.arange(3000, dtype=np.uint32)
    system = PolicySystem(operator.arrays, certificate.policy.weights, order)
    assert system.factorization_work(MAX_FACTORIZATION_WORK / 10) == np.inf
    tolerance = 1e-12 * certificate.size
    v, residual = operator.policy_value(certificate, certificate.updated, 1e-8, order)
    assert residual <= 1e-8 + tolerance
    after, _, _ = operator.policy_sweeps(certificate, v, 1, np.inf)
    assert np.abs(after - v).max() == residual
