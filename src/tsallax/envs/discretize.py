"""`Discretize`: a finite set of actions on a box, an even grid with its ends included."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.errors import InvalidInput

MAX_ACTIONS = 10_000_000


@dataclass(frozen=True)
class Discretize:
    """An even grid over the box [low, high], with `levels` values in each dimension.

    The first dimension is the slowest: action number i₁ n₂ n₃ + i₂ n₃ + i₃ has the levels
    (i₁, i₂, i₃) of (n₁, n₂, n₃).

    >>> grid = Discretize.of([-1, 0], [1, 3], actions=(3, 2))
    >>> len(grid)
    6
    >>> grid.table[:3]
    array([[-1.,  0.],
           [-1.,  3.],
           [ 0.,  0.]])
    >>> int(grid.nearest([0.2, 1.0]))
    2
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    levels: tuple[int, ...]

    @classmethod
    def of(cls, low: ArrayLike, high: ArrayLike, actions: int | Iterable[int]) -> Self:
        """A grid over a box with `actions` levels in every dimension, or a list of numbers."""
        lows, highs = (np.atleast_1d(np.asarray(bound, float)) for bound in (low, high))
        if lows.shape != highs.shape:
            shapes = f"shapes {lows.shape} and {highs.shape}"
            raise InvalidInput(f"low and high: {shapes}, should be the same")
        levels: Any = (actions,) * lows.size
        if isinstance(actions, Iterable) and not isinstance(actions, str):
            levels = tuple(actions)
        grid = cls(tuple(lows.ravel().tolist()), tuple(highs.ravel().tolist()), levels)
        grid.require_table()
        return grid

    def __post_init__(self) -> None:
        size = len(self.low)
        if size == 0 or len(self.high) != size:
            raise InvalidInput(f"low and high: {size} and {len(self.high)} dimensions, not equal")
        if len(self.levels) != size:
            raise InvalidInput(
                f"actions: {len(self.levels)} numbers of levels for {size} action "
                f"dimension{'s' * (size > 1)}; give one number for all, or {size}"
            )
        for i, (low, high, n) in enumerate(zip(self.low, self.high, self.levels, strict=True)):
            if not (math.isfinite(low) and math.isfinite(high)):
                raise InvalidInput(
                    f"action dimension {i}: bounds {low:g} to {high:g}, needs finite ones; "
                    "give it a bounded Box with gymnasium.wrappers.TransformAction"
                )
            if not low < high:
                raise InvalidInput(f"action dimension {i}: low {low:g} is not below high {high:g}")
            checks.count("actions", n, at_least=2)
        object.__setattr__(self, "levels", tuple(int(n) for n in self.levels))

    def __len__(self) -> int:
        """The number of actions."""
        return math.prod(self.levels)

    def require_table(self) -> None:
        """Refuse a grid with too many actions to number them."""
        size = math.prod(self.levels)
        if size > MAX_ACTIONS:
            raise InvalidInput(
                f"actions: {' x '.join(map(str, self.levels))} = {size} actions, "
                f"at most {MAX_ACTIONS}; give fewer levels"
            )

    @cached_property
    def level_table(self) -> NDArray[np.float64]:
        """The levels of each dimension, (dimensions, most levels), filled up with zeros.

        >>> Discretize.of([-1, 0], [1, 3], actions=(3, 2)).level_table
        array([[-1.,  0.,  1.],
               [ 0.,  3.,  0.]])
        """
        table = np.zeros((len(self.levels), max(self.levels)))
        for row, low, high, n in zip(table, self.low, self.high, self.levels, strict=True):
            row[:n] = np.linspace(low, high, n)
        table.setflags(write=False)
        return table

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """The rows of the actions, of shape (number of actions, dimensions); read-only."""
        self.require_table()
        parts = zip(self.low, self.high, self.levels, strict=True)
        axes = np.meshgrid(*(np.linspace(*part) for part in parts), indexing="ij")
        table = np.stack(axes, axis=-1).reshape(len(self), len(self.levels))
        table.setflags(write=False)
        return table

    def nearest(self, action: ArrayLike) -> NDArray[np.int64]:
        """The indices of the actions nearest to real ones of shape (..., dimensions)."""
        given = np.asarray(action, float)
        size = len(self.levels)
        if given.ndim == 0 or given.shape[-1] != size:
            raise InvalidInput(f"action: shape {given.shape}, its last axis should be {size}")
        if np.isnan(given).any():
            raise InvalidInput("action: contains NaN")
        low, high, levels = np.array(self.low), np.array(self.high), np.array(self.levels)
        place = np.rint((given - low) / (high - low) * (levels - 1))
        index = np.clip(place, 0, levels - 1).astype(np.int64)
        flat = np.ravel_multi_index(tuple(np.moveaxis(index, -1, 0)), self.levels)
        return np.asarray(flat, np.int64)
