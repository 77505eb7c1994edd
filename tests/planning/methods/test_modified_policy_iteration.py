"""Modified policy iteration: its solutions against the exact oracle, its steps one by one."""

import math

import numpy as np
import pytest

from patient_problems import chain, cycle
from planning_problems import BY_NAME
from solution_checks import covering, every_check
from tsallax import Hard, Sparse, evaluate, problems, solve
from tsallax.planning.bellman import Bellman
from tsallax.planning.methods.modified_policy_iteration import (
    MAX_EVALUATION_SWEEPS,
    ModifiedPolicyIteration,
    estimated_work,
    forcing_term,
)


@every_check
@covering("modified_policy_iteration")
def test_modified_policy_iteration_keeps_its_promises(check, problem, choice):
    check(problem, choice, "modified_policy_iteration")


def test_steps_evaluate_the_greedy_policy_partially():
    """Nearer to the policy's value than Uv by gamma to the number of sweeps, the first excepted."""
    mdp, regularizer = problems.garnet(40, 4, 5, discount=0.9), Sparse(0.5)
    operator, method = Bellman(mdp, regularizer), ModifiedPolicyIteration(1e-12)
    iterate, state = operator.start(np.zeros(40)), method.init()
    for _ in range(6):
        certificate = operator.certify(iterate)
        target = evaluate(mdp, certificate.policy.weights, regularizer).value
        iterate, state = method.step(operator, certificate, state)
        assert method.min_sweeps <= state.max_sweeps <= MAX_EVALUATION_SWEEPS
        if state.policies == 1:
            assert np.array_equal(iterate.value, certificate.updated)
            continue
        before = np.abs(operator.shifted(certificate.updated, certificate.middle) - target).max()
        factor = mdp.discount**state.sweeps
        assert np.abs(iterate.value - target).max() <= factor * before + 1e-12
    assert state.policies == 6


def test_a_step_depends_on_its_arguments_alone():
    mdp = BY_NAME["discount-0.999"].mdp()
    operator, method = Bellman(mdp, Hard()), ModifiedPolicyIteration(1e-9)
    certificate = operator.certify(operator.start(np.ones(mdp.n_states)))
    state = method.observe(certificate, method.init())
    once, after = method.step(operator, certificate, state)
    twice, again = method.step(operator, certificate, state)
    assert np.array_equal(once.value, twice.value)
    assert after == again


def test_evaluations_grow_where_the_value_of_the_policy_is_missing():
    """One action: the policy is right from the start."""
    solution = solve(
        problems.garnet(200, 1, 3, discount=0.99), Hard(), 1e-9, "modified_policy_iteration"
    )
    assert solution.iterations < 40


@pytest.mark.parametrize("problem", [chain, cycle], ids=lambda problem: problem.__name__)
@pytest.mark.parametrize("regularizer", [Hard(), Sparse(0.1)], ids=str)
def test_a_tolerance_below_the_rounding_of_many_sweeps_is_reached(problem, regularizer):
    """States that take turns: sweeps end in a cycle of rounded values, 1e-7 from the optimum."""
    mdp = problem(0.999)
    solution = solve(mdp, regularizer, 1e-8, "modified_policy_iteration")
    assert solution.error <= 1e-8
    best = solve(mdp, regularizer, 1e-8)
    assert np.all(solution.lower <= best.upper)
    assert np.all(best.lower <= solution.upper)


@pytest.mark.parametrize(
    ("before", "after", "spent", "ratio", "work"),
    [(1.0, 0.1, 5, 100.0, 10.0), (1.0, 0.5, 3, 8.0, 9.0), (1.0, 1.0, 3, 8.0, math.inf)],
)
def test_the_remaining_work_is_extrapolated_geometrically(before, after, spent, ratio, work):
    assert estimated_work(before, after, spent, ratio) == pytest.approx(work)


def test_a_policy_is_evaluated_the_more_accurately_the_faster_the_span_falls():
    terms = [forcing_term(1.0, after) for after in (2.0, 1.0, 0.5, 0.1, 0.03, 0.0)]
    assert terms == sorted(terms, reverse=True)
    assert terms[0] == forcing_term(math.nan, 1.0) == 0.1
    assert terms[-1] > 0.0


def test_the_remaining_work_is_finite_where_nothing_is_left():
    assert 0 <= estimated_work(1.0, 0.0, 8, 10.0) < 1
    assert estimated_work(1e-320, 0.0, 8, 10.0) < 8
