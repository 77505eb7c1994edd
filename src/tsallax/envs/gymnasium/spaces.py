"""Gymnasium spaces as a Q network needs them: observations as vectors, actions by number.

A Box observation is flattened, a Discrete one becomes one-hot. A Discrete action is its number
from 0, a Box one the row of a `Discretize` table, or a real vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsallax.envs.discretize import Discretize
from tsallax.errors import InvalidInput

Encoder: TypeAlias = Callable[[Any], NDArray[np.float32]]
Decoder: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]


def observation_encoder(name: str, space: Any) -> tuple[int, Encoder]:
    """Give the length of an observation vector, and what turns a batch of observations into them.

    >>> from gymnasium.spaces import Discrete
    >>> size, encode = observation_encoder("FrozenLake-v1", Discrete(3))
    >>> encode([2, 0])
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    from gymnasium.spaces import Box, Discrete

    if isinstance(space, Discrete):
        size, start = int(space.n), int(space.start)

        def one_hot(batch: Any) -> NDArray[np.float32]:
            numbers = np.asarray(batch, np.int64).reshape(-1) - start
            if ((numbers < 0) | (numbers >= size)).any():
                raise InvalidInput(f"{name}: an observation of {batch} is not in its space {space}")
            vectors = np.zeros((len(numbers), size), np.float32)
            vectors[np.arange(len(numbers)), numbers] = 1.0
            return vectors

        return size, one_hot
    if isinstance(space, Box):
        size = int(np.prod(space.shape))
        if size == 0:
            raise InvalidInput(f"{name}: its observations are empty, shape {space.shape}")
        return size, lambda batch: np.array(batch, np.float32).reshape(-1, size)
    kind = type(space).__name__
    remedy = (
        "wrap it with gymnasium.wrappers.FlattenObservation"
        if getattr(space, "is_np_flattenable", False)
        else "only Box and Discrete are"
    )
    raise InvalidInput(f"{name}: {kind} observations are not supported; {remedy}")


def action_grid(name: str, space: Any, actions: int | Iterable[int] | None) -> Discretize | None:
    """Give the grid of a Box of actions, or None where the actions are Discrete.

    >>> from gymnasium.spaces import Box
    >>> len(action_grid("Reacher-v5", Box(-1.0, 1.0, (2,)), 11))
    121
    """
    from gymnasium.spaces import Discrete

    if isinstance(space, Discrete):
        if actions is not None:
            raise InvalidInput(
                f"{name}: has {space.n} actions of its own; leave actions={actions} out"
            )
        return None
    low, high = action_bounds(name, space)
    if actions is None:
        count = "1 dimension" if low.size == 1 else f"{low.size} dimensions"
        raise InvalidInput(
            f"{name}: its actions are continuous, in {count}; "
            "say how many levels each should have, for example actions=11"
        )
    try:
        return Discretize.of(low, high, actions)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None


def action_bounds(name: str, space: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the ends of a Box of real actions, flattened.

    >>> from gymnasium.spaces import Box
    >>> [bound.tolist() for bound in action_bounds("Reacher-v5", Box(-1.0, 1.0, (2,)))]
    [[-1.0, -1.0], [1.0, 1.0]]
    """
    from gymnasium.spaces import Box, Discrete

    if isinstance(space, Discrete):
        raise InvalidInput(f"{name}: its actions are numbers, not real vectors; use DeepQ")
    if not isinstance(space, Box):
        kind = type(space).__name__
        raise InvalidInput(
            f"{name}: {kind} actions are not supported, only Discrete and Box; "
            "wrap it with gymnasium.wrappers.TransformAction"
        )
    if not np.issubdtype(space.dtype, np.floating):
        raise InvalidInput(
            f"{name}: its actions are a Box of {space.dtype}, should be real numbers; "
            "wrap it with gymnasium.wrappers.TransformAction"
        )
    return space.low.astype(float).ravel(), space.high.astype(float).ravel()


def action_decoder(space: Any, grid: Discretize | None) -> Decoder:
    """Give what turns a batch of action numbers (or real vectors) into actions of the space."""
    from gymnasium.spaces import Discrete

    if isinstance(space, Discrete):
        start, kind = int(space.start), space.dtype
        return lambda numbers: np.asarray(numbers).astype(kind) + start
    shape = (-1, *space.shape)
    if grid is not None:
        table = grid.table.astype(space.dtype).reshape(shape)
        return lambda numbers: table[numbers]
    return lambda vectors: np.asarray(vectors, space.dtype).reshape(shape)
