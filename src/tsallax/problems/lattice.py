"""Transition matrices of continuous dynamics on an even grid with independent coordinates.

A point between grid points becomes a distribution over its neighbours with the same mean (linear
interpolation), and the joint distribution of independent coordinates is the product of theirs:
multilinear interpolation, or more generally T(s'|s,a) = Π_i T_i(s'_i|s,a).
"""

from dataclasses import dataclass
from itertools import product
from math import isqrt, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tsallax import checks
from tsallax.errors import InvalidInput

SNAP = 1e-9
"""A point this close to a grid point, in cells, lies on it."""
MAX_NAMED_STATES = 10_000
"""Grids of up to this many states have state names, the coordinates."""


@dataclass(frozen=True)
class Move:
    """The next value of one coordinate: probabilities `weights` of the axis points `indices`.

    Both have shape (..., k), increasing `indices` along the last axis. The leading axes are those
    of the states and the actions, or broadcast against them. `size` is the axis' point count.
    """

    indices: NDArray[np.int32]
    weights: NDArray[np.float64]
    size: int


def interpolate(cells: NDArray[np.float64], size: int, periodic: bool = False) -> Move:
    """Split points between their two grid neighbours so that the mean is the point.

    Args:
        cells: the points, in cells from the first of the `size` grid points; points beyond the
            ends are moved to the end, unless the axis is periodic.
        size: number of grid points, at least 2.
        periodic: whether the point `size` is the point 0 again.

    >>> interpolate(np.array([1.25]), 4).weights
    array([[0.75, 0.25]])
    >>> interpolate(np.array([3.25]), 4, periodic=True).indices
    array([[0, 3]], dtype=int32)
    """
    nearest = np.rint(cells)
    cells = np.where(np.abs(cells - nearest) < SNAP, nearest, cells)
    cells = cells if periodic else np.clip(cells, 0, size - 1)
    left = np.floor(cells) if periodic else np.minimum(np.floor(cells), size - 2)
    share = cells - left
    lower = left.astype(np.int64) % size
    upper = (lower + 1) % size
    wraps = upper < lower
    indices = np.stack([np.where(wraps, upper, lower), np.where(wraps, lower, upper)], axis=-1)
    weights = np.stack([np.where(wraps, share, 1 - share), np.where(wraps, 1 - share, share)], -1)
    return Move(indices.astype(np.int32), weights, size)


def joint_rows(*moves: Move) -> csr_array:
    """Multiply independent coordinates into T(s'|s,a), one CSR row for each leading index.

    States and successors are numbered with the last coordinate running fastest.

    >>> half = Move(np.array([[0, 1]], np.int32), np.array([[0.5, 0.5]]), 2)
    >>> joint_rows(half, half).toarray()
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    n = len(moves)
    successors: NDArray[np.int32] = np.zeros((1,) * (n + 1), np.int32)
    chances: NDArray[np.float64] = np.ones((1,) * (n + 1))
    states = 1
    for i, move in enumerate(moves):
        spread = [1] * n
        spread[i] = move.indices.shape[-1]
        shape = (*move.indices.shape[:-1], *spread)
        successors = successors * np.int32(move.size) + move.indices.reshape(shape)
        chances = chances * move.weights.reshape(shape)
        states *= move.size
    successors = successors.reshape(-1, int(np.prod(successors.shape[-n:])))
    chances = chances.reshape(successors.shape)
    kept = chances > 0
    starts = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept.sum(axis=1), out=starts[1:])
    return csr_array((chances[kept], successors[kept], starts), shape=(len(kept), states))


def counts(name: str, given: Any, length: int, total: bool = False) -> list[int]:
    """The number of points of each of `length` axes, given as one number or a tuple.

    One number is the count of every axis or, if `total`, of all combinations of two axes.

    >>> counts("actions", 25, 2, total=True), counts("grid", (15, 11), 2)
    ([5, 5], [15, 11])
    """
    if not isinstance(given, tuple):
        side = checks.count(name, given, at_least=2)
        if total:
            side = isqrt(side)
            if side < 2 or side * side != given:
                raise InvalidInput(f"{name} must be a square such as 25 or a tuple, got {given}")
        given = (side,) * length
    if len(given) != length:
        raise InvalidInput(f"{name} must be a tuple of {length} numbers, got {given}")
    return [checks.count(name, size, at_least=2) for size in given]


def point_names(*axes: NDArray[np.float64]) -> list[str] | None:
    """The points of a grid as "(x, y)", the last axis running fastest; None where names repeat.

    Grids of more than `MAX_NAMED_STATES` points have no names.

    >>> point_names(np.array([0.0, 0.5]), np.array([1.0]))
    ['(0, 1)', '(0.5, 1)']
    """
    if prod(len(axis) for axis in axes) > MAX_NAMED_STATES:
        return None
    texts = [[f"{value + 0.0:.4g}" for value in axis.round(12)] for axis in axes]
    if any(len(set(values)) < len(values) for values in texts):
        return None
    return [f"({', '.join(values)})" for values in product(*texts)]


def point(name: str, value: tuple[float, float]) -> NDArray[np.float64]:
    """The coordinates (x, y) of a point in the plane.

    >>> point("goal", (1, 2))
    array([1., 2.])
    """
    try:
        place = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be two finite numbers, got {value!r}") from None
    if place.shape != (2,) or not np.isfinite(place).all():
        raise InvalidInput(f"{name} must be two finite numbers, got {value}")
    return place
