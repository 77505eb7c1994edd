"""Spaces of Gymnasium are described in full, and those that are not supported are refused."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Sequence, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from counting_environments import Count, spaced
from refusals import refused
from tsallax.envs import GymnasiumAdapter


def test_discrete_observations_and_actions_are_counted_from_their_start() -> None:
    host = GymnasiumAdapter("FrozenLake-v1", options={"is_slippery": False})
    assert host.observation_size == 16
    assert host.reset([0]).tolist() == [0]
    observations, *_ = host.step([2])
    assert observations.tolist() == [1]
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
    assert (host.action.space.low, host.action.space.high) == ((-2.0,), (2.0,))
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
        ("CartPole-v1", {"continuous": True}, "its actions are discrete, not real vectors; use De"),
        ("Pendulum-v1", {}, "its actions are continuous, in 1 dimension: give actions"),
        ("Pendulum-v1", {"actions": 1}, "Pendulum-v1: actions must be an integer of at least 2"),
        (spaced(Sequence(Discrete(2))), {}, "Sequence observations are not supported; use Box"),
        (spaced(Dict(a=Sequence(Discrete(2)))), {}, "Count: Sequence observations are not"),
        (spaced(None, Sequence(Discrete(2))), {}, "Sequence actions are not supported; use Box"),
        (spaced(Box(0, 1, (0,))), {}, "its observations are empty"),
        (spaced(Box(0, 255, (8, 8), np.uint8), Box(-1, 1, (1,))), {"continuous": True}, "images"),
        (spaced(None, Box(0, 5, (1,), np.int32)), {"actions": 2}, "a Box of int32"),
        (spaced(None, Box(-1, np.inf, (1,))), {"actions": 2}, "Count: action dimension 0: bounds"),
    ],
    ids=str,
)
def test_unsupported_spaces_are_refused_in_one_line(env: Any, options: Any, message: str) -> None:
    with refused(message):
        GymnasiumAdapter(env, **options)


def test_environments_with_structured_spaces_are_reset_and_stepped() -> None:
    host = GymnasiumAdapter("Blackjack-v1")
    assert host.observation_size == 32 + 11 + 2
    assert host.reset([0]).sum() == 3
    space = Dict(left=Discrete(2), right=Tuple([MultiBinary(2), Box(-1, 1, (1,))]))
    env = spaced(Dict(a=Discrete(2), b=Box(-1, 1, (2,))), space)
    taken: list[Any] = []
    env.observation = env.observation_space.sample
    env.step = lambda action: (env.observation(), float(taken.append(action) is None), *ENDED)
    host = GymnasiumAdapter(env, actions=3)
    assert host.action.choices == (2, 2, 2, 3)
    assert host.reset([0]).shape == (1, 4)
    host.step([[1, 0, 1, 2]])
    assert taken[0] in space
    assert (taken[0]["left"], taken[0]["right"][0].tolist()) == (1, [0, 1])
    assert taken[0]["right"][1].tolist() == [1.0]


ENDED = (False, False, {})


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vector_environments_with_structured_spaces_are_the_same_as_single_ones(mode: Any) -> None:
    class Structured(Count):
        """Counts on with any action of a tuple."""

        def __init__(self) -> None:
            super().__init__(end=2)
            self.observation_space = Dict(a=Box(-np.inf, np.inf, (1,)), b=Discrete(1000))
            self.action_space = Tuple([Discrete(3), MultiBinary(2)])

        def observation(self) -> Any:
            return {"a": super().observation(), "b": self.count}

    several = SyncVectorEnv([Structured] * 2, autoreset_mode=mode)
    host, single = GymnasiumAdapter(several), GymnasiumAdapter(Structured())
    first = host.reset([1, 1])
    np.testing.assert_array_equal(first, np.tile(single.reset([1]), (2, 1)))
    for _ in range(2):
        after, rewards, terminated, _ = host.step([[2, 0, 1]] * 2)
        one, reward, over, _ = single.step([[2, 0, 1]])
        np.testing.assert_array_equal(after, np.tile(one, (2, 1)))
        assert (rewards[0], terminated[0]) == (reward[0], over[0])
    several.close()
