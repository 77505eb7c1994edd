"""What earlier files have otherwise: sizes in place of spaces, one-hot observations, moments.

The options that were renamed since are in `options.py`.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.envs.action_format import ActionFormat
from tsallax.envs.observation_encoding import ObservationEncoding
from tsallax.envs.space_description import SpaceDescription as Space
from tsallax.errors import InvalidInput


def with_spaces(about: Mapping[str, Any]) -> dict[str, Any]:
    """A description of version 0.1, which had sizes in place of spaces, as it is written now."""
    if "observations" in about:
        return dict(about)
    found = {key: about[key] for key in ("name", "jax", "n_envs", "limit", "options", "by_name")}
    size = checks.count("observation_size", about["observation_size"])
    shape, first = _counts(about, "observation_shape"), about["first_observation"]
    seen = Space.box(shape) if first is None else Space.discrete(size, int(first))
    if first is None and size != math.prod(shape):
        raise InvalidInput(f"damaged: observations of shape {shape} and size {size}")
    n, levels = about["n_actions"], about["levels"]
    if n is not None:
        checks.count("n_actions", n)
    if n is not None and levels is None:
        space = Space.discrete(n, int(about["first_action"]))
    else:
        bounds = (tuple(map(float, about[end])) for end in ("low", "high"))
        space = Space.box(_counts(about, "action_shape"), *bounds)
    action = ActionFormat(space, None if levels is None and n is None else tuple(levels or ()))
    if action.n_actions != n:
        raise InvalidInput(f"damaged: {n} actions with the levels {levels}")
    found["observations"] = ObservationEncoding(seen, flat=n is None).describe()
    return {**found, "actions": action.describe()}


def _counts(about: Mapping[str, Any], name: str) -> tuple[int, ...]:
    return tuple(checks.count(name, n) for n in about[name])


def with_integer_observations(
    like: Any, arrays: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The arrays of a learner whose replay has integers where version 0.1 wrote one-hot vectors."""
    name, separate = "learner.replay.rows", "learner.replay.observations"
    rows, expected = arrays.get(name), like.replay.observations
    if expected is None or expected.dtype != np.int32 or separate in arrays or rows is None:
        return arrays
    n = (rows.shape[-1] - like.replay.rows.shape[1]) // 2 if rows.ndim == 2 else 0
    if n < 1:
        return arrays
    seen = rows[:, : 2 * n].reshape(-1, 2, n).argmax(-1).astype(np.int32)
    return {**arrays, name: rows[:, 2 * n :], separate: seen}


def with_written_rows(like: Any, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of a learner whose moments had all been written by the last update of Adam."""
    name, count = "learner.adam.written", arrays.get("learner.adam.count")
    expected = getattr(getattr(like, "adam", None), "written", None)
    if expected is None or name in arrays or count is None or count.shape != expected.shape[:-1]:
        return arrays
    written = np.broadcast_to(count[..., None], expected.shape).astype(expected.dtype)
    return {**arrays, name: written}
