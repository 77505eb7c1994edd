"""Conversion between Gymnasium spaces and learners: observations as vectors, integer actions.

A Box observation is flattened, a Discrete one becomes one-hot. A Discrete action is numbered
from 0, a Box action is a row of a `Discretize` table or a real vector.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tsallax.envs.discretize import Discretize
from tsallax.errors import InvalidInput

Encoder: TypeAlias = Callable[[Any], NDArray[np.float32]]
Decoder: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]


def observation_encoder(name: str, space: Any) -> tuple[int, Encoder]:
    """The length of an observation vector, and the function that encodes a batch of observations.

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
                raise InvalidInput(f"observation {batch} is not in its space {space}", source=name)
            vectors = np.zeros((len(numbers), size), np.float32)
            vectors[np.arange(len(numbers)), numbers] = 1.0
            return vectors

        return size, one_hot
    if isinstance(space, Box):
        size = int(np.prod(space.shape))
        if size == 0:
            raise InvalidInput(f"its observations are empty, shape {space.shape}", source=name)
        return size, lambda batch: np.array(batch, np.float32).reshape(-1, size)
    kind = type(space).__name__
    remedy = (
        "wrap it with gymnasium.wrappers.FlattenObservation"
        if getattr(space, "is_np_flattenable", False)
        else "use Box or Discrete"
    )
    raise InvalidInput(f"{kind} observations are not supported; {remedy}", source=name)


def action_grid(name: str, space: Any, actions: int | Iterable[int] | None) -> Discretize | None:
    """The grid over a Box of actions, None where the actions are Discrete.

    >>> from gymnasium.spaces import Box
    >>> len(action_grid("Reacher-v5", Box(-1.0, 1.0, (2,)), 11))
    121
    """
    from gymnasium.spaces import Discrete

    if isinstance(space, Discrete):
        if actions is not None:
            raise InvalidInput(f"has {space.n} discrete actions", source=name, omit="actions")
        return None
    low, high = action_bounds(name, space)
    if actions is None:
        problem = f"its actions are continuous, in {low.size} dimension{'s' * (low.size > 1)}"
        raise InvalidInput(problem, source=name, add=("actions", 11))
    try:
        return Discretize.of(low, high, actions)
    except InvalidInput as error:
        raise error.of(name) from None


def action_bounds(name: str, space: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The bounds of a Box of real actions, flattened.

    >>> from gymnasium.spaces import Box
    >>> [bound.tolist() for bound in action_bounds("Reacher-v5", Box(-1.0, 1.0, (2,)))]
    [[-1.0, -1.0], [1.0, 1.0]]
    """
    from gymnasium.spaces import Box, Discrete

    if isinstance(space, Discrete):
        raise InvalidInput("its actions are discrete, not real vectors; use DeepQ", source=name)
    if not isinstance(space, Box):
        kind = type(space).__name__
        raise InvalidInput(
            f"{kind} actions are not supported, only Discrete and Box; "
            "wrap it with gymnasium.wrappers.TransformAction",
            source=name,
        )
    if not np.issubdtype(space.dtype, np.floating):
        raise InvalidInput(
            f"its actions are a Box of {space.dtype}, not of real numbers; "
            "wrap it with gymnasium.wrappers.TransformAction",
            source=name,
        )
    return space.low.astype(float).ravel(), space.high.astype(float).ravel()


def action_decoder(space: Any, grid: Discretize | None) -> Decoder:
    """The function that turns integer actions (or real vectors) into actions of the space."""
    from gymnasium.spaces import Discrete

    if isinstance(space, Discrete):
        start, kind = int(space.start), space.dtype
        return lambda numbers: np.asarray(numbers).astype(kind) + start
    shape = (-1, *space.shape)
    if grid is not None:
        table = grid.table.astype(space.dtype).reshape(shape)
        return lambda numbers: table[numbers]
    return lambda vectors: np.asarray(vectors, space.dtype).reshape(shape)
