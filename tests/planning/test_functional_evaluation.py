"""Evaluations of models from functions against those of the same MDPs stored."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from planning.functional_models import LEVELS, stock_mdp, stock_model
from refusals import refused
from tsallax import (
    MDP,
    Hard,
    InvalidInput,
    Sparse,
    bellman,
    evaluate,
    gap_certificate,
    memory,
    performance_bound,
    solve,
)
from tsallax.planning import functional_evaluation

MODEL, STORED = stock_model(), stock_mdp()
UNIFORM = STORED.table(1.0 / np.diff(STORED.pointer)[STORED.state_of])


def make_walk():
    """0 is terminal; elsewhere an action moves down by one, at a cost, or stays."""
    return MDP.from_functions(
        lambda s, a: ((s, a), -1.0 * a, s > 0),
        lambda x, e: (x[0] - x[1] * e, 1.0, False),
        states=4, actions=2, events=2, probabilities=[0.25, 0.75], discount=0.8, initial=3,
    )  # fmt: skip


WALK = make_walk()
"""Tests share models: sweeps are compiled once for each."""


def assert_same(found, stored):
    close = found.error + stored.error
    assert found.error <= 1e-11
    np.testing.assert_allclose(found.value, stored.value, rtol=0, atol=close)
    assert found.expected_return == pytest.approx(stored.expected_return, rel=1e-12)
    assert found.entropy == pytest.approx(stored.entropy, rel=1e-12, abs=1e-14)
    assert found.regularized_return == pytest.approx(stored.regularized_return, rel=1e-12)
    np.testing.assert_allclose(found.visitation, stored.visitation, rtol=1e-10, atol=1e-13)


def test_a_table_is_worth_what_it_is_in_the_stored_mdp():
    assert_same(evaluate(MODEL, UNIFORM, Sparse(0.5)), evaluate(STORED, UNIFORM, Sparse(0.5)))


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_the_entropy_has_all_digits_whatever_the_scale_of_rewards(scale):
    model = stock_model(decide=lambda s, a: (s + a, scale * (1.0 + a), s + a < LEVELS))
    visits = evaluate(STORED, UNIFORM).visitation
    exact = math.fsum(visits * 0.5 * (1.0 - (UNIFORM**2).sum(1)))
    assert evaluate(model, UNIFORM, Sparse(0.5)).entropy == pytest.approx(exact, rel=1e-14)


def test_terminal_states_are_worth_nothing_whatever_their_action():
    found, stored = evaluate(WALK, [1, 1, 0, 1]), evaluate(WALK.to_mdp(), [0, 1, 0, 1])
    assert_same(found, stored)
    assert found.value[0] == 0.0
    assert found.entropy == 0.0


def test_where_bicgstab_stalls_plain_sweeps_end_at_the_same_value(monkeypatch):
    monkeypatch.setattr(
        functional_evaluation, "bicgstab", lambda matrix, b, tolerance: (jnp.zeros_like(b), 1.0)
    )
    assert_same(evaluate(WALK, [0, 1, 1, 1]), evaluate(WALK.to_mdp(), [0, 1, 1, 1]))


@pytest.mark.slow
def test_the_gap_of_a_solution_is_bounded_also_where_it_was_found_in_float32():
    model, regularizer = MODEL, Sparse(2.0)
    solution = solve(model, regularizer, 1e-3, precision="float32")
    found = evaluate(model, solution, regularizer)
    stored = evaluate(STORED, solution.policy, regularizer)
    assert np.abs(found.value - stored.value).max() <= 1e-4  # the rounding of the policy
    assert (found.value >= solution.lower - found.error).all()
    best = solve(STORED, Hard(), 1e-10)
    lost = best.value - evaluate(model, solution).value
    gap = gap_certificate(model, solution)
    assert (lost <= gap).all()
    assert (gap <= performance_bound(model, regularizer) + 2 * solution.error + 1e-9).all()
    assert gap.max() > 1e-2  # the entropy does cost something here
    assert performance_bound(model, regularizer) == performance_bound(STORED, regularizer)


def test_the_plain_value_of_a_solution_is_as_accurate_as_the_solution():
    for tolerance in (1.0, 1e-3, 1e-9):
        solution = solve(MODEL, Sparse(2.0), tolerance)
        found = functional_evaluation.plain_value(solution)
        exact = evaluate(STORED, solution.policy)
        assert np.abs(found.value - exact.value).max() <= found.error + exact.error
        assert found.error <= 0.2 * solution.error + 1e-11


def test_lists_of_a_policy_that_do_not_fit_into_memory_are_refused(guessed, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda device=None: 100)
    with refused("not enough memory for the policy of 4 states as lists of", "lower alpha"):
        gap_certificate(WALK, guessed)


def test_the_bellman_operator_is_that_of_the_stored_mdp_also_at_terminal_states():
    v = np.array([7.0, 1.0, -2.0, 3.0])
    np.testing.assert_allclose(
        bellman(WALK, Sparse(0.5), v), bellman(WALK.to_mdp(), Sparse(0.5), v), rtol=1e-14
    )


@pytest.fixture(scope="module")
def guessed():
    guess = [1000.0, 750.0, 562.5, 421.875]  # what the others are worth if 0 is worth 1000
    return solve(WALK, Hard(), initial_value=guess)


def test_a_guess_of_the_value_of_terminal_states_does_not_change_the_solution(guessed):
    found, exact = guessed, solve(WALK.to_mdp(), Hard(), 1e-10)
    assert (np.abs(found.value - exact.value) <= found.error + exact.error).all()


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0, 0, 0, 0, 4, 0], "state 4 has no action 4"),
        ([0.0, 0.0, 0.0, 0.0, 1.0, 0.0], "has integers, not float64: pass policy.astype"),
        ([0, 0, 0, 0, 2, 0], "state 4 has no action 2"),
        (np.eye(4)[[0, 0, 0, 0, 3, 0]], "state 4 has no action 3"),
        (np.eye(4)[[0] * 6] * [[1], [1], [0.5], [1], [1], [1]], "state 2 sums to 0.5"),
        (np.eye(4)[[0] * 6] * [[1], [1], [0], [1], [1], [1]], "state 2 sums to 0"),
        (-np.ones((6, 4)), "probability of action 0 in state 0 is -1"),
        ([0, 1], "shape"),
        ("wait", "policy"),
    ],
)
def test_what_is_no_policy_is_refused(policy, message):
    with pytest.raises(InvalidInput, match=message):
        evaluate(MODEL, policy)


def test_a_solution_of_another_model_is_refused(guessed):
    for model in (make_walk(), STORED):
        with pytest.raises(InvalidInput, match="another MDP"):
            gap_certificate(model, guessed)
    with pytest.raises(InvalidInput, match="another MDP"):
        evaluate(MODEL, guessed)


@pytest.mark.parametrize("option", [{"horizon": 3}, {"final_value": np.zeros(6)}])
def test_a_finite_horizon_is_refused_by_the_argument_that_is_given(option):
    message = rf"use model.to_mdp\(\) for one\): leave {next(iter(option))} out"
    with pytest.raises(InvalidInput, match=message):
        evaluate(MODEL, np.zeros(6, int), **option)
