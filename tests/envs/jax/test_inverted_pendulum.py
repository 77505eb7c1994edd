"""The pendulum ends when it falls, and it is drawn as it leans; its steps: test_environment."""

import jax
import jax.numpy as jnp
import numpy as np

from tsallax.envs import InvertedPendulum
from tsallax.envs.jax.canvas import ORANGE
from tsallax.envs.jax.inverted_pendulum import InvertedPendulumState, draw


def test_a_pendulum_that_is_not_finite_has_fallen() -> None:
    state = InvertedPendulumState(jnp.array([0.0, 0.0, jnp.nan, 0.0]), jnp.int32(0))
    _, _, reward, terminated, _ = jax.jit(InvertedPendulum.step)(state, jnp.zeros(1))
    assert bool(terminated)
    assert float(reward) == 0.0


def test_the_picture_of_the_pole_leans_as_the_state_does() -> None:
    state = jax.jit(InvertedPendulum.reset)(jax.random.key(0))
    lean = []
    for angle in (-0.2, 0.0, 0.2):
        picture = draw(state._replace(motion=jnp.array([0.0, angle, 0.0, 0.0])))
        lean.append(np.argwhere((picture == ORANGE).all(-1))[:, 1].mean())
    assert lean == sorted(lean)
    assert lean[2] - lean[0] > 10
