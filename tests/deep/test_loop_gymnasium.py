"""The loop in Gymnasium environments stores and logs what really happened, errors included."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from refusals import refused
from small_agents import TINY, VECTOR, Episodic, assert_history_is_that_of, stored
from tsallax import DeepQ
from tsallax.deep import loop_gymnasium
from tsallax.deep.loop import episode_seed


def test_cart_pole_is_stored_as_it_happened():
    """Play the stored actions again, from the seeds of the episodes."""
    agent = DeepQ("CartPole-v1", seed=5, **TINY).learn(steps=90)
    again = gymnasium.make("CartPole-v1")
    episode = 0
    (rows,) = stored(agent)
    seen, _ = again.reset(seed=episode_seed(5, 0, 0))
    for row in rows:
        assert np.array_equal(row["seen"], seen)
        seen, reward, terminated, truncated, _ = again.step(row["action"])
        assert np.array_equal(row["after"], seen)
        assert row["reward"] == reward
        assert row["terminated"] == terminated
        assert row["ended"] == (terminated or truncated)
        if row["ended"]:
            episode += 1
            seen, _ = again.reset(seed=episode_seed(5, 0, episode))
    assert episode >= 2
    assert_history_is_that_of(agent, [rows])


def test_a_time_limit_on_the_host_is_a_truncation_with_its_true_last_observation():
    env = gymnasium.make("CartPole-v1", max_episode_steps=6)
    agent = DeepQ(env, **TINY).learn(steps=30)
    (rows,) = stored(agent)
    assert list(agent.history["episode_length"]) == [6] * 5
    for t, row in enumerate(rows):
        assert row["ended"] == (t % 6 == 5)
        assert not row["terminated"]
        if t % 6 < 5:
            assert np.array_equal(row["after"], rows[t + 1]["seen"])
        elif t < 29:
            assert not np.array_equal(row["after"], rows[t + 1]["seen"])


def test_updates_on_the_host_come_every_so_many_steps_and_not_before_the_start():
    agent = DeepQ("CartPole-v1", n_envs=2, **{**VECTOR, "learning_starts": 12})

    def copied() -> bool:
        same = jax.tree.map(np.array_equal, agent._learner.online, agent._learner.target)
        return all(jax.tree.leaves(same))

    agent.learn(steps=30)
    assert int(agent._learner.adam.count) == (30 - 12) // 6
    assert copied(), "after 30 steps, the first time past 25"
    agent.learn(steps=36)
    assert not copied()


class Watched(gymnasium.vector.VectorWrapper):
    """Records the episodes of a vector environment."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.running = [[] for _ in range(env.num_envs)]
        self.episodes: list[tuple[float, int]] = []
        self.resetting = np.zeros(env.num_envs, bool)

    def step(self, actions: Any) -> Any:
        result = self.env.step(actions)
        over = result[2] | result[3]
        for e in np.flatnonzero(~self.resetting):
            self.running[e].append(float(result[1][e]))
            if over[e]:
                self.episodes.append((sum(self.running[e]), len(self.running[e])))
                self.running[e] = []
        self.resetting = over & (self.env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP)
        return result


def cart_poles(mode: AutoresetMode | None) -> Any:
    if mode is None:  # Gymnasium's own vector of cart poles, which spends a step on resetting
        return gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point")
    return SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2, autoreset_mode=mode)


@pytest.mark.parametrize("mode", [None, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED], ids=str)
def test_the_history_of_a_vector_environment_is_that_of_its_episodes(mode):
    """A step that it spends on resetting is stored, but never drawn."""
    env = Watched(cart_poles(mode))
    agent = DeepQ(env, **VECTOR).learn(steps=90)
    noted = zip(agent.history["episode_return"].tolist(), agent.history["episode_length"].tolist())
    assert list(noted) == env.episodes
    assert len(env.episodes) >= 2
    for row, following in [pair for rows in stored(agent) for pair in pairwise(rows)]:
        assert (following["weight"] == 0) == (mode is None and row["ended"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reward": -np.inf}, "Wrong: step returned the reward -inf, after 2 steps of an episode"),
        ({"seen": np.nan}, "Wrong: an observation contains nan (float32), after 2 steps of an"),
        ({"seen": np.inf}, "Wrong: an observation contains inf (float32), after 2 steps of an"),
    ],
    ids=str,
)
def test_an_environment_that_gives_infinite_numbers_or_nan_is_named_at_once(wrong, message):
    class Wrong(Episodic):
        def step(self, action):
            seen, reward, *ends = super().step(action)
            if len(self.taken) == 7:
                return np.full(4, wrong.get("seen", 0.0)), wrong.get("reward", reward), *ends
            return seen, np.array([reward]), *ends

    agent = DeepQ(Wrong(), **TINY)
    with refused(message):
        agent.learn(steps=20)
    assert agent.steps == 6, "the failed step is not recorded"
    assert agent.history["episode_return"].tolist() == [5.0], "of rewards that are arrays"


@pytest.mark.parametrize("env", ["CartPole-v1", "FrozenLake-v1"])
def test_a_compiled_step_does_not_copy_the_replay_memory(env):
    agent = DeepQ(env, **{**TINY, "buffer_size": 200_000}).learn(steps=4)
    now, learner = agent._loop.episodes, agent._learner
    transition, _ = agent._loop._step(agent.spec.training_environment())
    program = loop_gymnasium._store_learn_act.lower(
        agent._algorithm, True, learner._replace(hyperparameters=None), learner.hyperparameters,
        transition, now.observation, 4, now.mask,
    )  # fmt: skip
    largest = max(ring.nbytes for ring in jax.tree.leaves(learner.replay))
    assert program.compile().memory_analysis().temp_size_in_bytes < largest / 10
