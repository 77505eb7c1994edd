"""Finite spaces that are products of ranges: their elements are numbered, and have coordinates.

The element with index i of a product with sizes (n_1, ..., n_k) has the coordinates of
`numpy.unravel_index(i, sizes)`: the last one varies fastest.  An axis is given by its size, and its
coordinates are then 0, ..., n-1, or by an increasing array of the values that its coordinate takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tsallax import checks
from tsallax.errors import InvalidInput

MAX_SIZE = 2**53
"""The largest number of elements: indices are exact in float64, too."""

Coordinates = Any
"""A number where a space is given by one axis, else a tuple of numbers, one for each axis."""


@dataclass(frozen=True, eq=False)
class Axis:
    """One factor of a product: coordinates 0, ..., size-1, or the elements of an array."""

    size: int
    values: np.ndarray[Any, Any] | None = None

    def value(self, position: Array) -> Array:
        """The coordinate at a position 0, ..., size-1."""
        return position if self.values is None else self._array(self.values)[position]

    def position(self, value: Any) -> tuple[Array, Array]:
        """The position of a coordinate, within the axis, and whether it is one of its values."""
        value = jnp.asarray(value)
        if self.values is None:
            inside = (value >= 0) & (value < self.size)
            whole = jnp.clip(value, 0, self.size - 1).astype(jnp.int32)
            return whole, inside & (whole == value)
        start = float(self.values[0])
        step = (float(self.values[-1]) - start) / max(self.size - 1, 1)
        if self.size > 1 and not np.allclose(np.diff(self.values), step, rtol=0.1):
            guess = jnp.searchsorted(self._array(self.values), value)
        else:
            guess = jnp.round((value - start) / (step or 1.0))
        position = jnp.clip(jnp.nan_to_num(guess), 0, self.size - 1).astype(jnp.int32)
        return position, self._array(self.values)[position] == value

    @staticmethod
    def _array(values: np.ndarray[Any, Any]) -> Array:
        """Values in the precision of now; JAX keeps that of a NumPy array which it saw before."""
        return jnp.asarray(values.astype(jax.dtypes.canonicalize_dtype(values.dtype)))


@dataclass(frozen=True, eq=False)
class Space:
    """A product of axes; `single` where it was given as one axis and not as a tuple."""

    axes: tuple[Axis, ...]
    single: bool

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each axis."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.sizes)

    @property
    def index_type(self) -> Any:
        """The smallest integer type that holds every index."""
        return jnp.int32 if self.size < 2**31 else jnp.int64

    def unravel(self, index: Array) -> tuple[Array, ...]:
        """The position on each axis of the element with this index."""
        positions = []
        for size in reversed(self.sizes):
            positions.append((index % size).astype(jnp.int32))
            index = index // size
        return tuple(reversed(positions))

    def coordinates(self, positions: Sequence[Array]) -> Coordinates:
        """The coordinates at these positions, as the caller's functions receive them."""
        values = tuple(axis.value(p) for axis, p in zip(self.axes, positions, strict=True))
        return values[0] if self.single else values

    def element(self, index: Array) -> Coordinates:
        """The coordinates of the element with this index."""
        return self.coordinates(self.unravel(index))

    def index(self, coordinates: Coordinates) -> tuple[Array, Array]:
        """The index of an element, and whether all coordinates are in the space."""
        leaves = jax.tree.leaves(coordinates)
        index, inside = jnp.zeros((), self.index_type), jnp.asarray(True)
        for axis, value in zip(self.axes, leaves, strict=True):
            position, found = axis.position(value)
            index = index * axis.size + position.astype(self.index_type)
            inside = inside & found
        return index, inside

    def describe(self, index: int) -> str:
        """The coordinates of an element as text."""
        positions = np.unravel_index(index, self.sizes)
        values = [
            int(p) if axis.values is None else axis.values[p].item()
            for axis, p in zip(self.axes, positions, strict=True)
        ]
        return str(values[0]) if self.single else f"({', '.join(map(str, values))})"

    def names(self) -> list[str]:
        """The coordinates of all elements as text."""
        return [self.describe(i) for i in range(self.size)]


def read_space(name: str, given: Any) -> Space:
    """A space from a size, an array of values, or a tuple of these."""
    single = not isinstance(given, tuple)
    parts = (given,) if single else given
    if not parts:
        raise InvalidInput(f"{name} must have at least one axis, not ()")
    axes = tuple(_read_axis(name if single else f"{name}[{i}]", p) for i, p in enumerate(parts))
    space = Space(axes, single)
    if space.size > MAX_SIZE:
        raise InvalidInput(f"{name} has {space.size:.3g} elements: more than {MAX_SIZE:.3g}")
    return space


def _read_axis(name: str, given: Any) -> Axis:
    if checks.is_integer(given):
        return Axis(checks.count(name, given, below=2**31))
    try:
        values = np.asarray(given)
    except ValueError:
        values = np.empty(0, object)
    if values.dtype.kind not in "iuf" or values.ndim != 1 or not len(values):
        raise InvalidInput(f"{name} must be a size or a one-dimensional array of numbers")
    values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    if not (np.isfinite(values).all() and (np.diff(values) > 0).all()):
        hint = "; the sizes of a product are a tuple" * (values.dtype.kind == "i")
        raise InvalidInput(f"the values of {name} must be finite and increasing{hint}")
    return Axis(len(values), values)
