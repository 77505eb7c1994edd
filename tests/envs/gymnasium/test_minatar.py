"""The games of MinAtar, with a stand-in for gymnax, and with gymnax where it is installed."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from tsallax import DeepQ, InvalidInput
from tsallax.envs.gymnasium import minatar
from tsallax.envs.gymnasium.gymnasium_make import make
from tsallax.envs.gymnasium.minatar import COLOURS, PIXELS


class Row(NamedTuple):
    """The state of `Walk`: the column of its one object."""

    column: Any


class Walk:
    """One object in the middle row, which moves left or right, and is caught in the last column."""

    num_actions = 2

    def observation_space(self, parameters: Any) -> Any:
        return SimpleNamespace(shape=(10, 10, 2))

    def reset_env(self, key: Any, parameters: Any) -> Any:
        state = Row(jax.random.randint(key, (), 0, 9))
        return self._seen(state), state

    def step_env(self, key: Any, state: Row, action: Any, parameters: Any) -> Any:
        state = Row(jnp.clip(state.column + 2 * action - 1, 0, 9))
        over = state.column == 9
        return self._seen(state), state, over.astype(jnp.float32), over, {}

    def _seen(self, state: Row) -> Any:
        return jnp.zeros((10, 10, 2)).at[5, state.column, 1].set(1)


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Breakout is a `Walk`."""
    gymnax = SimpleNamespace(make=lambda name: (Walk(), None))
    monkeypatch.setitem(sys.modules, "gymnax", gymnax)
    minatar._compiled.cache_clear()
    yield "tsallax/MinAtar-Breakout-v0"
    minatar._compiled.cache_clear()


def test_it_is_an_environment_of_gymnasium(walk: str) -> None:
    env = make(walk)
    check_env(env.unwrapped, skip_render_check=True)
    assert env.spec.max_episode_steps == 1000
    assert env.action_space == gymnasium.spaces.Discrete(2)


def test_observations_are_bytes_and_episodes_end(walk: str) -> None:
    env = make(walk, {"sticky": 0.0, "render_mode": "rgb_array"})
    image, _ = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(image, again)
    column = int(np.flatnonzero(image[5, :, 1])[0])
    assert image.sum() == image[5, column, 1] == 255
    for place in range(column + 1, 10):
        image, reward, terminated, truncated, _ = env.step(1)
        assert image[5, place, 1] == 255
        assert (reward, terminated, truncated) == (float(place == 9), place == 9, False)
    picture = env.render()
    assert picture.shape == (10 * PIXELS, 10 * PIXELS, 3)
    np.testing.assert_array_equal(picture[5 * PIXELS, -1], COLOURS[1])
    assert not picture[: 5 * PIXELS].any()


def test_sticky_actions_repeat_the_one_before(walk: str) -> None:
    env = make(walk, {"sticky": 0.25})
    env.reset(seed=0)
    repeated = 0
    for _ in range(400):
        before = int(env.unwrapped._state[1])
        _, _, terminated, truncated, _ = env.step(1 - before)
        repeated += int(env.unwrapped._state[1]) == before
        if terminated or truncated:
            env.reset()
    assert 0.18 < repeated / 400 < 0.32
    with pytest.raises(InvalidInput, match="sticky"):
        make(walk, {"sticky": 1.5})


def test_agents_take_its_observations_as_images(walk: str) -> None:
    agent = DeepQ(walk, net_arch=(8,), learning_starts=50, batch_size=8, buffer_size=500, seed=0)
    agent.learn(steps=80, progress=False)
    assert agent.parameters()["body.convolutions.0.weight"].shape == (3, 3, 2, 16)
    image, _ = make(walk).reset(seed=0)
    assert agent.predict(image) in (0, 1)


def test_without_gymnax_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnax", None)
    minatar._compiled.cache_clear()
    with pytest.raises(
        InvalidInput, match=r"^MinAtar-Asterix: needs gymnax: pip install gymnax six$"
    ):
        make("tsallax/MinAtar-Asterix-v0")


@pytest.mark.skipif(find_spec("gymnax") is None, reason="needs gymnax, which needs Gymnasium < 1.4")
def test_the_games_are_those_of_gymnax() -> None:
    import gymnax

    for game in minatar.GAMES:
        env = make(f"tsallax/MinAtar-{game}-v0")
        check_env(env.unwrapped, skip_render_check=True)
        made, parameters = gymnax.make(f"{game}-MinAtar")
        assert env.spec.max_episode_steps == parameters.max_steps_in_episode
        image, _ = env.reset(seed=1)
        for _ in range(50):
            (state, *_), action = env.unwrapped._state, env.action_space.sample()
            np.testing.assert_array_equal(image, 255 * np.asarray(made.get_obs(state, parameters)))
            image, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                image, _ = env.reset()
