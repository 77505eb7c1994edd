"""The integrator, the solids and the joint limits; whole steps are in test_environment."""

import math

import jax.numpy as jnp
import numpy as np

from precision import double
from tsallax.envs.jax.mechanics import DENSITY, capsule, limit_force, rk4, sphere


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
