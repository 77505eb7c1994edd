"""Pictures of the JAX environments' states, drawn with NumPy alone."""

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsallax.envs.jax import inverted_pendulum, reacher
from tsallax.envs.jax.environment import State
from tsallax.problems.multigoal_mdp import GOALS, SIZE

Point: TypeAlias = tuple[float, float]
Colour: TypeAlias = tuple[int, int, int]
Picture: TypeAlias = NDArray[np.uint8]

PAPER: Colour = (255, 255, 255)
FAINT: Colour = (226, 228, 232)
INK: Colour = (52, 58, 70)
BLUE: Colour = (46, 104, 168)
ORANGE: Colour = (226, 122, 40)
GREEN: Colour = (58, 146, 92)


class Canvas:
    """A picture of the window [left, right] x [bottom, top] of the plane, with smooth edges.

    >>> canvas = Canvas((-1.0, 1.0), (-1.0, 1.0), width=40)
    >>> canvas.disc((0.0, 0.0), 0.5, (0, 0, 0))
    >>> canvas.pixels().shape, canvas.pixels()[20, 20].tolist(), canvas.pixels()[0, 0].tolist()
    ((40, 40, 3), [0, 0, 0], [255, 255, 255])
    """

    def __init__(self, horizontal: Point, vertical: Point, width: int) -> None:
        self._scale = width / (horizontal[1] - horizontal[0])
        height = round(self._scale * (vertical[1] - vertical[0]))
        height += height % 2  # video codecs want even sizes
        self.x = horizontal[0] + (np.arange(width, dtype=np.float32) + 0.5) / self._scale
        self.y = (vertical[1] - (np.arange(height, dtype=np.float32) + 0.5) / self._scale)[:, None]
        self._image = np.empty((height, width, 3), np.float32)
        self._image[:] = PAPER

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        """Paint a disc."""
        self.line(centre, centre, radius, colour)

    def line(self, start: Point, end: Point, radius: float, colour: Colour) -> None:
        """Paint a line with round ends, `radius` to either side."""
        across = self._near(self.x, start[0], end[0], radius)
        down = self._near(self.y[:, 0], start[1], end[1], radius)
        x, y = self.x[across] - start[0], self.y[down] - start[1]
        along = np.subtract(end, start)
        square = float(along @ along)
        if square > 0:
            share = np.clip((x * along[0] + y * along[1]) / square, 0.0, 1.0)
            x, y = x - share * along[0], y - share * along[1]
        cover = (radius - np.hypot(x, y)) * self._scale + 0.5
        _blend(self._image[down, across], cover, colour)

    def _near(self, places: NDArray[np.float32], start: float, end: float, radius: float) -> slice:
        """The rows or columns that a line can touch."""
        margin = radius + 1 / self._scale
        near = (places > min(start, end) - margin) & (places < max(start, end) + margin)
        touched = np.flatnonzero(near)
        return slice(touched[0], touched[-1] + 1) if touched.size else slice(0, 0)

    def path(self, points: Iterable[Point], radius: float, colour: Colour) -> None:
        """Paint the lines from each point to the next."""
        for start, end in pairwise(points):
            self.line(start, end, radius, colour)

    def shade(self, strength: NDArray[np.floating], colour: Colour) -> None:
        """Tint every pixel, by a strength between 0 and 1."""
        _blend(self._image, strength, colour)

    def pixels(self) -> Picture:
        """Return the picture, of shape (height, width, 3)."""
        return np.rint(self._image).astype(np.uint8)


def _blend(image: NDArray[np.float32], cover: NDArray[np.floating], colour: Colour) -> None:
    share = np.clip(cover, 0.0, 1.0)[..., None]
    image += share * (np.asarray(colour, np.float32) - image)


def draw_inverted_pendulum(state: State, width: int = 480) -> Picture:
    """Draw cart and pole, on the rail, between the angles where the pole has fallen."""
    x, angle = (float(value) for value in state.motion[:2])
    rail = inverted_pendulum.RAIL
    canvas = Canvas((-1.3, 1.3), (-0.25, 0.75), width)
    canvas.line((-rail, 0.0), (rail, 0.0), 0.012, FAINT)
    for stop in (-rail, rail):
        canvas.line((stop, -0.04), (stop, 0.04), 0.008, INK)
    length = math.hypot(*inverted_pendulum.POLE_END)
    tilt = math.atan2(*inverted_pendulum.POLE_END)
    for fallen in (-inverted_pendulum.FALLEN, inverted_pendulum.FALLEN):
        canvas.line((x, 0.0), _from((x, 0.0), length, fallen + tilt), 0.003, FAINT)
    canvas.line((x - 0.1, 0.0), (x + 0.1, 0.0), 0.06, INK)
    canvas.line((x, 0.0), _from((x, 0.0), length, angle + tilt), 0.028, ORANGE)
    canvas.disc((x, 0.0), 0.014, PAPER)
    return canvas.pixels()


def _from(start: Point, length: float, angle: float) -> Point:
    """The point at a distance, in the direction that is an angle clockwise from upright."""
    return start[0] + length * math.sin(angle), start[1] + length * math.cos(angle)


def draw_reacher(state: State, width: int = 360) -> Picture:
    """Draw the arm and its target in the arena."""
    first, bend = (float(value) for value in state.motion[:2])
    elbow = reacher.LINK * math.cos(first), reacher.LINK * math.sin(first)
    tip = (
        elbow[0] + reacher.TIP * math.cos(first + bend),
        elbow[1] + reacher.TIP * math.sin(first + bend),
    )
    canvas = Canvas((-0.33, 0.33), (-0.33, 0.33), width)
    canvas.path([(-0.3, -0.3), (0.3, -0.3), (0.3, 0.3), (-0.3, 0.3), (-0.3, -0.3)], 0.006, FAINT)
    canvas.disc((float(state.target[0]), float(state.target[1])), 0.014, GREEN)
    canvas.line((0.0, 0.0), elbow, 0.010, BLUE)
    canvas.line(elbow, tip, 0.010, BLUE)
    canvas.disc((0.0, 0.0), 0.013, INK)
    canvas.disc(elbow, 0.005, PAPER)
    canvas.disc(tip, 0.012, ORANGE)
    return canvas.pixels()


def draw_multigoal(state: State, width: int = 360) -> Picture:
    """Draw the point mass over the rewards of all places."""
    edge = SIZE + 0.2
    canvas = Canvas((-edge, edge), (-edge, edge), width)
    nearest = np.min([(canvas.x - x) ** 2 + (canvas.y - y) ** 2 for x, y in GOALS], axis=0)
    canvas.shade(0.75 * np.exp(-0.5 * nearest / 0.2), GREEN)
    corners = [(-SIZE, -SIZE), (SIZE, -SIZE), (SIZE, SIZE), (-SIZE, SIZE), (-SIZE, -SIZE)]
    canvas.path(corners, 0.02, FAINT)
    place = float(state.location[0]), float(state.location[1])
    canvas.disc(place, 0.13, PAPER)
    canvas.disc(place, 0.10, INK)
    return canvas.pixels()


DRAW: dict[str, tuple[Callable[[State], Picture], int]] = {
    "InvertedPendulum-v5": (draw_inverted_pendulum, 25),
    "Reacher-v5": (draw_reacher, 50),
    "MultiGoal-v0": (draw_multigoal, 10),
}
"""By the environment's name, its picture and how many of them make a second."""
