"""Writes and reads a solution with a finite horizon, and its MDP, as one `.npz` file."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.files import npz
from tsallax.planning import mdp_files
from tsallax.planning.mdp import MDP
from tsallax.planning.solution_files import REGULARIZER, read_regularizer, regularizer_arrays

FORMAT = npz.Format(
    name="tsallax-finite-horizon-solution",
    version=1,
    what="solution with a finite horizon",
    writer="FiniteHorizonSolution.save",
    required={
        "values": ("f", 2),
        "errors": ("f", 1),
        **REGULARIZER,
        "seconds": ("f", 0),
        "tolerance": ("f", 0),
        **mdp_files.FORMAT.required,
    },
    optional=mdp_files.FORMAT.optional,
)


def write(path: str | PathLike[str], fields: Mapping[str, Any]) -> None:
    """Write the fields of a `FiniteHorizonSolution`, its MDP included, whole or not at all."""
    checks.file_ending(path, (".npz",))
    arrays = {
        "values": fields["values"],
        "errors": fields["errors"],
        **regularizer_arrays(fields["regularizer"]),
        "seconds": float(fields["seconds"]),
        "tolerance": float(fields["tolerance"]),
        **mdp_files.arrays_of(fields["mdp"]),
    }
    npz.write(path, FORMAT, arrays)


def read(path: str | PathLike[str], max_bytes: int | None = None) -> dict[str, Any]:
    """Read the fields of a `FiniteHorizonSolution` from a file, checked."""
    try:
        return _fields(npz.read(path, FORMAT, max_bytes))
    except InvalidInput as error:
        raise error.of(path) from None


def _fields(arrays: dict[str, Any]) -> dict[str, Any]:
    mdp = MDP(**mdp_files.arguments(arrays))
    regularizer = read_regularizer(arrays)
    values, errors = arrays["values"], arrays["errors"]
    rows = len(values)
    if rows < 2 or values.shape[1] != mdp.n_states or errors.shape != (rows,):
        raise InvalidInput(
            f"damaged: values of shape {values.shape} and errors of shape {errors.shape} do not "
            f"belong to {mdp.n_states} states"
        )
    if not (np.isfinite(values).all() and np.isfinite(errors).all() and (errors >= 0).all()):
        raise InvalidInput("damaged: a value or a bound on its error is not a finite number")
    if values[:, mdp.terminal].any():
        raise InvalidInput("damaged: a terminal state is not worth 0")
    for array in (values, errors):
        array.flags.writeable = False
    numbers = {key: float(arrays[key]) for key in ("seconds", "tolerance")}
    for key, number in numbers.items():
        if not 0 <= number < np.inf:
            raise InvalidInput(f"damaged: {key} is {number}")
    return {
        "mdp": mdp,
        "regularizer": regularizer,
        "horizon": rows - 1,
        "values": values,
        "errors": errors,
        **numbers,
    }
