"""The JAX environments pass Gymnasium's checks and have the spaces of the originals."""

import warnings
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from refusals import refused
from tsallax import envs
from tsallax.envs import GymnasiumAdapter
from tsallax.envs.gymnasium import registration
from tsallax.envs.jax.catalogue import BY_ID

OURS = ["tsallax/InvertedPendulum-v5", "tsallax/Reacher-v5", "tsallax/MultiGoal-v0"]


@pytest.mark.parametrize("name", OURS)
def test_the_registered_environments_pass_gymnasiums_check(name: str) -> None:
    envs.register()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of bounds, which are as Gymnasium's own
        env = gymnasium.make(name, render_mode="rgb_array")
        check_env(env.unwrapped)
    assert env.spec.max_episode_steps == envs.jax_environment(name).limit  # type: ignore[union-attr]
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.shape[2] == 3
    assert picture.shape[0] % 2 == picture.shape[1] % 2 == 0, "video codecs want even sizes"
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 50
    env.step(env.action_space.high)
    assert (env.render() != picture).any()


@pytest.mark.parametrize("name", ["InvertedPendulum-v5", "Reacher-v5"])
def test_the_registered_environments_have_gymnasiums_spaces(name: str) -> None:
    envs.register()
    theirs, ours = gymnasium.make(name), gymnasium.make(f"tsallax/{name}")
    assert ours.action_space == theirs.action_space
    assert ours.observation_space.shape == theirs.observation_space.shape
    assert ours.spec.max_episode_steps == theirs.spec.max_episode_steps
    assert ours.metadata["render_fps"] == theirs.metadata["render_fps"]


def test_another_step_limit_may_be_asked_for() -> None:
    for limit in (3, 70):
        options = {"max_episode_steps": limit}
        host = GymnasiumAdapter("tsallax/Reacher-v5", actions=3, options=options)
        assert host.limit == limit
        host.reset([0])
        _, _, terminated, truncated = zip(*(host.step([4]) for _ in range(limit)), strict=True)
        assert not np.any(terminated)
        assert np.ravel(truncated).tolist() == [False] * (limit - 1) + [True]


def test_steps_before_a_reset_and_unknown_names_are_refused() -> None:
    with refused("call reset() before step"):
        registration.JaxEnv("Reacher-v5").step([0.0, 0.0])
    with refused("Hopper-v5: is not an environment in JAX"):
        registration.JaxEnv("Hopper-v5")
    with refused("unknown render_mode 'human'"):
        registration.JaxEnv("Reacher-v5", render_mode="human")


def test_an_environment_without_pictures_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_ID, "Reacher-v5", replace(envs.Reacher, draw=None))
    assert registration.JaxEnv("Reacher-v5").render() is None
    with refused("Reacher-v5: cannot be drawn"):
        registration.JaxEnv("Reacher-v5", render_mode="rgb_array")
