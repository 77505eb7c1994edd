"""Observations become vectors, actions integers; spaces that cannot be converted are refused."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Sequence

from counting_environments import Count, spaced
from refusals import refused
from tsallax.envs import GymnasiumAdapter


def test_discrete_observations_are_one_hot_and_actions_start_at_their_start() -> None:
    host = GymnasiumAdapter("FrozenLake-v1", options={"is_slippery": False})
    assert host.observation_size == 16
    assert host.reset([0])[0].argmax() == 0
    observations, *_ = host.step([2])
    np.testing.assert_array_equal(observations[0], np.eye(16)[1])
    env = Count()
    host = GymnasiumAdapter(env)
    host.reset([0])
    host.step([0])
    host.step([2])
    assert env.taken == [-1, 1]


def test_box_actions_are_rows_of_the_table() -> None:
    host = GymnasiumAdapter("Pendulum-v1", actions=5)
    assert host.n_actions == 5
    assert host.discretize is not None
    np.testing.assert_array_equal(host.discretize.table[:, 0], [-2, -1, 0, 1, 2])
    assert (host.action_low, host.action_high) == ((-2.0,), (2.0,))
    host.reset([0])
    env = gymnasium.make("Pendulum-v1")
    env.reset(seed=0)
    np.testing.assert_allclose(host.step([3])[0][0], env.step(np.array([1.0], np.float32))[0])


def test_observations_of_any_shape_are_flattened_into_a_new_array() -> None:
    class Picture(Count):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = Box(0, 255, (2, 3), np.uint8)
            self.buffer = np.zeros((2, 3), np.uint8)

        def observation(self) -> Any:
            self.buffer += 1
            return self.buffer

    host = GymnasiumAdapter(Picture())
    first = host.reset([0])
    host.step([0])
    assert first.shape == (1, 6)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, 1)


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("CartPole-v1", {"actions": 3}, "has 2 discrete actions: leave actions out"),
        ("CartPole-v1", {"continuous": True}, "its actions are discrete, not real vectors; use De"),
        ("Pendulum-v1", {}, "its actions are continuous, in 1 dimension: give actions"),
        ("Pendulum-v1", {"actions": 1}, "Pendulum-v1: actions must be an integer of at least 2"),
        ("Blackjack-v1", {}, "Tuple observations are not supported; wrap it with gymnasium"),
        (spaced(Dict(a=Discrete(2))), {}, "Count: Dict observations are not supported; wrap it"),
        (spaced(Sequence(Discrete(2))), {}, "Sequence observations are not supported; use Box"),
        (spaced(Box(0, 1, (0,))), {}, "its observations are empty"),
        (spaced(None, MultiDiscrete([2, 2])), {}, "MultiDiscrete actions are not supported"),
        (spaced(None, Box(0, 5, (1,), np.int32)), {"actions": 2}, "a Box of int32"),
        (spaced(None, Box(-1, np.inf, (1,))), {"actions": 2}, "Count: action dimension 0: bounds"),
    ],
    ids=str,
)
def test_unsupported_spaces_are_refused_in_one_line(env: Any, options: Any, message: str) -> None:
    with refused(message):
        GymnasiumAdapter(env, **options)
