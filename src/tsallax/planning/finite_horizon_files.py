"""Writes and reads a solution with a finite horizon, and its MDP, as one `.npz` file.

What a file claims is proven again when it is read, by one sweep of U for every step.  Where the
stored v_t differs from U v_{t+1} as it is computed here, by rounding on another machine, e_t grows
by as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.files import npz
from tsallax.planning import mdp_files
from tsallax.planning.bellman import Bellman
from tsallax.planning.forms import Floats, frozen
from tsallax.planning.kernels.sparse_linear import max_abs
from tsallax.planning.mdp import MDP
from tsallax.planning.solution_files import REGULARIZER, read_regularizer, regularizer_arrays
from tsallax.regularizer import Regularizer

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
    values, errors = (arrays[key].astype(np.float64, copy=False) for key in ("values", "errors"))
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
    numbers = {key: float(arrays[key]) for key in ("seconds", "tolerance")}
    for key, number in numbers.items():
        if not 0 <= number < np.inf:
            raise InvalidInput(f"damaged: {key} is {number}")
    return {
        "mdp": mdp,
        "regularizer": regularizer,
        "horizon": rows - 1,
        "values": frozen(values),
        "errors": frozen(_proven_errors(mdp, regularizer, values, errors)),
        **numbers,
    }


def _proven_errors(mdp: MDP, regularizer: Regularizer, values: Floats, claimed: Floats) -> Floats:
    """Bounds on the errors of the values of all steps, proven by backward induction, or refused."""
    operator = Bellman(mdp, regularizer, finite_horizon=True)
    last = len(values) - 1
    if claimed[last] != 0.0:
        raise InvalidInput("damaged: the final value has an error")
    errors = np.array(claimed)
    iterate = operator.start(values[last])
    size = float(max_abs(values[last]))
    for t in range(last - 1, -1, -1):
        updated, policy, *_ = operator.sweep(iterate)
        before, size = size, float(max_abs(values[t]))
        largest = max(before, size)
        off = float(max_abs(updated - values[t]))
        if not off <= 2.0 * operator.sweep_error(largest, 0.0):
            raise InvalidInput(
                f"damaged: the values of step {t} are off by {off:.3g}, by a sweep from those of "
                f"step {t + 1}"
            )
        if claimed[t] < 0.5 * operator.sweep_error(largest, claimed[t + 1]):
            raise InvalidInput(f"damaged: the error of step {t} is below that of rounding")
        errors[t] = max(claimed[t], operator.sweep_error(largest, errors[t + 1]) + off)
        iterate = iterate._replace(value=values[t], hint=policy.thresholds)
    return errors
