"""Writes and reads a solution, together with its MDP, as one `.npz` file (`tsallax.files.npz`).

What a file claims is proven again when it is read, to within rounding, by one sweep of its policy
and one of the Bellman operator U. With T_pi v = r_pi + alpha Omega(pi) + gamma T_pi v, both
monotone,

    T_pi lower >= lower   implies   lower <= V_pi <= V*,
    U upper <= upper      implies   V* <= upper.

Every enclosure that a certificate gives has these two properties (`tsallax.planning.bellman`).
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
from tsallax.planning.forms import Floats, frozen, named
from tsallax.planning.mdp import MDP
from tsallax.planning.methods import METHODS
from tsallax.planning.operator import UNIT_ROUNDOFF
from tsallax.planning.policies import read_policy, sum_by_state
from tsallax.regularizer import PARAMETERS, Regularizer, by_name

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
REGULARIZER = {"regularizer": ("U", 0), "alpha": ("f", 0), "q": ("f", 0)}
ROUNDING_FACTOR = 4
"""How many times the bound on the rounding of a sweep a proof may be missed by."""


def check_shapes(shapes: npz.Shapes) -> None:
    """Refuse arrays whose lengths contradict each other, by their shapes alone."""
    mdp_files.check_shapes(shapes)
    lengths = {**dict.fromkeys(BY_STATE, shapes["initial"]), "pair_policy": shapes["action_of"]}
    for name, (length,) in lengths.items():
        if shapes[name] != (length,):
            raise InvalidInput(f"{name} has {shapes[name][0]} numbers, not {length}")


FORMAT = npz.Format(
    name="tsallax-solution",
    version=1,
    what="solution",
    writer="Solution.save",
    required={
        **dict.fromkeys(BY_STATE + BY_PAIR, ("f", 1)),
        **REGULARIZER,
        **NUMBERS,
        **mdp_files.FORMAT.required,
    },
    optional=mdp_files.FORMAT.optional,
    check_shapes=check_shapes,
)


def write(path: str | PathLike[str], fields: Mapping[str, Any]) -> None:
    """Write the fields of a `Solution`, its MDP included, to a file, whole or not at all."""
    checks.file_ending(path, (".npz",))
    arrays = {
        **{key: fields[key] for key in (*BY_STATE, *BY_PAIR, *NUMBERS)},
        **regularizer_arrays(fields["regularizer"]),
        **mdp_files.arrays_of(fields["mdp"]),
    }
    for key in ("seconds", "tolerance"):
        arrays[key] = float(arrays[key])
    npz.write(path, FORMAT, arrays)


def read(path: str | PathLike[str], max_bytes: int | None = None) -> dict[str, Any]:
    """Read the fields of a `Solution` from a file, checked."""
    try:
        return _fields(npz.read(path, FORMAT, max_bytes))
    except InvalidInput as error:
        raise error.of(path) from None


def regularizer_arrays(regularizer: Regularizer) -> dict[str, Any]:
    """The name and the numbers of a regulariser, as a file has them."""
    return {
        "regularizer": regularizer.name, "alpha": float(regularizer.alpha), "q": regularizer.q
    }  # fmt: skip


def read_regularizer(arrays: Mapping[str, Any]) -> Regularizer:
    """The regulariser of a file, from its name and its numbers."""
    name = str(arrays["regularizer"])
    return by_name(name, **{key: float(arrays[key]) for key in PARAMETERS.get(name, ())})


def _fields(arrays: dict[str, Any]) -> dict[str, Any]:
    mdp = MDP(**mdp_files.arguments(arrays))
    regularizer = read_regularizer(arrays)
    for key in BY_STATE + BY_PAIR:
        array = arrays[key].astype(np.float64, copy=False)
        if arrays["converged"] and not np.isfinite(array).all():
            raise InvalidInput(f"{key} of a converged solution is not finite")
        if np.isnan(array).any():
            raise InvalidInput(f"{key} contains NaN")
        arrays[key] = frozen(array)
    read_policy(mdp, arrays["pair_policy"])
    numbers = {key: arrays[key].item() for key in NUMBERS}
    value, lower, upper = (arrays[key] for key in BY_STATE)
    damage = contradiction(numbers, value, lower, upper) or _disproof(
        mdp, regularizer, value, lower, upper, arrays["pair_policy"]
    )
    if damage is not None:
        raise InvalidInput(f"damaged: {damage}")
    return {
        "mdp": mdp,
        "regularizer": regularizer,
        **{key: arrays[key] for key in BY_STATE + BY_PAIR},
        **numbers,
    }


def contradiction(
    numbers: dict[str, Any], value: Floats, lower: Floats, upper: Floats
) -> str | None:
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


def _disproof(
    mdp: MDP, regularizer: Regularizer, value: Floats, lower: Floats, upper: Floats, pi: Floats
) -> str | None:
    """What one sweep shows to be wrong with an enclosure and a policy, or None."""
    if np.isneginf(lower).all() and np.isposinf(upper).all():
        return None  # an enclosure that claims nothing
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        return "an end of the enclosure is infinite and another is not"
    if (lower[mdp.terminal] > 0).any() or (upper[mdp.terminal] < 0).any():
        return "the enclosure of a terminal state does not contain its value, 0"
    low, high = (np.where(mdp.terminal, 0.0, end) for end in (lower, upper))
    size = float(max(np.abs(low).max(), np.abs(high).max()))
    centre = low + 0.5 * (high - low)
    off = np.abs(np.where(mdp.terminal, 0.0, value) - centre)
    if (off > 0.125 * (high - low) + 8 * UNIT_ROUNDOFF * size).any():
        return f"the value of {_worst(mdp, off)} is not the centre of its enclosure"
    operator = Bellman(mdp, regularizer)
    pi = pi / sum_by_state(mdp, pi)[mdp.state_of]
    slack = ROUNDING_FACTOR * operator.action_value_rounding(low, high)
    gain = sum_by_state(mdp, pi * mdp.rewards) + operator.alpha * operator.entropy(pi)
    rise = np.where(mdp.terminal, 0.0, operator.residual(pi, gain, low))
    if not (rise >= -slack).all():
        return f"lower is above the value of the policy, by a sweep in {_worst(mdp, -rise)}"
    rise = np.where(mdp.terminal, 0.0, operator.certify(operator.start(high)).updated - high)
    if not (rise <= slack).all():
        return f"upper is below the optimal value, by a sweep in {_worst(mdp, rise)}"
    return None


def _worst(mdp: MDP, excess: Floats) -> str:
    """The state with the largest number."""
    return named("state", int(np.argmax(excess)), mdp.state_names)
