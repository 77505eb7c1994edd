"""The Reacher has MuJoCo's parameters and its fingertip is that of MuJoCo's last stage."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from mujoco_episodes import apart, make, replay
from tsallax.envs import Reacher
from tsallax.envs.jax import reacher


def test_the_reacher_is_the_model_that_mujoco_compiles() -> None:
    model = make(Reacher).unwrapped.model
    check = partial(np.testing.assert_allclose, rtol=1e-13)
    ours = reacher
    check(model.body_mass[1:4], [ours.LINK_MASS, ours.LINK_MASS, ours.TIP_MASS])
    check(model.body_inertia[1:3, :2], ours.LINK_INERTIA)
    check(model.body_inertia[3], ours.TIP_INERTIA)
    check(model.body_pos[2:4, 0], [ours.LINK, ours.TIP])
    check(model.body_ipos[1:3, 0], ours.LINK / 2)
    check(model.dof_invweight0[1], ours.REST_MOBILITY)
    check(model.dof_armature[:2], ours.ROTOR)
    check(model.dof_damping[:2], ours.DAMPING)
    check(model.jnt_range[1], [-ours.ELBOW, ours.ELBOW])
    assert not model.jnt_limited[0]
    check(model.actuator_gear[:, 0], ours.GEAR)
    check(model.opt.timestep, ours.TIME_STEP)
    check(make(Reacher).unwrapped.frame_skip, ours.SUBSTEPS)


def test_the_fingertip_is_that_of_the_last_stage() -> None:
    state = Reacher.reset(jax.random.key(0))
    state, _ = replay(Reacher, state, jnp.array([[1.0, -1.0]] * 3))
    assert 1e-7 < apart(state.fingertip, reacher.fingertip(state.motion)) < 1e-4
