"""The pendulum has MuJoCo's parameters and ends when it falls."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from mujoco_episodes import make
from tsallax.envs import InvertedPendulum
from tsallax.envs.jax import inverted_pendulum
from tsallax.envs.jax.inverted_pendulum import InvertedPendulumState


def test_the_pendulum_is_the_model_that_mujoco_compiles() -> None:
    model = make(InvertedPendulum).unwrapped.model
    check = partial(np.testing.assert_allclose, rtol=1e-13)
    ours = inverted_pendulum
    check(model.body_mass[1:], [ours.CART_MASS, ours.POLE_MASS])
    check(model.body_ipos[2], [ours.CENTRE[0], 0.0, ours.CENTRE[1]])
    check(model.body_inertia[2, :2], ours.POLE_INERTIA)
    check(model.dof_invweight0[0], ours.REST_MOBILITY)
    check(model.dof_damping, ours.DAMPING)
    check(model.jnt_range[0], [-ours.RAIL, ours.RAIL])
    check(model.actuator_gear[0, 0], ours.GEAR)
    check(model.actuator_ctrlrange, [[-ours.FORCE, ours.FORCE]])
    check(model.opt.timestep, ours.TIME_STEP)
    check(make(InvertedPendulum).unwrapped.frame_skip, ours.SUBSTEPS)
    for unused in (model.dof_armature, model.jnt_stiffness, model.dof_frictionloss):
        assert not unused.any()


def test_a_pendulum_that_is_not_finite_has_fallen() -> None:
    state = InvertedPendulumState(jnp.array([0.0, 0.0, jnp.nan, 0.0]), jnp.int32(0))
    _, _, reward, terminated, _ = jax.jit(InvertedPendulum.step)(state, jnp.zeros(1))
    assert bool(terminated)
    assert float(reward) == 0.0
