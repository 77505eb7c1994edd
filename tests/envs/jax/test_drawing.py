"""Pictures show the state: shapes have their areas, and things are where the state says."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.envs.jax.catalogue import BY_ID
from tsallax.envs.jax.drawing import BLUE, DRAW, GREEN, INK, ORANGE, Canvas


def test_shapes_have_their_areas_and_places() -> None:
    canvas = Canvas((-1.0, 1.0), (-0.5, 0.5), width=400)
    canvas.line((-0.5, 0.0), (0.5, 0.0), 0.1, (0, 0, 0))
    canvas.disc((0.0, 0.4), 0.05, (0, 0, 0))
    dark = 1 - canvas.pixels()[..., 0] / 255.0
    area = dark.sum() * (2 / 400) ** 2
    assert area == pytest.approx(2 * 0.1 + math.pi * (0.1**2 + 0.05**2), rel=0.01)
    assert dark[100, 200] == dark[20, 200] == 1  # the middle, and the disc above it
    assert dark[-20, 200] == 0


def pixels_of(picture: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    """Rows and columns of the pixels of a colour."""
    return np.argwhere((picture == colour).all(-1))


def test_the_target_of_the_reacher_and_the_point_mass_are_where_the_state_has_them() -> None:
    reacher = jax.jit(BY_ID["Reacher-v5"].reset)(jax.random.key(0))
    reacher = reacher._replace(target=jnp.array([0.1, 0.15]), motion=jnp.zeros(4))
    picture = DRAW["Reacher-v5"][0](reacher)
    row, column = pixels_of(picture, GREEN).mean(0)
    assert column / 360 * 0.66 - 0.33 == pytest.approx(0.1, abs=0.003)
    assert 0.33 - row / 360 * 0.66 == pytest.approx(0.15, abs=0.003)
    assert len(pixels_of(picture, BLUE)) > 100
    mass = jax.jit(BY_ID["MultiGoal-v0"].reset)(jax.random.key(0))
    picture = DRAW["MultiGoal-v0"][0](mass._replace(location=jnp.array([-1.6, 1.6])))
    row, column = pixels_of(picture, INK).mean(0)
    assert column == pytest.approx(90, abs=1)
    assert row == pytest.approx(90, abs=1)


def test_the_pole_leans_as_the_state_does() -> None:
    state = jax.jit(BY_ID["InvertedPendulum-v5"].reset)(jax.random.key(0))
    lean = []
    for angle in (-0.2, 0.0, 0.2):
        leaning = state._replace(motion=jnp.array([0.0, angle, 0.0, 0.0]))
        picture = DRAW["InvertedPendulum-v5"][0](leaning)
        lean.append(pixels_of(picture, ORANGE)[:, 1].mean())
    assert lean == sorted(lean)
    assert lean[2] - lean[0] > 10
