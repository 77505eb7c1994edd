"""`DDPG` learns, resumes in both loops, and refuses actions without bounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from refusals import refused
from small_agents import SMALL_DDPG, columns
from tsallax import DDPG
from tsallax.envs.jax.environment import Environment
from tsallax.errors import InvalidInput

LOW, HIGH = (-0.25, 2.0), (0.75, 5.0)


class Tracking(NamedTuple):
    wish: jax.Array
    step: jax.Array


def tracking() -> Environment:
    """Name the number that is seen, scaled to the range of the actions; a new one every step."""

    def observe(state: Tracking) -> jax.Array:
        return 100 + 3 * state.wish

    def move(state: Tracking, action: Any) -> Any:
        low, high = jnp.asarray(LOW), jnp.asarray(HIGH)
        reward = -jnp.sum((2 * (action - low) / (high - low) - 1 - state.wish) ** 2)
        wish = jnp.sin(12.9898 * state.wish + 78.233 * state.step + jnp.arange(2))
        after = Tracking(wish, state.step + 1)
        return after, observe(after), reward, jnp.zeros((), bool), after.step >= 20

    def reset(key: Any) -> Tracking:
        return Tracking(jax.random.uniform(key, (2,), minval=-1.0), jnp.zeros((), jnp.int32))

    return Environment("Tracking", 2, LOW, HIGH, 20, reset, observe, move)


@pytest.mark.slow
def test_it_learns() -> None:
    options = {"net_arch": (32,), "learning_starts": 0, "batch_size": 32, "buffer_size": 5000}
    agent = DDPG(tracking(), gamma=0.5, learning_rate=1e-3, **options)
    blind = agent.evaluate(50).mean
    agent.learn(steps=1000)
    assert blind < -8
    assert agent.evaluate(50).mean > -0.8
    action = agent.predict([100.0, 101.5])
    low, high = np.array(LOW), np.array(HIGH)
    np.testing.assert_allclose(2 * (action - low) / (high - low) - 1, [0, 0.5], atol=0.2)
    known = agent._learner.moments
    assert known is not None
    seen = columns(agent)[0][: agent.steps].astype(np.float64)
    np.testing.assert_allclose(known.mean, seen.mean(0), rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(known.variance), seen.std(0), rtol=1e-3)


def same(a: Any, b: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_a_resumed_agent_equals_an_uninterrupted_one(tmp_path: Any) -> None:
    whole = DDPG("MultiGoal-v0", seed=3, **SMALL_DDPG).learn(steps=150)
    first = DDPG("MultiGoal-v0", seed=3, **SMALL_DDPG).learn(steps=67)
    first.save(tmp_path / "agent.npz")
    second = DDPG.load(tmp_path / "agent.npz")
    assert second.config == first.config
    second.learn(steps=150)
    same(second._learner, whole._learner)
    same(second._loop.episodes, whole._loop.episodes)
    same(second.history.arrays(), whole.history.arrays())

    whole.save(tmp_path / "small.npz", replay=False)
    shared = DDPG.load(tmp_path / "small.npz")
    seen = np.random.default_rng(0).normal(size=(9, 2))
    for deterministic in (True, False):
        same(whole.predict(seen, deterministic), shared.predict(seen, deterministic))
    with refused("without its replay"):
        shared.learn(steps=1)


@pytest.mark.slow
def test_gymnasium_environments_get_vectors_and_resume_between_episodes(tmp_path: Any) -> None:
    make = {"env_options": {"max_episode_steps": 20}, **SMALL_DDPG}
    make |= {"noise": "parameter", "buffer_size": 120}
    whole = DDPG("Pendulum-v1", seed=1, **make).learn(steps=120)
    first = DDPG("Pendulum-v1", seed=1, **make).learn(steps=60)
    first.save(tmp_path / "agent.npz")
    second = DDPG.load(tmp_path / "agent.npz").learn(steps=120)
    same(second._learner, whole._learner)
    action = second.predict(np.zeros(3))
    assert action.shape == (1,)
    assert abs(action[0]) <= 2
    assert whole.history.episodes == 6
    assert len(second.evaluate(2).returns) == 2
    taken = columns(whole)[2]
    assert np.abs(taken).max() <= 2
    assert len(np.unique(taken)) > 100


class Endless(gymnasium.Env):  # type: ignore[type-arg]
    observation_space = gymnasium.spaces.Box(-1, 1, (3,))
    action_space = gymnasium.spaces.Box(np.float32([-1, -1]), np.float32([1, np.inf]))


def test_actions_without_bounds_or_without_numbers_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"Endless: dimension 1 .* from -1 to inf"):
        DDPG(Endless())
    with refused("CartPole-v1"):
        DDPG("CartPole-v1")
    with pytest.raises(InvalidInput, check=lambda e: e.omit == "n_envs"):
        DDPG(gymnasium.make("Pendulum-v1"), n_envs=3)
    with pytest.raises(InvalidInput, check=lambda e: e.omit == "actions"):
        DDPG("Reacher-v5", actions=11)
