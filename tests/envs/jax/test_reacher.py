"""The fingertip of the Reacher is that of MuJoCo's last stage; its steps: test_environment."""

import jax
import jax.numpy as jnp

from mujoco_episodes import apart, replay
from tsallax.envs import Reacher
from tsallax.envs.jax import reacher


def test_the_fingertip_is_that_of_the_last_stage() -> None:
    state = Reacher.reset(jax.random.key(0))
    state, _ = replay(Reacher, state, jnp.array([[1.0, -1.0]] * 3))
    assert 1e-7 < apart(state.fingertip, reacher.fingertip(state.motion)) < 1e-4
