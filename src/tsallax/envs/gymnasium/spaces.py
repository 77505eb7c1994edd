"""The spaces of Gymnasium as plain data: `SpaceDescription`."""

from typing import Any

import numpy as np

from tsallax.envs.space_description import SpaceDescription
from tsallax.errors import InvalidInput

KINDS = {
    "Box": "box",
    "Discrete": "discrete",
    "MultiDiscrete": "multi_discrete",
    "MultiBinary": "multi_binary",
    "Tuple": "tuple",
    "Dict": "dict",
}
"""The spaces that are supported, by the names of their classes in Gymnasium."""


def observation_space(name: str, space: Any) -> SpaceDescription:
    """The description of a space of observations.

    >>> from gymnasium.spaces import Discrete
    >>> print(observation_space("FrozenLake-v1", Discrete(16)))
    Discrete(16)
    """
    return _describe(name, space, "observations")


def action_space(name: str, space: Any) -> SpaceDescription:
    """The description of a space of actions, with the bounds of its boxes.

    >>> from gymnasium.spaces import Box
    >>> action_space("Reacher-v5", Box(-1.0, 1.0, (2,))).low
    (-1.0, -1.0)
    """
    return _describe(name, space, "actions")


def _describe(name: str, space: Any, what: str) -> SpaceDescription:
    kind = _kind(name, space, what)
    if kind == "discrete":
        return SpaceDescription.discrete(int(space.n), int(space.start), str(space.dtype))
    if kind == "tuple":
        parts = tuple(_describe(name, part, what) for part in space.spaces)
        return SpaceDescription(kind=kind, parts=parts)
    if kind == "dict":
        keys, values = tuple(space.spaces), space.spaces.values()
        parts = tuple(_describe(name, part, what) for part in values)
        return SpaceDescription(kind=kind, names=keys, parts=parts)
    array: dict[str, Any] = {"kind": kind, "shape": tuple(map(int, space.shape))}
    array["dtype"] = str(space.dtype)
    size = int(np.prod(space.shape))
    if size == 0:
        raise InvalidInput(f"its {what} are empty, shape {space.shape}", source=name)
    if kind == "multi_binary":
        array |= {"sizes": (2,) * size, "start": (0,) * size}
    if kind == "multi_discrete":
        start = getattr(space, "start", np.zeros(space.shape, int))
        array["sizes"] = tuple(np.asarray(space.nvec).ravel().tolist())
        array["start"] = tuple(np.asarray(start).ravel().tolist())
    if kind == "box" and what == "actions":
        if not np.issubdtype(space.dtype, np.floating):
            raise InvalidInput(
                f"its actions are a Box of {space.dtype}, not of real numbers; "
                "wrap it with gymnasium.wrappers.TransformAction",
                source=name,
            )
        bounds = (space.low, space.high)
        array["low"], array["high"] = (tuple(b.astype(float).ravel().tolist()) for b in bounds)
    return SpaceDescription(**array)


def _kind(name: str, space: Any, what: str) -> str:
    """The kind of a space, by the class of Gymnasium that it is an instance of."""
    import gymnasium.spaces

    for word, kind in KINDS.items():
        if isinstance(space, getattr(gymnasium.spaces, word)):
            return kind
    if space is None:
        missing = {"observations": "observation_space", "actions": "action_space"}[what]
        raise InvalidInput(f"has no {missing}: set it in its __init__", source=name)
    remedy = {"observations": "TransformObservation", "actions": "TransformAction"}[what]
    raise InvalidInput(
        f"{type(space).__name__} {what} are not supported; use {', '.join(KINDS)}, or wrap it "
        f"with gymnasium.wrappers.{remedy}",
        source=name,
    )
