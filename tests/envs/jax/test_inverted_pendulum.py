"""The pendulum ends when it falls; that its steps are MuJoCo's: test_environment."""

import jax
import jax.numpy as jnp

from tsallax.envs import InvertedPendulum
from tsallax.envs.jax.inverted_pendulum import InvertedPendulumState


def test_a_pendulum_that_is_not_finite_has_fallen() -> None:
    state = InvertedPendulumState(jnp.array([0.0, 0.0, jnp.nan, 0.0]), jnp.int32(0))
    _, _, reward, terminated, _ = jax.jit(InvertedPendulum.step)(state, jnp.zeros(1))
    assert bool(terminated)
    assert float(reward) == 0.0
