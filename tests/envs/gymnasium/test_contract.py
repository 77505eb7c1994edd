"""Environments that break Gymnasium's contract are refused in one line that says what to do."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from counting_environments import Count
from refusals import refused
from small_agents import TINY, Episodic
from tsallax import DeepQ
from tsallax.envs import GymnasiumAdapter
from tsallax.envs.gymnasium import contract


class Old(Count):
    """The step of the old Gym."""

    def step(self, action: Any) -> Any:
        seen, reward, ended, cut, info = super().step(action)
        return seen, reward, ended or cut, info


class NoSeed(Count):
    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class NoInfo(Count):
    def reset(self, **options: Any) -> Any:
        return super().reset(**options)[0]


class NoSpace(Count):
    def __init__(self) -> None:
        super().__init__()
        del self.observation_space


class WrongShape(Count):
    def observation(self) -> Any:
        return np.zeros(3)


class Changed(Count):
    """A step with one of its results replaced."""

    change: dict[int, Any]

    def step(self, action: Any) -> Any:
        return tuple(self.change.get(i, x) for i, x in enumerate(super().step(action)))


def changed(**change: Any) -> Any:
    names = ("observation", "reward", "terminated", "truncated", "info")
    return type("Changed", (Changed,), {"change": {names.index(k): v for k, v in change.items()}})


BROKEN: list[tuple[Any, str]] = [
    (Old, "step returned 4 values, not 5: return observation, reward, terminated, truncated"),
    (NoSeed, "reset does not take the argument seed: define it as reset(self, *, seed=None"),
    (NoInfo, "reset does not return an observation and a dict: return observation, info"),
    (NoSpace, "has no observation_space: set it in its __init__"),
    (WrongShape, "reset returned an observation of shape (3,), should be (1,)"),
    (changed(observation=np.zeros(3)), "step returned an observation of shape (3,), should be"),
    (changed(observation="seen"), "step returned an observation ('seen',): should be numbers"),
    (changed(reward="1"), "step returned the reward '1', which is not a number"),
    (changed(reward=None), "step returned the reward None, which is not a number"),
    (changed(reward=np.ones(2)), "step returned the reward array([1., 1.]), which is not"),
    (changed(reward=1e39), "step returned the reward 1e+39, beyond single precision: scale it"),
    (changed(reward=np.nan), "step returned the reward nan"),
    (changed(terminated="no"), "step returned 'no' for terminated, which is not True or False"),
    (changed(info=None), "step returned an info that is a NoneType, not a dict"),
]


@pytest.mark.parametrize(("make", "message"), BROKEN, ids=lambda x: getattr(x, "__name__", None))
def test_what_breaks_the_contract_is_named_before_training(make: Any, message: str) -> None:
    gymnasium.register("Broken-v0", make)
    gymnasium.register("BrokenInTime-v0", make, max_episode_steps=9)
    try:
        with refused(f"Broken-v0: {message}"):
            DeepQ("Broken-v0", **TINY)
        with refused("BrokenInTime-v0: ", message.split()[0]):
            DeepQ("BrokenInTime-v0", **TINY)
    finally:
        del gymnasium.registry["Broken-v0"], gymnasium.registry["BrokenInTime-v0"]


@pytest.mark.parametrize("make", [Old, NoInfo])
def test_what_a_wrapper_cannot_unpack_is_named_as_well(make: Any) -> None:
    def same(seen: Any) -> Any:
        return seen

    wrapped = gymnasium.wrappers.TransformObservation(make(), same, Box(-9, 999, (1,)))
    with refused("does not return"):
        host = GymnasiumAdapter(wrapped)
        host.reset([0])
        host.step([0])


def test_what_an_environment_raises_itself_is_passed_on() -> None:
    class Failing(Count):
        def step(self, action: Any) -> Any:
            raise ValueError("the motor is off")

    host = GymnasiumAdapter(Failing())
    host.reset([0])
    with pytest.raises(ValueError, match="the motor is off"):
        host.step([0])


def test_an_object_is_not_changed_by_the_check() -> None:
    env = Episodic()
    agent = DeepQ(env, **TINY)
    assert not env.taken
    agent.learn(steps=7)
    assert len(env.taken) == 7


def test_rewards_are_numbers_of_any_kind() -> None:
    for value in (1, 1.0, np.float32(1), np.int8(1), np.array([1.0]), np.array(1), True):
        assert contract.reward("Env", value) == 1.0
    assert contract.rewards("Env", [1, 2], 2).tolist() == [1.0, 2.0]
    with refused("rewards of shape (2, 1), not (2,)"):
        contract.rewards("Env", [[1], [2]], 2)
    assert contract.flags("Env", "terminated", (np.bool_(True), 0), 2).tolist() == [True, False]
