"""`Canvas`: pictures of discs and lines in the plane, drawn with NumPy alone."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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
