"""The integrator, gravity and the soft joint limits are MuJoCo's."""

import math
from typing import Any

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from mujoco_episodes import MUJOCO, make
from precision import double
from tsallax.envs import Environment
from tsallax.envs.jax.mechanics import DENSITY, capsule, limit_force, rk4, sphere


@pytest.mark.parametrize("environment", MUJOCO, ids=lambda e: e.name)
def test_solver_and_constraint_parameters_are_those_of_the_models(environment: Environment) -> None:
    model: Any = make(environment).unwrapped.model
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    np.testing.assert_array_equal(model.opt.gravity, [0.0, 0.0, -9.81])
    np.testing.assert_array_equal(model.jnt_solref, [[0.02, 1.0]] * model.njnt)
    np.testing.assert_array_equal(model.jnt_solimp, [[0.9, 0.95, 0.001, 0.5, 2.0]] * model.njnt)
    assert not model.jnt_margin.any()
    assert model.opt.disableflags == 0
    assert model.opt.density == model.opt.viscosity == 0


def test_masses_and_inertias_are_those_of_the_solids() -> None:
    """By numerical integration of density and squared distance from the axis."""
    radius, half = 0.3, 0.5
    z = np.linspace(-half - radius, half + radius, 20_001)
    r2 = np.maximum(radius**2 - np.maximum(np.abs(z) - half, 0) ** 2, 0)
    area = math.pi * r2 * DENSITY
    expected = np.trapezoid(area, z), np.trapezoid(area * (r2 / 4 + z**2), z)
    np.testing.assert_allclose(capsule(radius, half), expected, rtol=1e-6)
    np.testing.assert_allclose(sphere(radius), capsule(radius, 0.0), rtol=1e-12)


def test_the_error_of_a_runge_kutta_step_is_of_fifth_order() -> None:
    with double():
        start = jnp.array([1.0, 0.0])
        errors = [
            abs(complex(*rk4(lambda x: jnp.array([-x[1], x[0]]), start, h)[0]) - np.exp(1j * h))
            for h in (0.1, 0.05)
        ]
    assert 28 < errors[0] / errors[1] < 36


def test_a_joint_limit_only_pushes_inwards() -> None:
    def force(position: float, velocity: float) -> float:
        numbers = map(jnp.asarray, (position, velocity, 0.0, 1.0))
        return float(limit_force(*numbers, limit=1.0, rest_mobility=1.0, h=0.01))

    assert force(0.99, 5.0) == force(-0.99, -5.0) == 0.0
    assert force(1.01, 0.0) < 0 < force(-1.01, 0.0)
    assert force(1.01, 0.0) == -force(-1.01, 0.0)
    assert force(1.01, -100.0) == 0.0  # already moving inwards fast
