"""`SpaceDescription`: a space of observations or actions as plain data, which files can hold.

The kinds are those of Gymnasium, which is not needed here: an agent that was read from a file
encodes observations and decodes actions without its environment.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.errors import InvalidInput

INTEGERS = ("discrete", "multi_discrete", "multi_binary")
"""The kinds whose elements are integers with a given number of values each."""
STRUCTURES = ("tuple", "dict")
"""The kinds that consist of other spaces."""
KINDS = ("box", *INTEGERS, *STRUCTURES)


@dataclass(frozen=True, kw_only=True)
class SpaceDescription:
    """A space of arrays, or a tuple or dict of spaces.

    >>> SpaceDescription.discrete(4).describe()
    {'kind': 'discrete', 'dtype': 'int64', 'sizes': [4], 'start': [0]}
    """

    kind: str
    shape: tuple[int, ...] = ()
    """The shape of an array."""
    dtype: str = ""
    """The type of an array, as NumPy names it."""
    sizes: tuple[int, ...] = ()
    """The number of values of each element, where they are integers."""
    start: tuple[int, ...] = ()
    """The first value of each element, where they are integers."""
    low: tuple[float, ...] = ()
    """The lower bound of each element of a box of actions."""
    high: tuple[float, ...] = ()
    names: tuple[str | int, ...] = ()
    """The keys of a dict."""
    parts: tuple["SpaceDescription", ...] = ()
    """The spaces that a tuple or dict consists of."""

    @classmethod
    def box(
        cls, shape: tuple[int, ...], low: tuple[float, ...] = (), high: tuple[float, ...] = ()
    ) -> Self:
        """Arrays of float32."""
        return cls(kind="box", shape=shape, dtype="float32", low=low, high=high)

    @classmethod
    def discrete(cls, n: int, start: int = 0, dtype: str = "int64") -> Self:
        """Integers from `start` to `start` + n - 1."""
        return cls(kind="discrete", dtype=dtype, sizes=(n,), start=(start,))

    def __post_init__(self) -> None:
        checks.one_of("kind of space", self.kind, KINDS)
        if self.kind in STRUCTURES:
            n = len(self.parts)
            if n == 0 or (self.kind == "dict" and len(set(self.names)) != n):
                raise InvalidInput(f"a {self.kind} of {n} spaces with the names {self.names}")
            return
        np.dtype(self.dtype)
        for n in (*self.shape, *self.sizes):
            checks.count("size of a space", n)
        if self.kind in INTEGERS and not len(self.sizes) == len(self.start) == self.size:
            raise InvalidInput(f"{self.kind} of shape {self.shape} with the sizes {self.sizes}")

    @property
    def size(self) -> int:
        """The number of elements of an array."""
        return math.prod(self.shape)

    @property
    def is_structure(self) -> bool:
        """Whether it consists of other spaces."""
        return self.kind in STRUCTURES

    @property
    def keys(self) -> tuple[str | int, ...]:
        """The indices of the parts of an element: names for a dict, numbers for a tuple."""
        return self.names if self.kind == "dict" else tuple(range(len(self.parts)))

    def leaves(self) -> Iterator["SpaceDescription"]:
        """The spaces of arrays that it consists of, in order."""
        if not self.is_structure:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def __str__(self) -> str:
        """As Gymnasium writes it, without bounds.

        >>> print(SpaceDescription.box((3,)))
        Box((3,), float32)
        """
        word = {"multi_discrete": "MultiDiscrete", "multi_binary": "MultiBinary"}
        kind = word.get(self.kind, self.kind.capitalize())
        if self.is_structure:
            pairs = zip(self.keys, self.parts, strict=True)
            named = self.kind == "dict"
            return f"{kind}({', '.join(f'{k}: {p}' if named else f'{p}' for k, p in pairs)})"
        if self.kind == "discrete":
            first = f", start={self.start[0]}" if self.start[0] else ""
            return f"{kind}({self.sizes[0]}{first})"
        if self.kind == "multi_discrete":
            return f"{kind}({list(self.sizes)})"
        return f"{kind}({self.shape}{f', {self.dtype}' * (self.kind == 'box')})"

    def check_integers(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Integers of shape (n, *shape) counted from 0, (n, size), or an error.

        >>> lake = SpaceDescription.discrete(4, start=1)
        >>> lake.check_integers(np.array([1, 4])).tolist()
        [[0], [3]]
        """
        if values.dtype.kind not in "iub":
            raise InvalidInput(f"has the type {values.dtype}, should be integers of {self}")
        numbers = values.reshape(len(values), self.size).astype(np.int64)
        numbers -= np.array(self.start, np.int64)
        outside = (numbers < 0) | (numbers >= np.array(self.sizes, np.int64))
        if outside.any():
            row = values[int(np.flatnonzero(outside.any(1))[0])]
            raise InvalidInput(f"{row.tolist()} is not in {self}")
        return numbers

    def without_types(self) -> Self:
        """The same space without the types of its arrays, for comparisons."""
        parts = tuple(part.without_types() for part in self.parts)
        return replace(self, dtype="" if self.is_structure else "int64", parts=parts)

    def describe(self) -> dict[str, Any]:
        """Plain data, from which `from_description` makes an equal space."""

        def plain(value: Any) -> Any:
            if not isinstance(value, tuple):
                return value
            return [x.describe() if isinstance(x, SpaceDescription) else x for x in value]

        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: plain(value) for name, value in values if value not in ((), "")}

    @classmethod
    def from_description(cls, about: Mapping[str, Any]) -> Self:
        """The space that `describe` described."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list | tuple) else value
            for name, value in about.items()
        }
        parts = tuple(cls.from_description(part) for part in values.pop("parts", ()))
        return cls(**values, parts=parts)
