"""The fingertip of the Reacher is that of MuJoCo's last stage; its steps: test_environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mujoco_episodes import apart, replay
from tsallax.envs import Reacher
from tsallax.envs.jax import reacher
from tsallax.envs.jax.canvas import BLUE, GREEN


def test_the_fingertip_is_that_of_the_last_stage() -> None:
    state = Reacher.reset(jax.random.key(0))
    state, _ = replay(Reacher, state, jnp.array([[1.0, -1.0]] * 3))
    assert 1e-7 < apart(state.fingertip, reacher.fingertip(state.motion)) < 1e-4


def test_the_target_is_drawn_where_the_state_has_it() -> None:
    state = jax.jit(Reacher.reset)(jax.random.key(0))
    state = state._replace(target=jnp.array([0.1, 0.15]), motion=jnp.zeros(4))
    picture = reacher.draw(state)
    row, column = np.argwhere((picture == GREEN).all(-1)).mean(0)
    assert column / 360 * 0.66 - 0.33 == pytest.approx(0.1, abs=0.003)
    assert 0.33 - row / 360 * 0.66 == pytest.approx(0.15, abs=0.003)
    assert (picture == BLUE).all(-1).sum() > 100
