"""The compiled update and draws are those of the paper, replayed in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import oracle
from planning_problems import BY_NAME
from tabular_environments import SOME, Chain, Masked, bandit, endings
from tsallax.planning.mdp import MDP
from tsallax.regularizer import Hard, Soft, Sparse, Tsallis
from tsallax.tabular import kernel
from tsallax.tabular.learning import q_learning
from tsallax.tabular.step_size import StepSize

REGULARIZERS = (Hard(), Soft(0.2), Sparse(0.2), Tsallis(0.2, q=1.5))


def maximum(row, regularizer) -> float:
    """max_p <p, row> + alpha Omega(p) in exact arithmetic."""
    alpha, q = Fraction(regularizer.alpha), Fraction(regularizer.q)
    numbers = [Fraction(float(x)) for x in row]
    if alpha > 0 and q != 2:
        numbers = [oracle.to_mpf(x) for x in numbers]
    return float(oracle.greedy(numbers, alpha, q)[0])


@pytest.mark.parametrize(
    ("regularizer", "schedule"),
    [(r, StepSize()) for r in REGULARIZERS] + [(Sparse(0.2), StepSize(0.7, scale=0.5))],
    ids=str,
)
def test_recorded_samples_replayed_in_exact_arithmetic_give_the_same_q(regularizer, schedule):
    """Equation of sparse Q-learning; episodes cut off by truncation and by a limit bootstrap."""
    env, gamma = Chain(endings(), limit=7, start=5), 0.8
    result = q_learning(
        env, regularizer, discount=gamma, steps=500, step_size=schedule, limit=6, initial=0.25
    )
    q = np.full((4, 3), 0.25)
    visits = np.zeros((4, 3), int)
    for s, a, reward, after, ended in env.record:
        target = reward + (0.0 if ended else gamma * maximum(q[after], regularizer))
        eta = 1 / (1 + (0.2 if schedule.scale is None else 0.5) * visits[s, a]) ** schedule.omega
        q[s, a] += eta * (target - q[s, a])
        visits[s, a] += 1
    np.testing.assert_allclose(result.q, q, rtol=0, atol=1e-12)
    assert np.array_equal(result.visits, visits)
    assert result.lengths.max() == 6


@pytest.mark.parametrize(
    "regularizer", [*REGULARIZERS, Tsallis(0.2, q=0.5), Tsallis(0.2, q=3)], ids=str
)
def test_masked_actions_are_in_no_maximum_and_in_no_policy(regularizer):
    """With a large initial Q a maximum over all actions would be another one."""
    env, gamma = Masked(endings(), SOME, limit=7, start=5), 0.8
    result = q_learning(env, regularizer, discount=gamma, steps=300, initial=5.0)
    q = np.where(SOME, 5.0, -np.inf)
    visits = np.zeros((4, 3), int)
    for s, a, reward, after, ended in env.record:
        bootstrap = 0.0 if ended else gamma * maximum(q[after][SOME[after]], regularizer)
        q[s, a] += (reward + bootstrap - q[s, a]) / (1 + 0.2 * visits[s, a])
        visits[s, a] += 1
    np.testing.assert_allclose(result.q[SOME], q[SOME], rtol=0, atol=1e-12)
    assert np.all(result.q[~SOME] == -np.inf)
    assert np.array_equal(result.visits, visits)
    assert not result.policy[~SOME].any()
    np.testing.assert_allclose(result.policy.sum(1), 1, atol=1e-12)
    expected = [maximum(row[some], regularizer) for row, some in zip(q, SOME)]
    np.testing.assert_allclose(result.value, expected, atol=1e-12)
    assert result.tried == 1


@pytest.mark.parametrize("explore", ["uniform", "epsilon", Soft(0.2)], ids=str)
def test_masked_actions_are_never_explored_and_the_others_are_as_ever(explore):
    rewards, steps = np.array([1.0, 0.9, 0.7, 0.0, 0.9, 1.0]), 8_000
    some = np.array([0, 1, 1, 0, 1, 0], bool)
    env = Masked(bandit(rewards), [some])
    result = q_learning(
        env, Hard(), discount=0.0, explore=explore, epsilon=0.3, steps=steps, initial=[rewards]
    )
    if isinstance(explore, str):
        policy = {"uniform": [1 / 3, 1 / 3, 1 / 3], "epsilon": [0.5, 0, 0.5]}[explore]
    else:
        policy = np.exp(rewards[some] / 0.2) / np.exp(rewards[some] / 0.2).sum()
    share = 1.0 if explore == "uniform" else 0.3
    chance = np.zeros(6)
    chance[some] = (1 - share) * np.asarray(policy) + share / 3
    spread = 5 * np.sqrt(steps * chance * (1 - chance))
    assert np.all(np.abs(result.visits[0] - steps * chance) <= spread)


def test_value_and_policy_are_those_of_the_learnt_q():
    mdp = BY_NAME["terminal-ragged"].mdp()
    for regularizer in REGULARIZERS:
        result = q_learning(mdp, regularizer, steps=20_000)
        for s in range(mdp.n_states):
            row = result.q[s][np.isfinite(result.q[s])]
            expected = maximum(row, regularizer) if row.size else 0.0
            assert result.value[s] == pytest.approx(expected, abs=1e-12)
            assert result.policy[s].sum() == pytest.approx(float(row.size > 0), abs=1e-12)
        assert np.all(result.policy[result.q == -np.inf] == 0)
        assert np.all(result.visits[result.q == -np.inf] == 0)


@pytest.mark.parametrize(
    ("explore", "epsilon"),
    [(Hard(), 0.3), (Soft(0.2), 0.0), (Sparse(0.2), 0.3), (Tsallis(0.2, q=1.5), 0.0)],
    ids=str,
)
def test_actions_are_drawn_from_the_regularisers_policy_and_a_share_of_uniform(explore, epsilon):
    rewards = np.array([1.0, 0.9, 0.7, 0.0])
    steps = 200_000
    result = q_learning(
        bandit(rewards), Hard(), explore=explore, epsilon=epsilon, steps=steps, initial=[rewards]
    )
    policy = np.asarray(explore.policy(rewards), float)
    chance = (1 - epsilon) * policy + epsilon / 4
    spread = 5 * np.sqrt(steps * chance * (1 - chance)) + 1e-6 * steps
    assert np.all(np.abs(result.visits[0] - steps * chance) <= spread)
    assert np.all(result.visits[0][chance == 0] == 0)


@pytest.mark.parametrize(("u", "position"), [(0.0, 1), (0.49, 1), (0.5, 3), (1.0, 3)])
def test_a_maximum_is_drawn_even_where_the_random_number_is_rounded_to_one(u, position):
    row = np.array([-np.inf, 2.0, 1.0, 2.0])
    assert kernel._greedy(row, u) == position


def test_greedy_exploration_breaks_ties_at_random():
    result = q_learning(bandit([1.0] * 4), Hard(), epsilon=0.0, steps=40_000, initial=1.0)
    assert np.all(np.abs(result.visits - 10_000) < 500)


def test_successors_ends_and_starts_have_the_chances_of_the_mdp():
    """State 0 scatters over 1, 2, 3 and the terminal 4, or ends; 1, 2 and 3 lead to the end."""
    rows = [[0, 0.1, 0.2, 0.3, 0.15], [0, 0, 0, 0, 1.0], [0, 0, 0, 0, 1.0], [0, 0, 0, 0, 1.0]]
    mdp = MDP(
        rows,
        np.zeros(4),
        0.9,
        pairs=[(0, 0), (1, 0), (2, 0), (3, 0)],
        terminal=[4],
        termination=[0.25, 0, 0, 0],
        initial=[0.5, 0, 0, 0.25, 0.25],  # of the terminal start nothing can be learnt
    )
    result = q_learning(mdp, Hard(), steps=400_000)
    visits = result.visits[:4, 0]
    starts = np.array([2 / 3, 0, 0, 1 / 3]) * result.episodes
    expected = starts + visits[0] * np.array([0, 0.1, 0.2, 0.3])
    assert np.all(np.abs(visits - expected) < 5 * np.sqrt(np.maximum(expected, 1)))
    assert np.mean(result.lengths == 2) == pytest.approx(2 / 3 * 0.6, abs=0.005)
