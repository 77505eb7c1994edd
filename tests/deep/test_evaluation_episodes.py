"""Evaluation episodes are those of the greedy or the sampled policy, from start to end."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from small_agents import LIMIT, TINY, Episodic, cart_pole, corridor, corridor_step, trained
from tsallax import DeepQ
from tsallax.deep.evaluation_episodes import Episodes, evaluation_seed


def test_evaluation_plays_the_greedy_policy_to_the_end():
    agent = trained(corridor)
    possible = {}
    for start in (-1.0, 0.0, 1.0, 2.0):
        seen, total, length, over = (start, 0.0), 0.0, 0, False
        while not over:
            action = int(np.argmax(agent.q(seen)))
            seen, reward, terminated, truncated = corridor_step(seen, action)
            total, length, over = total + reward, length + 1, terminated or truncated
        possible[round(total, 3)] = length
    result = agent.evaluate(40)
    found = dict(zip(np.round(result.returns, 3).tolist(), result.lengths.tolist()))
    assert found == possible
    sampled = agent.evaluate(40, deterministic=False)
    assert not np.array_equal(sampled.returns, result.returns)
    assert sampled.lengths.max() <= LIMIT


def test_episodes_in_gymnasium_are_those_of_the_greedy_policy():
    import gymnasium

    from tsallax.deep.loop import episode_seed

    agent, states = trained(cart_pole), []
    with gymnasium.make("CartPole-v1") as env:
        observation, _ = env.reset(seed=episode_seed(5, 0, 0))
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(agent.predict(observation))
            total, over = total + reward, terminated or truncated
    environment = agent.spec.evaluation_environment()
    result = agent.play_in(environment, 1, True, 5, states.append)
    assert result.returns.tolist() == [total]
    assert states == [False] * int(total) + [True]


def test_means_and_standard_errors():
    episodes = Episodes(np.array([1.0, 2.0, 6.0]), np.array([3, 4, 5]))
    assert episodes.mean == 3
    assert episodes.standard_error == pytest.approx(np.sqrt(7 / 3))
    assert np.isnan(Episodes(np.array([1.0]), np.array([3])).standard_error)
    assert repr(Episodes(np.ones(1), np.ones(1))).endswith("standard error nan, 1 episode)")


def test_evaluations_have_seeds_other_than_training():
    assert evaluation_seed(0) != 0
    assert 0 <= evaluation_seed(2**32 - 1) < 2**32


def test_an_episode_that_does_not_end_is_warned_of(monkeypatch):
    monkeypatch.setattr("tsallax.deep.evaluation_episodes.LONG_EPISODE", 3)
    agent = DeepQ(Episodic(), **TINY)
    with pytest.warns(
        UserWarning, match="Episodic: .* not ended after 3 steps: .*TimeLimit"
    ) as found:
        assert agent.evaluate(2, env=Episodic()).lengths.tolist() == [5, 5]
    assert len(found) == 1


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_draws_are_those_of_keys_that_are_made_one_by_one(seed, monkeypatch):
    agent = cart_pole(seed=seed)
    seen = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    key = jax.random.fold_in(jax.random.PRNGKey(seed ^ 0x5EED), 2)
    expected = agent._algorithm.sample(agent._learner, seen, 0, key, None)
    agent.predict(seen, deterministic=False)
    monkeypatch.setattr(jax.random, "PRNGKey", None)
    assert agent.predict(seen, deterministic=False).tolist() == expected.tolist()
