"""Writes and reads a solution, together with its MDP, as one `.npz` file (`tsallax.files.npz`)."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from tsallax.errors import InvalidInput
from tsallax.files import npz
from tsallax.planning import mdp_files
from tsallax.planning.bellman import UNIT_ROUNDOFF, Floats
from tsallax.planning.mdp import MDP
from tsallax.planning.methods import METHODS
from tsallax.planning.policies import read_policy
from tsallax.regularizer import Regularizer, by_name

BY_STATE = ("value", "lower", "upper")
BY_PAIR = ("pair_policy",)
NUMBERS = {
    "converged": ("b", 0),
    "iterations": ("i", 0),
    "sweeps": ("i", 0),
    "seconds": ("f", 0),
    "method": ("U", 0),
    "tolerance": ("f", 0),
}
FORMAT = npz.Format(
    name="tsallax-solution",
    version=1,
    what="solution",
    writer="Solution.save",
    required={
        **dict.fromkeys(BY_STATE + BY_PAIR, ("f", 1)),
        "regularizer": ("U", 0),
        "alpha": ("f", 0),
        "q": ("f", 0),
        **NUMBERS,
        **mdp_files.FORMAT.required,
    },
    optional=mdp_files.FORMAT.optional,
)


def write(path: str | PathLike[str], fields: Mapping[str, Any]) -> None:
    """Write the fields of a `Solution`, its MDP included, to a file, whole or not at all."""
    regularizer: Regularizer = fields["regularizer"]
    arrays = {
        **{key: fields[key] for key in (*BY_STATE, *BY_PAIR, *NUMBERS)},
        "regularizer": regularizer.name,
        "alpha": float(regularizer.alpha),
        "q": regularizer.q,
        **mdp_files.arrays_of(fields["mdp"]),
    }
    for key in ("seconds", "tolerance"):
        arrays[key] = float(arrays[key])
    npz.write(path, FORMAT, arrays)


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """Read the fields of a `Solution` from a file, checked."""
    try:
        return _fields(npz.read(path, FORMAT))
    except InvalidInput as error:
        raise error.of(path) from None


def _fields(arrays: dict[str, Any]) -> dict[str, Any]:
    mdp = MDP(**mdp_files.arguments(arrays))
    name = str(arrays["regularizer"])
    parameters = {"hard": (), "tsallis": ("alpha", "q")}.get(name, ("alpha",))
    regularizer = by_name(name, **{key: float(arrays[key]) for key in parameters})
    for keys, size in ((BY_STATE, mdp.n_states), (BY_PAIR, mdp.n_pairs)):
        for key in keys:
            array = arrays[key]
            if array.shape != (size,):
                raise InvalidInput(f"{key} has {array.size} numbers, not {size}")
            if arrays["converged"] and not np.isfinite(array).all():
                raise InvalidInput(f"{key} of a converged solution is not finite")
            if np.isnan(array).any():
                raise InvalidInput(f"{key} contains NaN")
            array.flags.writeable = False
    read_policy(mdp, arrays["pair_policy"])
    numbers = {key: arrays[key].item() for key in NUMBERS}
    damage = _damage(numbers, *(arrays[key] for key in BY_STATE))
    if damage is not None:
        raise InvalidInput(f"damaged: {damage}")
    return {
        "mdp": mdp,
        "regularizer": regularizer,
        **{key: arrays[key] for key in BY_STATE + BY_PAIR},
        **numbers,
    }


def _damage(numbers: dict[str, Any], value: Floats, lower: Floats, upper: Floats) -> str | None:
    """A contradiction between the numbers, which no solve can have returned, or None."""
    if ((value < lower) | (value > upper)).any():
        return "a value lies outside its enclosure"
    if numbers["method"] not in METHODS:
        return f"the method {numbers['method']!r} is none of {', '.join(METHODS)}"
    for key in ("iterations", "sweeps"):
        if numbers[key] < 1:
            return f"{key} is {numbers[key]}, not at least 1"
    tolerance, error = numbers["tolerance"], float(np.max(upper - lower)) / 2
    if not 0 < tolerance < np.inf:
        return f"tolerance is {tolerance}, not a positive number"
    if not 0 <= numbers["seconds"] < np.inf:
        return f"seconds is {numbers['seconds']}, not a time"
    rounding = 4 * UNIT_ROUNDOFF * float(max(np.abs(lower).max(), np.abs(upper).max()))
    if (error <= tolerance) != numbers["converged"] and abs(error - tolerance) > rounding:
        return (
            f"converged is {numbers['converged']}, but the enclosure leaves an error of "
            f"{error:.3g} with the tolerance {tolerance:.3g}"
        )
    return None
