"""Shapes have their areas and places."""

import math

import pytest

from tsallax.envs.jax.canvas import Canvas


def test_shapes_have_their_areas_and_places() -> None:
    canvas = Canvas((-1.0, 1.0), (-0.5, 0.5), width=400)
    canvas.line((-0.5, 0.0), (0.5, 0.0), 0.1, (0, 0, 0))
    canvas.disc((0.0, 0.4), 0.05, (0, 0, 0))
    dark = 1 - canvas.pixels()[..., 0] / 255.0
    area = dark.sum() * (2 / 400) ** 2
    assert area == pytest.approx(2 * 0.1 + math.pi * (0.1**2 + 0.05**2), rel=0.01)
    assert dark[100, 200] == dark[20, 200] == 1  # the middle, and the disc above it
    assert dark[-20, 200] == 0
