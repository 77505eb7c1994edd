"""`ObservationEncoding`: observations of any space in the form in which agents store them.

A Discrete observation is stored as an integer counted from 0, a Box of bytes or booleans that is an
image as an image of bytes with the channels last, True as 255, and every other one as a vector of
float32: a Box flattened, other spaces as `gymnasium.spaces.utils.flatten` does it, integers
one-hot.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.envs.observation_format import ObservationFormat
from tsallax.envs.space_description import SpaceDescription
from tsallax.errors import InvalidInput

SMALLEST_IMAGE = 8
"""A Box with fewer rows or columns is a vector."""
IMAGE_TYPES = ("uint8", "bool")


@dataclass(frozen=True)
class ObservationEncoding:
    """A space of observations and the form in which they are stored.

    >>> from tsallax.envs.space_description import SpaceDescription
    >>> lake = SpaceDescription.discrete(4)
    >>> ObservationEncoding(lake).encode([2, 0])
    array([2, 0], dtype=int32)
    >>> ObservationEncoding(lake, flat=True).encode([2, 0])
    array([[0., 0., 1., 0.],
           [1., 0., 0., 0.]], dtype=float32)
    """

    space: SpaceDescription
    flat: bool = False
    """Whether integers and images become vectors, too."""

    @cached_property
    def format(self) -> ObservationFormat:
        """The form of a stored observation."""
        if self.space.kind == "discrete" and not self.flat:
            return ObservationFormat.integer(self.space.sizes[0])
        if self.is_image and not self.flat:
            shape = [self.space.shape[axis] for axis in self._axes]
            return ObservationFormat.image(shape[0], shape[1], shape[2] if shape[2:] else 1)
        return ObservationFormat.vector(sum(_length(leaf) for leaf in self.space.leaves()))

    @property
    def is_image(self) -> bool:
        """Whether an observation is a Box of bytes or booleans with rows and columns of pixels."""
        box = self.space.kind == "box" and self.space.dtype in IMAGE_TYPES
        if not box or len(self.space.shape) not in (2, 3):
            return False
        return all(self.space.shape[axis] >= SMALLEST_IMAGE for axis in self._axes[:2])

    @property
    def is_stack_of_images(self) -> bool:
        """Whether an observation is such a Box, but with more than three axes."""
        box = self.space.kind == "box" and self.space.dtype in IMAGE_TYPES
        long_axes = sum(n >= SMALLEST_IMAGE for n in self.space.shape)
        return box and len(self.space.shape) > 3 and long_axes >= 2

    @property
    def _axes(self) -> tuple[int, ...]:
        """The axes of an image in the order height, width, channels."""
        shape = self.space.shape
        if len(shape) == 2:
            return 0, 1
        return (1, 2, 0) if shape[0] < min(shape[1:]) else (0, 1, 2)

    def encode(self, observations: Any) -> NDArray[Any]:
        """A sequence of observations of the space, or an array of them, as they are stored.

        What is not in the space, by shape or type, is an error whose message goes on after the
        word "observation".
        """
        return self._stored(_stacked(self.space, observations))

    def _stored(self, batch: Any) -> NDArray[Any]:
        """Stacked observations as they are stored."""
        form = self.format
        if form.kind == "vector":
            matrices = _vectors(self.space, batch)
            return matrices[0] if len(matrices) == 1 else np.concatenate(matrices, 1)
        if form.kind == "integer":
            return self.space.check_integers(batch)[:, 0].astype(np.int32)
        if batch.dtype != np.dtype(self.space.dtype):
            raise InvalidInput(f"has the type {batch.dtype}, should be {self.space.dtype}")
        if batch.dtype == np.bool_:
            batch = np.where(batch, np.uint8(255), np.uint8(0))
        axes = (0, *(1 + axis for axis in self._axes))
        return np.ascontiguousarray(batch.transpose(axes)).reshape(-1, *form.shape).copy()

    def encode_given(self, observation: Any) -> tuple[NDArray[Any], bool]:
        """One observation or several as they are stored, and whether it was one.

        Several are a sequence or, for a Tuple or Dict, also the stacked observation of a vector
        environment.
        """
        single = self._is_single(observation)
        if self.space.is_structure and not single and not isinstance(observation, list):
            return self._stored(_checked(self.space, observation)), False
        return self.encode([observation] if single else observation), single

    def _is_single(self, observation: Any) -> bool:
        """Whether it is one observation rather than several, by its type and number of axes."""
        leaf = self.space
        while leaf.is_structure:
            if not isinstance(observation, Mapping if leaf.kind == "dict" else tuple):
                return False
            _check_structure(leaf, observation)
            key: Any = leaf.keys[0]
            leaf, observation = leaf.parts[0], observation[key]
        return _array(leaf, observation).ndim <= len(leaf.shape)

    def describe(self) -> dict[str, Any]:
        """Plain data, from which `from_description` makes an equal encoding."""
        return {"space": self.space.describe(), "flat": self.flat}

    @classmethod
    def from_description(cls, about: Mapping[str, Any]) -> Self:
        """The encoding that `describe` described."""
        space = SpaceDescription.from_description(about["space"])
        return cls(space, checks.flag("flat", about["flat"]))


def _length(leaf: SpaceDescription) -> int:
    """The number of elements of a flattened observation."""
    return sum(leaf.sizes) if leaf.kind in ("discrete", "multi_discrete") else leaf.size


def _array(leaf: SpaceDescription, values: Any) -> NDArray[Any]:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise ValueError
    except (TypeError, ValueError):
        raise InvalidInput(f"{values!r:.80}: should be numbers of {leaf}") from None
    return array


def _check_structure(space: SpaceDescription, value: Any) -> None:
    """Refuse what is not a tuple or mapping with the parts of the space."""
    named = space.kind == "dict"
    if named and isinstance(value, Mapping):
        _check_keys(space, value)
    parts = isinstance(value, Mapping if named else tuple | list) and len(value) == len(space.parts)
    if not parts:
        raise InvalidInput(f"{value!r:.80} is not in {space}")


def _check_keys(space: SpaceDescription, value: Mapping[Any, Any]) -> None:
    """Refuse a mapping whose keys are not those of the space."""
    lacking = [key for key in space.names if key not in value]
    beyond = [key for key in value if key not in space.names]
    if lacking:
        found = f", but with {_quoted(beyond)}" if beyond else ""
        raise InvalidInput(f"without {_quoted(lacking)} of its Dict space{found}")
    if beyond:
        raise InvalidInput(f"with {_quoted(beyond)}, not in its Dict space")


def _quoted(keys: Sequence[Any]) -> str:
    return f"the key{'s' * (len(keys) > 1)} {', '.join(map(repr, keys))}"


def _stacked(space: SpaceDescription, observations: Sequence[Any]) -> Any:
    """Observations of a space stacked: an array for each of its leaves, of shape (n, *shape)."""
    if not space.is_structure:
        return _checked(space, observations)
    for one in observations:
        _check_structure(space, one)
    parts = [[one[key] for one in observations] for key in space.keys]
    return [_stacked(part, values) for part, values in zip(space.parts, parts, strict=True)]


def _checked(space: SpaceDescription, batch: Any) -> Any:
    """A stacked observation, as a vector environment gives it, with lists for Tuple and Dict."""
    if space.is_structure:
        _check_structure(space, batch)
        parts = zip(space.parts, (batch[key] for key in space.keys), strict=True)
        return [_checked(part, values) for part, values in parts]
    array = _array(space, batch)
    if array.ndim == 0 or array.shape[1:] != space.shape:
        raise InvalidInput(f"of shape {array.shape[1:]}, should be {space.shape}")
    return array


def _vectors(space: SpaceDescription, batch: Any) -> list[NDArray[np.float32]]:
    """Stacked observations as matrices of float32, one for each leaf."""
    if space.is_structure:
        pairs = zip(space.parts, batch, strict=True)
        return [matrix for part, values in pairs for matrix in _vectors(part, values)]
    n = len(batch)
    if space.kind in ("box", "multi_binary"):
        shape = n, math.prod(space.shape)
        if batch.dtype == np.float32:
            return [batch.reshape(shape).copy()]
        with np.errstate(over="ignore"):  # infinite numbers are refused by the caller
            return [batch.astype(np.float32).reshape(shape)]
    columns = space.check_integers(batch) + np.cumsum((0, *space.sizes[:-1]))
    matrix = np.zeros((n, sum(space.sizes)), np.float32)
    matrix[np.arange(n)[:, None], columns] = 1.0
    return [matrix]
