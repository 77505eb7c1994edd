"""Agents under normalising wrappers are evaluated, saved and continued with their statistics."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import NormalizeObservation, NormalizeReward
from gymnasium.wrappers import vector as vector_wrappers

from refusals import refused
from small_agents import TINY, assert_same
from tsallax import DeepQ


class Offset(gymnasium.Env):
    """Episodes of 50 steps; the reward is 1 for the action that is the sign of a small number.

    The number stands beside an offset of 1000, so that it shows only after normalisation.
    """

    def __init__(self) -> None:
        self.observation_space = Box(-np.inf, np.inf, (1,))
        self.action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._observe(), {}

    def _observe(self):
        self.number = self.np_random.choice([-1.0, 1.0])
        return np.array([1000 + self.number], np.float32)

    def step(self, action):
        reward = float((action == 1) == (self.number > 0))
        self.t += 1
        return self._observe(), reward, False, self.t >= 50, {}


gymnasium.register("Offset-v0", Offset)
LEARN = {**TINY, "alpha": 0.1, "buffer_size": 2000, "gamma": 0.0, "target_update_interval": 100}


def normalized(reward: bool = False):
    env = NormalizeObservation(gymnasium.make("Offset-v0"))
    return NormalizeReward(env) if reward else env


@pytest.fixture(scope="module")
def learned() -> DeepQ:
    return DeepQ(normalized(), **LEARN).learn(steps=1200)


def test_evaluations_use_the_statistics_of_training(learned):
    assert learned.evaluate(4).mean == 50, "25 by chance, which statistics from the start give"
    other = normalized()
    assert learned.evaluate(4, env=other).mean == 50
    before = learned.spec.host.statistics()[0]
    assert learned.evaluate(2, env=learned.spec.source).mean == 50
    after = learned.spec.host.statistics()[0]
    assert np.array_equal(before.mean, after.mean)
    assert np.array_equal(before.count, after.count)
    with refused("has 0 NormalizeObservation, but the environment of training 1: wrap it"):
        learned.evaluate(1, env=gymnasium.make("Offset-v0"))


@pytest.mark.parametrize("replay", [True, False])
def test_a_file_holds_the_statistics(learned, replay, tmp_path):
    learned.save(tmp_path / "agent", replay=replay)
    again = DeepQ.load(tmp_path / "agent", normalized())
    assert again.evaluate(4).mean == 50
    with refused("has the normalising wrappers none, but those of the agent are NormalizeObs"):
        DeepQ.load(tmp_path / "agent", gymnasium.make("Offset-v0"))


@pytest.mark.slow
def test_training_continues_as_if_it_had_not_stopped(tmp_path):
    agent = DeepQ(normalized(reward=True), **TINY).learn(episodes=2)
    agent.save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent", normalized(reward=True))
    assert_same(again.learn(episodes=4), agent.learn(episodes=4))
    for x, y in zip(again.spec.statistics(), agent.spec.statistics(), strict=True):
        assert np.array_equal(x.mean, y.mean)
        assert np.array_equal(x.var, y.var)


def test_evaluations_along_the_way_do_not_change_the_training():
    plain = DeepQ(normalized(reward=True), **LEARN).learn(steps=120)
    evaluated = DeepQ(normalized(reward=True), **LEARN)
    evaluated.learn(steps=120, eval_every=40, eval_episodes=1)
    assert len(evaluated.history["evaluation_return"]) == 3
    for x, y in zip(plain.spec.statistics(), evaluated.spec.statistics(), strict=True):
        assert np.array_equal(x.mean, y.mean)
    assert np.array_equal(plain.q([[0.5]]), evaluated.q([[0.5]]))


@pytest.mark.slow
def test_wrappers_around_and_inside_vector_environments_are_followed():
    inside = DeepQ(SyncVectorEnv([normalized] * 2), **{**TINY, "train_freq": 3}).learn(steps=60)
    with pytest.raises(Exception, match="second time"):
        inside.evaluate(1)
    assert inside.evaluate(1, env=normalized()).lengths.tolist() == [50]
    vector = gymnasium.make_vec("Offset-v0", 2, vectorization_mode="sync")
    outside = DeepQ(vector_wrappers.NormalizeObservation(vector), **{**TINY, "train_freq": 3})
    outside.learn(steps=240)
    assert outside.history.episodes == 4
    assert outside.evaluate(1).lengths.tolist() == [50]
