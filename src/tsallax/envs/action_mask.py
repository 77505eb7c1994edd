"""Masks of actions: which ones a state allows, as an array of Booleans in the order of the outputs.

A mask is given as Gymnasium has it (`info["action_mask"]`, `space.sample(mask)`): for Discrete an
array with a 0 or 1 for each action; for a space of several dimensions a tuple with such an array
for each dimension, or one array with all of them one after another; for a Tuple or Dict a tuple or
dict of the masks of its parts, None for a part without one. Levels of a Box are masked like
choices. Actions that are numbered jointly may have an entry for each number in place of that. The
word "all" allows everything.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.envs.action_format import ActionFormat
from tsallax.envs.space_description import SpaceDescription
from tsallax.errors import InvalidInput

ALL = "all"
"""The mask that allows every action."""
SEQUENCES = list, tuple, np.ndarray


def mask_row(action: ActionFormat, given: Any) -> NDArray[np.bool_]:
    """The mask of one state, with an entry for each number of an action, or for each choice.

    Joint actions of several dimensions may be masked one by one, too. An array that may be either
    is refused.

    >>> space = SpaceDescription(
    ...     kind="multi_discrete", shape=(2,), dtype="int64", sizes=(2, 3), start=(0, 0)
    ... )
    >>> each = [1, 0], [0, 1, 1]
    >>> mask_row(ActionFormat(space, factored=True), tuple(map(np.array, each))).astype(int)
    array([1, 0, 0, 1, 1])
    >>> mask_row(ActionFormat(space), tuple(map(np.array, each))).astype(int)
    array([0, 1, 1, 0, 0, 0])
    """
    assert action.choices is not None
    if isinstance(given, str) and given == ALL:
        return np.ones(action.n_actions or 0, np.bool_)
    given = _as_tuples(given)
    if not action.factored and not isinstance(given, tuple | Mapping):
        array = np.asarray(given)
        if array.shape == (action.n_actions,):
            if len(action.choices) > 1 and sum(action.choices) == math.prod(action.choices):
                raise InvalidInput(
                    f"is ambiguous: its {array.size} entries may be those of each dimension or "
                    "those of all combinations: give a tuple with an array for each dimension"
                )
            return _allowed(_booleans(array))
    choices = iter(action.choices)
    by_leaf = [[next(choices) for _ in range(leaf.size)] for leaf in action.space.leaves()]
    parts = list(_dimensions(action.space, given, iter(by_leaf)))
    for d, part in enumerate(parts):
        _allowed(part, f" in dimension {d}" if len(parts) > 1 else "")
    if action.factored or len(parts) == 1:
        return np.concatenate(parts)
    joint = parts[0]
    for part in parts[1:]:
        joint = np.logical_and.outer(joint, part).ravel()
    return joint


def mask_rows(action: ActionFormat, given: Any, n: int) -> NDArray[np.bool_]:
    """The masks of n states: a list of masks, or a stacked one as vector environments give it."""
    if isinstance(given, list):
        if len(given) != n:
            raise InvalidInput(f"is a list of {len(given)} for {n} observations")
        rows = [mask_row(action, one) for one in given]
    else:
        rows = [mask_row(action, mask_entry(given, i, n)) for i in range(n)]
    return np.array(rows, np.bool_).reshape(n, action.n_actions or 0)


def mask_entry(stacked: Any, i: int, n: int) -> Any:
    """The mask of state i in a stacked one of n states."""
    if stacked is None or isinstance(stacked, str):
        return stacked
    if isinstance(stacked, Mapping):
        return {key: mask_entry(value, i, n) for key, value in stacked.items()}
    if isinstance(stacked, tuple):
        return tuple(mask_entry(value, i, n) for value in stacked)
    array = np.asarray(stacked)
    if array.ndim == 0 or len(array) != n:
        raise InvalidInput(f"has the shape {array.shape} for {n} observations")
    return array[i]


def _dimensions(
    space: SpaceDescription, given: Any, choices: Iterator[list[int]]
) -> Iterator[NDArray[np.bool_]]:
    """The mask of each dimension; `choices` gives those of the leaves of the space in order."""
    structured = isinstance(given, Mapping if space.kind == "dict" else tuple)
    if space.is_structure and (structured or given is None):
        if given is not None:
            keys = tuple(given) if isinstance(given, Mapping) else tuple(range(len(given)))
            if set(keys) != set(space.keys):
                raise InvalidInput(f"has the parts {keys}, should be {space.keys}")
        for key, part in zip(space.keys, space.parts, strict=True):
            yield from _dimensions(part, None if given is None else given[key], choices)
        return
    sizes = [n for _ in space.leaves() for n in next(choices)]
    if given is None:
        yield from (np.ones(n, np.bool_) for n in sizes)
        return
    if isinstance(given, Mapping):
        raise InvalidInput(f"is a dict, should be a mask of {space}")
    if isinstance(given, tuple):
        arrays = [_booleans(np.asarray(one)) for one in _flat(given)]
        if [len(one) for one in arrays] != sizes:
            lengths = [len(one) for one in arrays]
            raise InvalidInput(f"has the lengths {lengths}, should be {sizes}")
        yield from arrays
        return
    array = np.asarray(given)
    if array.ndim == 0:
        raise InvalidInput(f"is {given!r}, should be an array of zeros and ones (int8)")
    if array.size != sum(sizes) or (array.ndim > 1 and len(set(sizes)) > 1):
        raise InvalidInput(f"has the shape {array.shape}, should be ({sum(sizes)},)")
    yield from np.split(_booleans(array).ravel(), np.cumsum(sizes)[:-1])


def _as_tuples(given: Any) -> Any:
    """Lists of sequences as tuples, at all depths; anything else as it is."""
    if isinstance(given, Mapping):
        return {key: _as_tuples(value) for key, value in given.items()}
    if isinstance(given, list) and any(isinstance(one, SEQUENCES) for one in given):
        given = tuple(given)
    return tuple(map(_as_tuples, given)) if isinstance(given, tuple) else given


def _flat(given: tuple[Any, ...]) -> Iterator[Any]:
    """The arrays in nested tuples."""
    for one in given:
        if isinstance(one, tuple):
            yield from _flat(one)
        else:
            yield one


def _booleans(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind not in "biu" or (array.dtype.kind != "b" and (array & ~1).any()):
        example = array.ravel()[:6].tolist()
        raise InvalidInput(f"is of {array.dtype}, {example}, should be of zeros and ones (int8)")
    if array.ndim == 0:
        raise InvalidInput("is a number, should be an array of zeros and ones (int8)")
    return array.astype(np.bool_)


def _allowed(mask: NDArray[np.bool_], where: str = "") -> NDArray[np.bool_]:
    if not mask.any():
        raise InvalidInput(f"allows no action{where}")
    return mask
