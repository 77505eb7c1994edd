"""`ObservationFormat`: the form in which agents see and store observations."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tsallax import checks

KINDS = {"vector": np.float32, "integer": np.int32, "image": np.uint8}
"""The kinds of observations, with the types they are stored in."""


@dataclass(frozen=True)
class ObservationFormat:
    """Vectors of real numbers, integers below a limit, or images of bytes.

    An integer reaches a network as a one-hot vector, an image divided by 255; both are stored as
    they are.

    >>> ObservationFormat.integer(500)
    ObservationFormat(kind='integer', shape=(), size=500)
    """

    kind: str
    shape: tuple[int, ...]
    """The shape of one stored observation: (size,), () or (height, width, channels)."""
    size: int
    """The length of a vector, the limit of an integer, or the number of bytes of an image."""

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, tuple(KINDS))

    @classmethod
    def vector(cls, size: int) -> Self:
        """Vectors of `size` real numbers."""
        return cls("vector", (size,), size)

    @classmethod
    def integer(cls, size: int) -> Self:
        """Integers from 0 to `size` - 1."""
        return cls("integer", (), size)

    @classmethod
    def image(cls, height: int, width: int, channels: int) -> Self:
        """Images of bytes, with the channels last."""
        return cls("image", (height, width, channels), height * width * channels)

    @property
    def dtype(self) -> Any:
        """The NumPy type of a stored observation."""
        return KINDS[self.kind]
