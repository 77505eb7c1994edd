"""Evaluation over a finite horizon against exact rationals, step by step."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import exact_mdp, exact_policy, to_fraction, tsallis_entropy, value_of_steps
from planning_problems import Problem, gauss, random_policy, random_rows
from tsallax import InvalidInput, Soft, Sparse, evaluate, problems, solve


def exact_evaluation(mdp, policies, final, alpha, q):
    """value, visitation, J and entropy, by the definitions, in rationals."""
    exact = exact_mdp(mdp)
    rows = [exact_policy(exact, pi) for pi in policies]
    v = value_of_steps(exact, rows, final, alpha, q)
    d, visitation = list(exact.initial), [Fraction(0)] * mdp.n_states
    total = entropy = Fraction(0)
    for policy in rows:
        following = [Fraction(0)] * mdp.n_states
        for s, row in enumerate(exact.pairs):
            visitation[s] += d[s]
            if row:
                entropy += d[s] * to_fraction(tsallis_entropy(policy[s], q))
            for p, pair in zip(policy[s], row):
                total += d[s] * p * pair.reward
                for j, chance in pair.successors:
                    following[j] += exact.discount * d[s] * p * chance
        d = following
    total += sum(x * Fraction(float(f)) for x, f in zip(d, final))
    return v, visitation, total, entropy


@given(st.integers(0, 10**6), st.sampled_from([1.0, 0.8]), st.sampled_from([Sparse, Soft]))
@settings(max_examples=15)
def test_policies_of_a_finite_horizon_are_evaluated(seed, discount, kind):
    rows = random_rows(seed, 5, 3, gauss, ragged=True, terminal=(4,), ending=0.3)
    mdp = Problem("random", 5, rows, discount, (4,)).mdp()
    final = np.where(mdp.terminal, 0.0, np.random.default_rng(seed).normal(size=5))
    policies = [random_policy(mdp, seed + t) for t in range(4)]
    regularizer = kind(0.7)
    found = evaluate(mdp, policies.__getitem__, regularizer, horizon=4, final_value=final)
    q = Fraction(regularizer.q)
    value, visitation, total, entropy = exact_evaluation(mdp, policies, final, Fraction(0.7), q)
    assert all(abs(Fraction(a) - b) <= Fraction(found.error) for a, b in zip(found.value, value))
    assert found.error < 1e-12
    np.testing.assert_allclose(found.visitation, [float(x) for x in visitation], atol=1e-14)
    assert found.expected_return == pytest.approx(float(total), abs=1e-13)
    assert found.entropy == pytest.approx(float(entropy), abs=1e-13)
    assert found.regularized_return == pytest.approx(mdp.initial @ found.value, abs=1e-12)
    inside = ~mdp.terminal
    pairs = found.state_action_visitation.sum(1)
    np.testing.assert_allclose(pairs[inside], found.visitation[inside], atol=1e-14)


def test_a_finite_solution_is_worth_its_value():
    mdp = problems.forest().with_discount(1.0)
    solution = solve(mdp, Sparse(2.0), horizon=9, final_value=[1.0, 2.0, 3.0])
    found = evaluate(mdp, solution, Sparse(2.0))
    np.testing.assert_allclose(found.value, solution.value, atol=1e-12)
    assert found.regularized_return == pytest.approx(solution.regularized_return)
    np.testing.assert_allclose(found.q, solution.q_at(0), atol=1e-12)


def test_the_final_value_of_a_solution_counts_after_its_last_step():
    mdp = problems.forest()
    solution = solve(mdp, Sparse(2.0), horizon=9, final_value=[1.0, 2.0, 3.0])
    expected = evaluate(mdp, solution)
    assert np.array_equal(evaluate(mdp, solution, horizon=9).value, expected.value)
    zero = evaluate(mdp, solution, horizon=9, final_value=np.zeros(3))
    assert (zero.value < expected.value).all()
    shorter = evaluate(mdp, solution, horizon=5)
    same = evaluate(mdp, solution.policy_at, horizon=5, final_value=np.zeros(3))
    assert np.array_equal(shorter.value, same.value)


def test_a_long_horizon_has_the_values_of_an_infinite_one():
    mdp = problems.forest()
    infinite = evaluate(mdp, [0, 1, 0])
    finite = evaluate(mdp, [0, 1, 0], horizon=400)
    np.testing.assert_allclose(finite.value, infinite.value, rtol=1e-12)
    np.testing.assert_allclose(finite.visitation, infinite.visitation, rtol=1e-12)
    np.testing.assert_allclose(finite.q, infinite.q, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"final_value": [0, 0, 0]}, "final_value needs a horizon"),
        ({"horizon": 0}, "horizon must be an integer of at least 1"),
        ({"horizon": 2, "final_value": [0]}, "final_value must have shape"),
    ],
)
def test_horizons_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        evaluate(problems.forest(), [0, 0, 0], **options)
