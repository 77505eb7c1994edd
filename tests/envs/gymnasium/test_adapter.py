"""The adapter: seeds, truncation, limits, frames, and what it refuses."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from counting_environments import spaced
from refusals import refused
from tsallax.envs import GymnasiumAdapter


def test_separate_environments_are_reset_by_calls_and_have_their_seeds() -> None:
    host = GymnasiumAdapter("CartPole-v1", n_envs=2)
    expected = [gymnasium.make("CartPole-v1").reset(seed=seed)[0] for seed in (3, 4, 5)]
    np.testing.assert_array_equal(host.reset([3, 4]), expected[:2])
    done = np.zeros(2, bool)
    while not done.any():
        observations, _, terminated, truncated = host.step([1, 0])
        done = terminated | truncated
    assert np.abs(observations[done, 2]).max() > 0.2
    np.testing.assert_array_equal(host.reset_one(int(done.argmax()), seed=5), expected[2])


def test_continuous_actions_are_real_vectors() -> None:
    host = GymnasiumAdapter("tsallax/Reacher-v5", continuous=True)
    assert host.n_actions is host.discretize is None
    assert host.action.space.low == (-1.0, -1.0)
    host.reset([0])
    _, rewards, *_ = host.step([[0.5, -1.0]])
    assert -2 < rewards[0] < -1.25


def test_drawing_needs_a_render_mode_and_what_it_draws_with() -> None:
    with refused("CartPole-v1: cannot be drawn: give options, such as options={'render_mode'"):
        GymnasiumAdapter("CartPole-v1").frame()
    drawn = {"render_mode": "rgb_array"}
    host = GymnasiumAdapter("tsallax/Reacher-v5", actions=3, options=drawn)
    with refused("cannot draw it: "):
        host.frame()


def test_seeds_are_one_per_environment() -> None:
    with refused("seeds: 1 for 2 environments"):
        GymnasiumAdapter("CartPole-v1", n_envs=2).reset([0])


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("CartPole-v1", {"n_envs": 0}, "n_envs must be an integer of at least 1, got 0"),
        ("Pendulum-v1", {"actions": 3, "continuous": True}, "continuous=True: leave actions out"),
        (spaced(), {"n_envs": 2}, "n_envs: only for an environment given by its id"),
        (spaced(), {"options": {"render_mode": "human"}}, "render_mode: only for an environment"),
        (3, {}, "3: neither an id nor a Gymnasium environment"),
    ],
    ids=str,
)
def test_unusable_arguments_are_refused_in_one_line(env: Any, options: Any, message: str) -> None:
    with refused(message):
        GymnasiumAdapter(env, **options)
