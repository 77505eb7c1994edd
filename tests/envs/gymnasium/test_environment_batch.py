"""Batches of environments return the true last observation and reset only where asked."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from counting_environments import Count, CountTogether
from refusals import refused
from tsallax.envs import GymnasiumAdapter


def members() -> list[Any]:
    return [lambda: Count(end=3), lambda: Count(end=99, cut=2)]


SpawnedVectorEnv = partial(AsyncVectorEnv, context="spawn")


@pytest.mark.parametrize(
    ("vector", "mode"),
    [
        (SyncVectorEnv, AutoresetMode.DISABLED),
        (SyncVectorEnv, AutoresetMode.SAME_STEP),
        (SyncVectorEnv, AutoresetMode.NEXT_STEP),
        (SpawnedVectorEnv, AutoresetMode.SAME_STEP),
        (SpawnedVectorEnv, AutoresetMode.NEXT_STEP),
    ],
    ids=str,
)
def test_a_vector_environment_gives_the_true_last_observation(vector: Any, mode: Any) -> None:
    env = vector(members(), autoreset_mode=mode)
    host = GymnasiumAdapter(env)
    assert (host.n_envs, host.observation_size, host.n_actions) == (2, 1, 3)
    np.testing.assert_array_equal(host.reset([1, 2]), [[100], [200]])
    observations, rewards, terminated, truncated = host.step([0, 1])
    np.testing.assert_array_equal(observations, [[101], [201]])
    observations, rewards, terminated, truncated = host.step([0, 1])
    np.testing.assert_array_equal(observations, [[102], [202]])  # not the reset one
    np.testing.assert_array_equal(rewards, [2, 2])
    np.testing.assert_array_equal(terminated, [False, False])
    np.testing.assert_array_equal(truncated, [False, True])
    first = -100 if mode == AutoresetMode.SAME_STEP else 700  # that one has reset itself
    np.testing.assert_array_equal(host.reset_one(1, seed=7), [first])
    observations, _, terminated, truncated = host.step([0, 1])
    np.testing.assert_array_equal(observations, [[103], [first + 1]])
    np.testing.assert_array_equal(terminated, [True, False])
    np.testing.assert_array_equal(truncated, [False, False])
    assert host.stepped.all()
    host.reset_one(0, seed=8)
    observations, *_ = host.step([0, 1])
    assert observations[1] == first + 2
    env.close()


def test_a_vector_environment_that_only_resets_on_the_next_step_says_which_step_was_lost() -> None:
    host = GymnasiumAdapter(CountTogether())
    np.testing.assert_array_equal(host.reset([4, 9]), [[400], [500]])  # one seed for both
    for _ in range(3):
        observations, _, terminated, _ = host.step([0, 0])
        assert host.stepped.all()
    np.testing.assert_array_equal(observations, [[403], [503]])
    np.testing.assert_array_equal(terminated, [True, False])
    host.reset_one(0, seed=1)
    observations, _, terminated, _ = host.step([0, 0])
    np.testing.assert_array_equal(host.stepped, [False, True])
    np.testing.assert_array_equal(observations, [[-100], [504]])
    assert not terminated.any()
    observations, *_ = host.step([0, 0])
    assert host.stepped.all()
    np.testing.assert_array_equal(observations, [[-99], [505]])


def test_a_vector_environment_must_say_how_it_resets_itself() -> None:
    env = CountTogether()
    env.metadata = {}
    with refused("CountTogether: does not define how it resets itself"):
        GymnasiumAdapter(env)
