"""Rewards are divided by the standard deviation of the discounted return so far."""

import jax
import numpy as np
import pytest

from tsallax.deep import reward_scale
from tsallax.deep.replay import Transition


def test_the_deviation_is_that_of_the_discounted_sums_of_all_episodes():
    rng, gamma, steps, n = np.random.default_rng(0), 0.9, 60, 2
    rewards = rng.normal(3, 2, size=(steps, n)).astype(np.float32)
    ended = rng.random((steps, n)) < 0.2
    scale = reward_scale.init(n)
    assert float(reward_scale.deviation(scale)) == pytest.approx(1)
    update = jax.jit(reward_scale.update)
    zeros = np.zeros((n, 1), np.float32)
    for reward, over in zip(rewards, ended, strict=True):
        row = Transition(zeros, zeros, reward, zeros, over, np.zeros(n, bool))
        scale = update(scale, row, gamma)
    sums, running = [], np.zeros(n)
    for reward, over in zip(rewards.astype(float), ended, strict=True):
        running = gamma * running + reward
        sums.append(running.copy())
        running[over] = 0
    assert float(reward_scale.deviation(scale)) == pytest.approx(np.std(sums), rel=1e-4)


def test_a_lost_episode_has_no_part_in_the_next_sum():
    row = Transition(
        *([np.zeros((1, 1), np.float32)] * 2), np.ones(1, np.float32), 0.0, False, False
    )
    lost = reward_scale.end_episodes(reward_scale.update(reward_scale.init(1), row, 0.5))
    assert np.asarray(reward_scale.update(lost, row, 0.5).sums) == [1.0]
    assert int(lost.moments.number) == 1
