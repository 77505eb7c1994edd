"""Descriptions of environments: plain data that give the same specification again."""

import json
from typing import Any

import gymnasium
import pytest
from gymnasium.spaces import Box, Discrete, Tuple

from refusals import refused
from small_agents import Episodic
from tsallax.deep.environment_description import from_description
from tsallax.deep.environment_spec import EnvironmentSpec, make_spec


def spec_of(env: Any, actions: Any = None, **more: Any) -> EnvironmentSpec:
    return make_spec(env, **{"actions": actions, "n_envs": 1, "continuous": False, **more})


@pytest.mark.parametrize(
    "make",
    [
        lambda: spec_of("MultiGoal-v0", (3, 5)),
        lambda: spec_of("Reacher-v5", continuous=True),
        lambda: spec_of("CartPole-v1", n_envs=2),
        lambda: spec_of("FrozenLake-v1", options={"is_slippery": False}),
        lambda: spec_of("Pendulum-v1", 3),
        lambda: spec_of("Reacher-v5", 3, factored=True),
        lambda: spec_of("Blackjack-v1"),
        lambda: spec_of(Episodic(None, Tuple([Discrete(2), Box(-1, 1, (2,))])), 3),
    ],
)
def test_a_description_gives_the_same_specification_again(make):
    about = json.loads(json.dumps(make().describe()))
    again = from_description(about)
    assert json.loads(json.dumps(again.describe())) == about
    assert again.host is None, "environments are made when they are first used"


def test_another_environment_must_have_the_described_spaces():
    about = spec_of("CartPole-v1", n_envs=2).describe()
    assert from_description(about, "CartPole-v1").n_envs == 2
    with refused("Acrobot-v1: has observation_shape (6,), but the agent was made for (4,)"):
        from_description(about, "Acrobot-v1")


def numbers(size: int = 1) -> Episodic:
    """An environment of so many numbers, which shows with which option it was made."""
    return Episodic(Box(-1, 1, (size,)))


def test_a_function_that_is_given_again_has_the_options_of_training():
    made = spec_of(numbers, options={"size": 3})
    about = json.loads(json.dumps(made.describe()))
    again = from_description(about, numbers)
    assert again.options == {"size": 3}
    assert again.training_environment().reset([0]).shape == (1, 3)
    named = {**about, "by_name": True, "name": f"{__name__}:numbers"}
    for env in (numbers, named["name"]):
        assert from_description(named, env).options == {"size": 3}


def test_options_of_an_id_are_not_for_a_function():
    about = spec_of("FrozenLake-v1", options={"is_slippery": False}).describe()
    assert not from_description(about, lambda: gymnasium.make("FrozenLake-v1")).options


def test_an_id_that_names_a_module_is_not_used():
    about = {**spec_of("CartPole-v1").describe(), "name": "module:CartPole-v1"}
    assert from_description(about).source is None
