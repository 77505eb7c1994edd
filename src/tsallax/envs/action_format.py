"""`ActionFormat`: the actions of any space as choices that are numbered from 0.

A dimension of an action is one choice: an element of a Discrete, MultiDiscrete or MultiBinary
space, or one of the levels of an element of a Box. The dimensions of a Tuple or Dict are those of
its parts, in their order.

- Joint actions are numbered over the product of all dimensions, the first the slowest, as
  `Discretize` numbers them.
- Factored actions have one number in each dimension.
- Real actions, of a Box without levels, have no choices.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.envs.discretize import MAX_ACTIONS, Discretize
from tsallax.envs.space_description import SpaceDescription
from tsallax.errors import InvalidInput

FACTORED_BOX = 3
"""The number of dimensions from which a Box is factored unless asked for otherwise."""


@dataclass(frozen=True)
class ActionFormat:
    """A space of actions, the levels of its boxes, and whether its dimensions are factors.

    >>> from tsallax.envs.space_description import SpaceDescription
    >>> pair = SpaceDescription(
    ...     kind="multi_discrete", shape=(2,), dtype="int64", sizes=(3, 2), start=(0, 0)
    ... )
    >>> joint, factored = (ActionFormat(pair, factored=factored) for factored in (False, True))
    >>> joint.n_actions, joint.decode([0, 5]).tolist()
    (6, [[0, 0], [2, 1]])
    >>> factored.n_actions, factored.decode([[2, 1]]).tolist()
    (5, [[2, 1]])
    """

    space: SpaceDescription
    levels: tuple[int, ...] | None = ()
    """The numbers of levels of all elements of boxes; None for real actions."""
    factored: bool = False

    @classmethod
    def of(
        cls,
        space: SpaceDescription,
        actions: int | Iterable[int] | None,
        *,
        continuous: bool = False,
        factored: bool | None = None,
    ) -> Self:
        """The format with `actions` levels for each element of a box, or with a list of numbers.

        By default actions are factored, except for a Discrete space and a Box of one or two
        dimensions.
        """
        boxes = [leaf for leaf in space.leaves() if leaf.kind == "box"]
        dimensions = sum(box.size for box in boxes)
        if continuous:
            if space.kind != "box":
                problem = f"its actions are {_kind(space)}, not real vectors; use DeepQ"
                raise InvalidInput(problem)
            if actions is not None:
                problem = "actions cannot be combined with continuous=True"
                raise InvalidInput(problem, omit="actions")
            return cls(space, None)
        if not boxes and actions is not None:
            if space.kind == "discrete":
                raise InvalidInput(f"has {space.sizes[0]} discrete actions", omit="actions")
            raise InvalidInput(f"its actions, {space}, are not continuous", omit="actions")
        if boxes and actions is None:
            word = f"in {dimensions} dimension{'s' * (dimensions > 1)}"
            raise InvalidInput(f"its actions are continuous, {word}", add=("actions", 11))
        levels: Any = (actions,) * dimensions if boxes else ()
        if isinstance(actions, Iterable) and not isinstance(actions, str):
            levels = tuple(actions)
        if factored is None:
            small = space.kind == "box" and space.size < FACTORED_BOX
            factored = space.kind != "discrete" and not small
        return cls(space, levels, factored)

    def __post_init__(self) -> None:
        leaves = list(self.space.leaves())
        if self.levels is None:
            if self.space.kind != "box" or self.factored:
                raise InvalidInput(f"actions of {self.space} have choices")
            return
        dimensions = sum(leaf.size for leaf in leaves if leaf.kind == "box")
        if len(self.levels) != dimensions:
            raise InvalidInput(
                f"actions: {len(self.levels)} numbers of levels for {dimensions} action "
                f"dimension{'s' * (dimensions > 1)}; give one number for all, or {dimensions}"
            )
        assert len(self.grids) == len(leaves)  # made here, so that levels are checked
        object.__setattr__(self, "levels", tuple(int(n) for n in self.levels))
        choices = self.choices or ()
        if self.factored and len(choices) * max(choices) > MAX_ACTIONS:
            size = f"{len(choices)} action dimensions of up to {max(choices)} choices"
            raise InvalidInput(f"{size} are too many, at most {MAX_ACTIONS} in all")
        if not self.factored and math.prod(choices) > MAX_ACTIONS:
            product = " x ".join(map(str, choices[:6])) + " x ..." * (len(choices) > 6)
            problem = f"actions: {product} are more than {MAX_ACTIONS} to number as one"
            raise InvalidInput(problem, add=("factored", True))

    @cached_property
    def grids(self) -> tuple[Discretize | None, ...]:
        """The grid of each leaf of the space, None where its elements are integers."""
        grids: list[Discretize | None] = []
        position = 0
        for leaf in self.space.leaves():
            if leaf.kind != "box" or self.levels is None:
                grids.append(None)
                continue
            levels = self.levels[position : position + leaf.size]
            position += leaf.size
            grids.append(Discretize(leaf.low, leaf.high, levels))
        return tuple(grids)

    @cached_property
    def choices(self) -> tuple[int, ...] | None:
        """The number of choices in each dimension; None where actions are real."""
        if self.levels is None:
            return None
        found: list[int] = []
        for leaf, grid in zip(self.space.leaves(), self.grids, strict=True):
            found += leaf.sizes if grid is None else grid.levels
        return tuple(found)

    @property
    def n_actions(self) -> int | None:
        """The number of joint actions, or of all choices of factored ones; None for real ones."""
        if self.choices is None:
            return None
        return sum(self.choices) if self.factored else math.prod(self.choices)

    @property
    def discretize(self) -> Discretize | None:
        """The grid of a space that is one box."""
        return self.grids[0] if self.space.kind == "box" else None

    @cached_property
    def _leaf_values(self) -> tuple[tuple[SpaceDescription, NDArray[Any]], ...]:
        """Each leaf with the levels of its elements, (size, most levels), or their first values."""
        return tuple(
            (leaf, np.array(leaf.start) if grid is None else grid.level_table.astype(leaf.dtype))
            for leaf, grid in zip(self.space.leaves(), self.grids, strict=True)
        )

    @cached_property
    def _joint_table(self) -> NDArray[Any] | None:
        """The actions of a box by their joint numbers."""
        if self.discretize is None or self.factored:
            return None
        return self.discretize.table.astype(self.space.dtype).reshape(-1, *self.space.shape)

    def has(self, actions: ArrayLike) -> bool:
        """Whether all numbers of actions are within their limits; True for real actions."""
        if self.choices is None:
            return True
        limits = np.array(self.choices if self.factored else math.prod(self.choices))
        given = np.asarray(actions)
        return bool(((given >= 0) & (given < limits)).all())

    def allows(self, mask: NDArray[np.bool_] | None, actions: ArrayLike) -> bool:
        """Whether a mask (n, n_actions) allows all of n actions; None allows all."""
        if mask is None or self.choices is None:
            return True
        outputs = np.asarray(actions).reshape(len(mask), -1)
        if self.factored:
            outputs = outputs + np.cumsum((0, *self.choices[:-1]))
        return bool(np.take_along_axis(mask, outputs, 1).all())

    def numbers(self, actions: ArrayLike) -> NDArray[np.int64]:
        """Actions as one number in each dimension, (n, dimensions)."""
        given = np.asarray(actions)
        assert self.choices is not None
        if self.factored:
            return given.reshape(-1, len(self.choices))
        return np.stack(np.unravel_index(given.reshape(-1), self.choices), -1)

    def decode(self, actions: ArrayLike) -> Any:
        """Actions (n,), or factored or real ones (n, dimensions), as elements of the space.

        They are one array for a space of arrays, and a list for a Tuple or Dict.
        """
        if self.levels is None:
            real = np.asarray(actions, self.space.dtype)
            return real.reshape(-1, *self.space.shape)
        if self.space.kind == "discrete":
            return np.asarray(actions).reshape(-1).astype(self.space.dtype) + self.space.start[0]
        if self._joint_table is not None:
            return self._joint_table[np.asarray(actions).reshape(-1)]
        numbers, position = self.numbers(actions), 0
        arrays = []
        for leaf, values in self._leaf_values:
            chosen = numbers[:, position : position + leaf.size]
            position += leaf.size
            if leaf.kind == "box":
                found = values[np.arange(leaf.size), chosen]
            else:
                found = (chosen + values).astype(leaf.dtype)
            arrays.append(found.reshape(-1, *leaf.shape))
        if not self.space.is_structure:
            return arrays[0]
        return [_assemble(self.space, iter([a[i] for a in arrays])) for i in range(len(numbers))]

    def describe(self) -> dict[str, Any]:
        """Plain data, from which `from_description` makes an equal format."""
        levels = None if self.levels is None else list(self.levels)
        return {"space": self.space.describe(), "levels": levels, "factored": self.factored}

    @classmethod
    def from_description(cls, about: Mapping[str, Any]) -> Self:
        """The format that `describe` described."""
        levels = about["levels"]
        if levels is not None:
            levels = tuple(checks.count("levels", n, at_least=2) for n in levels)
        space = SpaceDescription.from_description(about["space"])
        return cls(space, levels, checks.flag("factored", about["factored"]))


def _assemble(space: SpaceDescription, arrays: Any) -> Any:
    """An element of a space from the values of its leaves, taken in order."""
    if not space.is_structure:
        return next(arrays)
    values = [_assemble(part, arrays) for part in space.parts]
    return dict(zip(space.names, values, strict=True)) if space.kind == "dict" else tuple(values)


def _kind(space: SpaceDescription) -> str:
    return "discrete" if space.kind == "discrete" else f"of {space}"
