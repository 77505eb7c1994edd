"""Backward induction against exact rationals and 70 digits, with and without discount."""

import math
import sys
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import bellman, exact_mdp, exact_policy, to_fraction, to_mpf, value_of_steps
from planning_problems import CHOICES, Problem, forest_three, gauss, random_rows
from refusals import refused
from tsallax import (
    MDP,
    FiniteHorizonSolution,
    Hard,
    InvalidInput,
    NotConverged,
    Sparse,
    memory,
    solve,
)


def exact_values(mdp, regularizer, final, steps):
    """V_T, ..., V_0, in rationals where the regulariser allows it and to 70 digits elsewhere."""
    exact = exact_mdp(mdp)
    alpha, q = Fraction(float(regularizer.alpha)), Fraction(regularizer.q)
    v = [Fraction(float(x)) for x in final]
    if alpha > 0 and q != 2:
        v = [to_mpf(x) for x in v]
    values = [v]
    for _ in range(steps):
        values.append(bellman(exact, values[-1], alpha, q))
    return [[to_fraction(x) for x in v] for v in values]


# at q = 50, 70 digits are too few for the oracle: p = 0.02 moves tau by p^49/49 = 1e-85
@pytest.mark.parametrize("choice", [c for c in CHOICES if c.q < 50], ids=lambda c: c.name)
@given(seed=st.integers(0, 10**6), discount=st.sampled_from([1.0, 0.9, 0.0]))
@settings(max_examples=6)
def test_every_step_is_within_its_proven_error(choice, seed, discount):
    rng = np.random.default_rng(seed)
    rows = random_rows(seed, 5, 3, gauss, ragged=True, terminal=(4,), ending=0.3)
    problem = Problem("random", 5, rows, discount, (4,), alpha=float(rng.choice([0.01, 1.0])))
    mdp, steps = problem.mdp(), 5
    final = np.where(mdp.terminal, 0.0, rng.normal(size=5))
    regularizer = choice.regularizer(problem)
    solution = solve(mdp, regularizer, horizon=steps, final_value=final)
    truth = exact_values(mdp, regularizer, final, steps)
    for t in range(steps + 1):
        lower, upper = solution.lower_at(t), solution.upper_at(t)
        for s, v in enumerate(truth[steps - t]):
            assert Fraction(lower[s]) <= v <= Fraction(upper[s])
            assert abs(Fraction(solution.values[t, s]) - v) <= Fraction(solution.errors[t])
    assert solution.error <= 1e-13 * (1 + np.abs(solution.values).max()) * steps
    exact = exact_mdp(mdp)
    policies = [exact_policy(exact, solution.pair_policy_at(t)) for t in range(steps)]
    alpha, q = Fraction(float(regularizer.alpha)), Fraction(regularizer.q)
    worth = value_of_steps(exact, policies, final, alpha, q)
    assert all(Fraction(low) <= w for low, w in zip(solution.lower, worth))


def test_the_error_grows_with_the_horizon_and_stays_a_bound_over_a_thousand_steps():
    # one state, r = 0.1: V_t = (T - t) 0.1, and the sums of 0.1 round in every step
    mdp = MDP([[[1.0]]], [[0.1]], 1.0)
    solution = solve(mdp, Hard(), horizon=1000)
    errors = [
        abs(Fraction(v) - (1000 - t) * Fraction(0.1)) for t, v in enumerate(solution.values[:, 0])
    ]
    assert max(errors) > 0
    assert all(e <= Fraction(bound) for e, bound in zip(errors, solution.errors))
    assert (np.diff(solution.errors) < 0).all()
    assert solution.errors[-1] == 0


def test_a_long_horizon_gives_the_value_of_an_infinite_one():
    mdp = forest_three().mdp()
    finite, infinite = solve(mdp, Sparse(1.0), horizon=300), solve(mdp, Sparse(1.0), 1e-9)
    np.testing.assert_allclose(finite.value, infinite.value, atol=1e-8)
    np.testing.assert_allclose(finite.policy_at(0), infinite.policy, atol=1e-7)


def test_a_horizon_is_the_sum_of_its_parts():
    mdp = forest_three().mdp().with_discount(1.0)
    whole = solve(mdp, Sparse(0.5), horizon=12)
    late = solve(mdp, Sparse(0.5), horizon=5)
    early = solve(mdp, Sparse(0.5), horizon=7, final_value=late.value)
    np.testing.assert_allclose(early.values, whole.values[:8], rtol=1e-14)


def test_tables_of_a_step_agree_with_its_values():
    mdp = forest_three().mdp()
    solution = solve(mdp, Sparse(2.0), horizon=4)
    for t in range(4):
        q, pi = solution.q_at(t), solution.policy_at(t)
        expected = mdp.rewards + 0.9 * (mdp.transitions @ solution.values[t + 1])
        np.testing.assert_allclose(q.ravel(), expected)
        bonus = 2.0 * (1 - (pi**2).sum(1)) / 2
        np.testing.assert_allclose((pi * q).sum(1) + bonus, solution.values[t])
        proven = solution.certified_support_at(t)
        assert ((proven == 1) <= (pi > 0)).all()
        assert ((proven == -1) <= (pi == 0)).all()
        assert (proven != 0).any()
    assert solution.regularized_return == pytest.approx(mdp.initial @ solution.value)
    assert repr(solution).startswith("FiniteHorizonSolution(Sparse(alpha=2.0), 4 steps: error <= ")


def test_terminal_states_stay_at_zero():
    mdp = MDP([[0.0, 1.0]], [3.0], 1.0, pairs=[(0, 0)], terminal=[1])
    solution = solve(mdp, Hard(), horizon=3)
    assert solution.values.tolist() == [[3.0, 0.0]] * 3 + [[0.0, 0.0]]
    assert solution.lower[1] == solution.upper[1] == 0.0


def test_parallel_sweeps_give_the_same_values():
    from tsallax import problems

    mdp = problems.garnet(1500, 5, 8, seed=3)
    solution = solve(mdp, Sparse(0.1), horizon=3)
    v = np.zeros(1500)
    for t in (2, 1, 0):
        q = (mdp.rewards + mdp.discount * (mdp.transitions @ v)).reshape(1500, 5)
        pi = solution.policy_at(t)
        v = (pi * q).sum(1) + 0.1 * (1 - (pi**2).sum(1)) / 2
        np.testing.assert_allclose(solution.values[t], v, rtol=1e-12)


T, R = [[[1.0, 0.0], [0.0, 1.0]]] * 2, [[0.0, 1.0]] * 2
ENDING = MDP([[0.0, 1.0]], [3.0], 1.0, pairs=[(0, 0)], terminal=[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be an integer of at least 1, got 0"),
        ({"horizon": 2.0}, "horizon must be an integer of at least 1, got 2.0"),
        ({"final_value": [0, 0]}, "final_value needs a horizon: give horizon, such as"),
        ({"horizon": 3, "final_value": [0]}, r"final_value must have shape \(2,\), got \(1,\)"),
        ({"horizon": 3, "final_value": "x"}, "final_value is an array of numbers, not str"),
        ({"horizon": 3, "final_value": [0, math.nan]}, "final_value of state 1 is nan: it must be"),
        ({"horizon": 3, "method": "policy_iteration"}, "is backward induction: leave method out"),
        ({"horizon": 3, "initial_value": [0, 0]}, "no meaning with a horizon: leave initial_value"),
        ({"horizon": 3, "max_sweeps": 9}, "has no meaning with a horizon: leave max_sweeps out"),
        ({"horizon": 3, "device": "gpu"}, "has no meaning with a horizon: leave device out"),
        ({"horizon": 3, "precision": "float32"}, "with a horizon: leave precision out"),
        ({"horizon": 10**15}, "1,000,000,000,000,000 steps and 2 states, .* free: solve in parts"),
    ],
)  # fmt: skip
def test_what_cannot_be_solved_is_refused_in_a_line(options, message):
    with pytest.raises(InvalidInput, match=message) as refusal:
        solve(MDP(T, R, 0.9), Hard(), **options)
    assert "\n" not in str(refusal.value)


def test_a_terminal_state_has_no_final_value():
    with pytest.raises(InvalidInput, match=r"of state 1 is 5\.0: a terminal state is worth 0"):
        solve(ENDING, Hard(), horizon=2, final_value=[0.0, 5.0])


def test_overflow_is_refused():
    with pytest.raises(InvalidInput, match="the values of step 1 overflow float64"):
        solve(MDP([[[1.0]]], [[1e308]], 1.0), Hard(), horizon=3, tolerance=1e300)


def test_a_tolerance_below_rounding_raises_with_the_solution():
    with pytest.raises(NotConverged, match="tolerance 1e-20 is below what float64") as caught:
        solve(MDP(T, R, 0.9), Hard(), 1e-20, horizon=3)
    solution = caught.value.solution
    assert isinstance(solution, FiniteHorizonSolution)
    assert not solution.converged
    assert replace(solution, tolerance=1.0).converged


@pytest.mark.parametrize("step", [-1, 3, 0.5])
def test_steps_outside_the_horizon_are_refused(step):
    solution = solve(MDP(T, R, 0.9), Hard(), horizon=3)
    for call in (solution.policy_at, solution.q_at, solution.certified_support_at):
        with pytest.raises(InvalidInput, match="step must be an integer of at least 0 and below 3"):
            call(step)


def test_columns_are_one_row_for_each_step_and_pair_with_names(monkeypatch):
    mdp = MDP(
        [[0.5, 0.5], [1.0, 0.0]], [1.0, 2.0], 0.5, pairs=[(0, 0), (0, 2)], terminal=["end"],
        state_names=["start", "end"], action_names=["a", "b", "c"],
    )  # fmt: skip
    solution = solve(mdp, Sparse(2.0), horizon=3)
    columns = solution.to_columns()
    assert list(columns) == ["step", "state", "action", "value", "q", "probability"]
    assert columns["step"].tolist() == [0, 0, 1, 1, 2, 2]
    assert columns["state"].tolist() == ["start"] * 6
    assert columns["action"].tolist() == ["a", "c"] * 3
    for t in range(3):
        rows = columns["step"] == t
        assert columns["value"][rows].tolist() == [solution.values[t, 0]] * 2
        assert columns["q"][rows].tolist() == solution.q_at(t)[0, [0, 2]].tolist()
        assert columns["probability"][rows].tolist() == solution.policy_at(t)[0, [0, 2]].tolist()
    some = solution.to_columns(steps=[2, 0])
    assert some["step"].tolist() == [2, 2, 0, 0]
    assert some["value"].tolist() == columns["value"][[4, 5, 0, 1]].tolist()
    assert [len(column) for column in solution.to_columns([]).values()] == [0] * 6
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    assert np.array_equal(solution.to_frame(range(1))["q"], columns["q"][:2])
    with refused("a step must be an integer of at least 0 and below 3, got 3"):
        solution.to_columns([3])
    with refused("steps must be a list, such as steps=[0], not 3"):
        solution.to_columns(3)
    monkeypatch.setattr(memory, "available_bytes", lambda device: 100)
    with refused("memory for the columns of 3 steps and 2 pairs", "give fewer steps"):
        solution.to_columns()


def test_an_option_without_meaning_is_named_before_a_tolerance_of_zero():
    with pytest.raises(InvalidInput, match="relative_tolerance has no meaning with a horizon"):
        solve(MDP([[[1.0]]], [[1.0]], 1.0), Hard(), 0, relative_tolerance=1e-3, horizon=3)
