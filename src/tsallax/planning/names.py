"""States and actions by index or by name, with the nearest name suggested for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.errors import InvalidInput

Ints = NDArray[np.int32] | NDArray[np.int64]

MAX_COMPARED = 10_000
"""The number of names among which the nearest one is looked for."""


@dataclass(frozen=True)
class Index:
    """The states or the actions of an MDP, to be found by index or by name.

    >>> states = Index("state", 2, ("working", "broken"))
    >>> states.find("broken", "initial"), states.find(0, "initial")
    (1, 0)
    >>> states.find("brokn", "initial")
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: initial names state 'brokn': did you mean 'broken'?
    """

    kind: str
    count: int
    names: tuple[str, ...] | None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names or ())}

    def find(self, key: Any, where: str) -> int:
        """The index of a state or action that is given by index or by name.

        Args:
            key: the index or the name.
            where: the argument that holds it, for the error message.
        """
        if isinstance(key, str):
            if key in self._places:
                return self._places[key]
            raise InvalidInput(f"{where} names {self.kind} {str(key)!r}{self._hint(key)}")
        if not checks.is_integer(key):
            raise InvalidInput(f"{where} names {self.kind} {key!r}: give an index or a name")
        if not 0 <= key < self.count:
            raise InvalidInput(f"{where} names {self.kind} {key}, not 0 to {self.count - 1}")
        return int(key)

    def find_all(self, keys: Iterable[Any], where: str) -> NDArray[np.int64]:
        """The indices of several, each given by index or by name."""
        return np.array([self.find(key, where) for key in keys], np.int64)

    def text(self, index: Any) -> str:
        """One of them as text for an error message."""
        return (
            f"{self.kind} {index}" if self.names is None else f"{self.kind} {self.names[index]!r}"
        )

    def _hint(self, key: str) -> str:
        if self.names is None:
            return f", but this MDP has no {self.kind}_names: give its index"
        near = checks.nearest(key, self.names[:MAX_COMPARED])
        return f": did you mean {near!r}?" if near else f", which is none of its {self.kind}s"


def has_labels(values: Any) -> bool:
    """Whether it is a Series or a DataFrame of pandas.

    >>> has_labels([1.0, 2.0])
    False
    """
    return hasattr(values, "reindex") and isinstance(getattr(values, "axes", None), list)


def in_order_of_names(values: Any, where: str, *forms: tuple[Index, ...]) -> Any:
    """A pandas Series or DataFrame as an array, its labels put into the order of the names.

    An axis is taken as it is where its labels are no names, or what it stands for has none; all
    indices in another order are refused.  Everything that is not of pandas is returned as it is.

    Args:
        where: the argument that holds it, for the error message.
        forms: what the axes can stand for.  Where several forms have as many axes as the values,
            it is the first one of their shape; where none has this shape, labels do not count.
    """
    if not has_labels(values):
        return values
    array = np.asarray(values)
    known = [form for form in forms if len(form) == array.ndim]
    if len(known) > 1:
        known = [form for form in known if tuple(i.count for i in form) == array.shape]
    for axis, (index, labels) in enumerate(zip(known[0] if known else (), values.axes)):
        if index.names is None or not any(isinstance(label, str) for label in labels):
            _refuse_other_order(labels, index, where, axis)
            continue
        places = index.find_all(labels, where)
        missing = np.setdiff1d(np.arange(index.count), places)
        if missing.size:
            raise InvalidInput(f"{where} lacks {index.kind} {index.names[missing[0]]!r}")
        if len(places) > index.count:
            raise InvalidInput(f"{where} holds a {index.kind} twice")
        array = np.take(array, np.argsort(places), axis)
    return array


def in_order_of_pairs(
    values: Any, where: str, states: Index, actions: Index, pairs: tuple[Ints, Ints]
) -> Any:
    """A pandas Series or DataFrame with a row for each pair, its rows put into the order of these.

    Its labels count where they have two levels, the state and the action, by name, or by index
    where they are the indices of the pairs. Everything else is returned as it is.

    Args:
        where: the argument that holds it, for the error message.
        pairs: the states and the actions of the pairs.
    """
    if not has_labels(values) or len(values) != len(pairs[0]):
        return values
    if getattr(values.axes[0], "nlevels", 1) != 2:
        return values
    labels = values.axes[0].remove_unused_levels()
    by_name, found = False, []
    for index, level, code in zip((states, actions), labels.levels, labels.codes, strict=True):
        if index.names is not None and any(isinstance(label, str) for label in level):
            by_name, places = True, index.find_all(level, where)
        elif level.dtype.kind in "iu" and level.min() >= 0 and level.max() < index.count:
            places = level.to_numpy(np.int64)
        else:
            return values
        found.append(np.where(code < 0, -1, places[code]))
    number = found[0] * actions.count + found[1]
    expected = pairs[0].astype(np.int64) * actions.count + pairs[1]
    order, place = np.argsort(number), np.argsort(expected)
    if not np.array_equal(number[order], expected[place]):
        if not by_name:
            return values
        s, a = np.divmod(np.setdiff1d(expected, number)[0], actions.count)
        raise InvalidInput(f"{where} lacks {states.text(s)}, {actions.text(a)}")
    rows = np.empty_like(order)
    rows[place] = order
    return values.iloc[rows]


def _refuse_other_order(labels: Any, index: Index, where: str, axis: int) -> None:
    """Refuse labels that are all states or all actions by index, but not in this order.

    They may be those of the states, or left from before the rows were sorted.
    """
    given = np.asarray(labels)
    if index.kind == "pair" or given.dtype.kind not in "iu" or len(given) != index.count:
        return
    expected = np.arange(index.count)
    if not np.array_equal(given, expected) and np.array_equal(np.sort(given), expected):
        by_index = "sort_index(axis=1)" if axis else "sort_index()"
        raise InvalidInput(
            f"{where} has {index.kind}s by index in another order: pass its .{by_index}, or its "
            ".to_numpy() where these labels do not count"
        )


def names_in(values: Any) -> list[Any] | None:
    """The elements of a list, tuple, set or array that holds a name; None for all other values.

    >>> names_in({"broken"}), names_in(["run", 1]), names_in([0, 1])
    (['broken'], ['run', 1], None)
    """
    if hasattr(values, "__array__"):
        values = np.asarray(values)
        values = values.tolist() if values.ndim == 1 and values.dtype.kind in "UO" else None
    if isinstance(values, str) or not isinstance(values, Sequence | Set):
        return None
    found = list(values)
    return found if any(isinstance(value, str) for value in found) else None
