"""Simulated episodes: returns against `evaluate`, frequencies against the MDP, reproducibility."""

import io
import math
import sys

import numba
import numpy as np
import pytest

from planning_problems import BY_NAME, Problem, Row, gauss, random_policy, random_rows
from tsallax import (
    MDP,
    Hard,
    InvalidInput,
    Sparse,
    evaluate,
    problems,
    simulate,
    solve,
)

Z = 4.5
"""Standard errors allowed: a right mean is outside with probability 7e-6."""


def random_mdp(seed, discount=0.9):
    rows = random_rows(seed, 6, 3, gauss, ragged=True, terminal=(5,), ending=0.2)
    return Problem("random", 6, rows, discount, (5,)).mdp()


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_return_is_the_expected_return(seed):
    mdp = random_mdp(seed)
    policy = random_policy(mdp, seed)
    expected = evaluate(mdp, policy).expected_return
    found = simulate(mdp, policy, 20_000, seed)
    assert abs(found.mean - expected) <= Z * found.standard_error + found.truncation_bias
    assert found.standard_error < 0.05


def test_the_mean_return_of_a_finite_horizon_includes_the_final_value():
    mdp = random_mdp(7, discount=1.0)
    final = np.where(mdp.terminal, 0.0, np.arange(6.0))
    solution = solve(mdp, Sparse(0.5), horizon=6, final_value=final)
    expected = evaluate(mdp, solution).expected_return
    found = simulate(mdp, solution, 50_000, 1)
    assert abs(found.mean - expected) <= Z * found.standard_error
    assert found.truncation_bias == 0
    assert not found.truncated.any()
    assert found.max_steps == 6
    np.testing.assert_allclose(found.returns, found.discounted_returns)
    cut = simulate(mdp, solution, 50_000, 1, max_steps=3)
    assert cut.max_steps == 3
    assert cut.truncated.any()
    shorter = evaluate(mdp, solution.pair_policy_at, horizon=3).expected_return
    assert abs(cut.mean - shorter) <= Z * cut.standard_error


def test_an_episode_that_is_cut_off_before_its_horizon_misses_the_final_value():
    mdp = MDP([[[1.0]]], [[1.0]], 0.5)
    solution = solve(mdp, Hard(), horizon=5, final_value=[-1000.0])
    expected = evaluate(mdp, solution).expected_return
    cut = simulate(mdp, solution, 2, 0, max_steps=3)
    assert abs(cut.mean - expected) <= cut.truncation_bias == 0.5**3 * 2.0 + 0.5**5 * 1000.0


def chi_square(counts, probabilities):
    """Pearson's statistic and its mean and standard deviation, of counts with these chances."""
    expected = probabilities * counts.sum()
    used = expected > 0
    assert counts[~used].sum() == 0
    freedom = np.count_nonzero(used) - 1
    statistic = (((counts - expected) ** 2)[used] / expected[used]).sum()
    return statistic, freedom, math.sqrt(2 * freedom)


def test_starts_actions_and_successors_have_their_probabilities():
    mdp = random_mdp(11)
    policy = random_policy(mdp, 5)
    found = simulate(mdp, policy, 40_000, 3, record=True)
    first = found.states[found.offsets[:-1]]
    statistics = [chi_square(np.bincount(first, minlength=6), mdp.initial)]
    following = np.full(len(found.states), -1)
    following[:-1] = found.states[1:]
    last = found.offsets[1:] - 1
    following[last] = found.final_states
    for i in range(mdp.n_pairs):
        s, a = mdp.state_of[i], mdp.action_of[i]
        here = (found.states == s) & (found.actions == a)
        if policy[i] == 0:
            assert not here.any()
            continue
        assert (found.rewards[here] == mdp.rewards[i]).all()
        ends = mdp.termination[i]
        chances = np.concatenate(([ends], mdp.transitions[[i]].toarray()[0]))
        known = here.copy()
        known[last[found.truncated]] = False
        statistics.append(chi_square(np.bincount(following[known] + 1, minlength=7), chances))
        if s != mdp.state_of[i - 1]:
            pairs = slice(mdp.pointer[s], mdp.pointer[s + 1])
            taken = np.bincount(found.actions[found.states == s], minlength=3)
            statistics.append(chi_square(taken[mdp.action_of[pairs]], policy[pairs]))
    for statistic, mean, deviation in statistics:
        assert statistic <= mean + 6 * deviation + 3


def test_records_agree_with_lengths_and_returns():
    mdp = random_mdp(2)
    found = simulate(mdp, random_policy(mdp, 2), 200, 9, record=True)
    for i in range(200):
        states, actions, rewards = found.episode(i)
        assert len(states) == len(actions) == len(rewards) == found.lengths[i]
        assert rewards.sum() == pytest.approx(found.returns[i])
        weights = mdp.discount ** np.arange(len(rewards))
        assert weights @ rewards == pytest.approx(found.discounted_returns[i])
    ended_on_pair = found.final_states == -1
    assert ended_on_pair.any()
    assert (found.final_states == 5).any()
    assert not found.truncated[ended_on_pair].any()


def test_results_depend_on_the_seed_alone():
    mdp = random_mdp(4)
    policy = random_policy(mdp, 4)
    found = simulate(mdp, policy, 300, 5, record=True)
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = simulate(mdp, policy, 300, 5, record=True)
    finally:
        numba.set_num_threads(threads)
    for name in ("returns", "discounted_returns", "lengths", "final_states", "states", "actions"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(found, name))
    fewer = simulate(mdp, policy, 100, 5)
    np.testing.assert_array_equal(fewer.returns, found.returns[:100])
    other = simulate(mdp, policy, 300, 6)
    assert not np.array_equal(other.returns, found.returns)


def test_calls_of_few_steps_give_the_same_episodes(monkeypatch):
    mdp = random_mdp(4)
    policy = random_policy(mdp, 4)
    found = simulate(mdp, policy, 50, 5)
    monkeypatch.setattr("tsallax.planning.simulation.STEPS_OF_A_CALL", 150)
    np.testing.assert_array_equal(simulate(mdp, policy, 50, 5).returns, found.returns)


def test_every_form_of_a_policy_gives_the_same_episodes():
    mdp = BY_NAME["forest-3"].mdp()
    solution = solve(mdp, Hard())
    forms = (solution, solution.policy, solution.pair_policy, solution.policy.argmax(1),
             lambda step: solution.policy)  # fmt: skip
    returns = [simulate(mdp, form, 20, 1).returns for form in forms]
    for other in returns[1:]:
        np.testing.assert_array_equal(other, returns[0])


def test_a_deterministic_chain_is_followed_to_its_end():
    rows = tuple(Row(s, 0, float(s + 1), {s + 1: 1.0}) for s in range(4))
    mdp = Problem("chain", 5, rows, 0.5, (4,)).mdp(initial=0)
    found = simulate(mdp, np.zeros(5, int), 3, 0, record=True)
    assert found.returns.tolist() == [10.0] * 3
    assert found.discounted_returns.tolist() == [1 + 1 + 0.75 + 0.5] * 3
    assert found.lengths.tolist() == [4] * 3
    assert not found.truncated.any()
    assert found.episode(2)[0].tolist() == [0, 1, 2, 3]
    assert found.standard_error == 0


def test_an_episode_that_starts_at_a_terminal_state_has_no_steps():
    mdp = MDP([[0.0, 1.0]], [3.0], 0.9, pairs=[(0, 0)], terminal=[1], initial=[0.0, 1.0])
    found = simulate(mdp, [[1.0], [0.0]], 2, 0, record=True)
    assert found.lengths.tolist() == [0, 0]
    assert found.states.size == 0
    assert found.final_states.tolist() == [1, 1]
    assert math.isnan(simulate(mdp, [[1.0], [0.0]], 1, 0).standard_error)


@pytest.mark.parametrize(("discount", "steps"), [(0.0, 1), (0.5, 20), (0.99, 1375)])
def test_what_follows_the_last_step_weighs_a_millionth(discount, steps):
    mdp = MDP([[[1.0]]], [[2.0]], discount)
    found = simulate(mdp, [0], 2, 0)
    assert found.max_steps == steps
    assert found.truncated.all()
    missing = 2.0 / (1 - discount) - found.mean
    assert missing == pytest.approx(found.truncation_bias, abs=1e-12)
    assert discount**steps <= 1e-6


FOREST = problems.forest()


@pytest.mark.parametrize(
    ("mdp", "arguments", "options", "message"),
    [
        (FOREST, ([0, 0, 0], 0, 1), {}, "episodes must be an integer of at least 1, got 0"),
        (FOREST, ([0, 0, 0], 5, -1), {}, "seed must be an integer from 0"),
        (FOREST, ([0, 0, 0], 5, 1), {"max_steps": 0}, "max_steps must be an integer of at least 1"),
        (FOREST, ([0, 0, 0], 5, 1), {"record": 1}, "record must be True or False"),
        (FOREST, ([0, 0], 5, 1), {}, "a policy of this MDP has shape"),
        (FOREST, ([0, 0, 0], 10**12, 1), {}, "memory for 1,000,000,000,000 episodes, .*: simulate"),
        (FOREST, ([0.0, 1.0, 0.0], 5, 1), {}, "has integers, not float64: pass policy.astype"),
        ("forest", ([0, 0, 0], 5, 1), {}, "simulate needs an MDP, not str"),
        (FOREST, (solve(problems.forest(4), Hard()), 5, 1), {}, "the solution is of another MDP"),
        (FOREST.with_discount(1.0), ([0, 0, 0], 5, 1), {}, "without discount.*max_steps=1000"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_a_line(mdp, arguments, options, message):
    with pytest.raises(InvalidInput, match=message) as refusal:
        simulate(mdp, *arguments, **options)
    assert "\n" not in str(refusal.value)


def test_steps_that_were_not_recorded_are_refused():
    found = simulate(FOREST, [0, 0, 0], 2, 1)
    with pytest.raises(InvalidInput, match="not recorded: give record, such as record=True"):
        found.episode(0)
    recorded = simulate(FOREST, [0, 0, 0], 2, 1, record=True)
    with pytest.raises(InvalidInput, match="index must be an integer of at least 0 and below 2"):
        recorded.episode(2)


def test_a_progress_bar_shows_how_many_steps_are_done(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    simulate(FOREST, [0, 0, 0], 2, 1, max_steps=3)
    assert screen.getvalue() == ""
    simulate(FOREST, [0, 0, 0], 2, 1, max_steps=3, progress=True)
    assert "step 3 of 3" in screen.getvalue()
