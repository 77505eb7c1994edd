"""The arrays of an MDP in a file: one `.npz` without pickles (`tsallax.files.npz`).

This module only handles dictionaries of arrays: files of MDPs and of solutions hold them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tsallax.errors import InvalidInput
from tsallax.files import npz

NAMES = ("state_names", "action_names")


def check_shapes(shapes: npz.Shapes) -> None:
    """Refuse arrays whose lengths contradict each other, by their shapes alone."""
    n_pairs, n_states = shapes["action_of"][0], shapes["pointer"][0] - 1
    lengths = {
        "indices": shapes["data"][0],
        "indptr": n_pairs + 1,
        "rewards": n_pairs,
        "termination": n_pairs,
        "initial": n_states,
        "state_names": n_states,
    }
    for name, length in lengths.items():
        if name in shapes and shapes[name] != (length,):
            raise InvalidInput(f"{name} has {shapes[name][0]} numbers, not {length}")


FORMAT = npz.Format(
    name="tsallax-mdp",
    version=1,
    what="MDP",
    writer="MDP.save",
    required={
        "data": ("f", 1),
        "indices": ("i", 1),
        "indptr": ("i", 1),
        "rewards": ("f", 1),
        "pointer": ("i", 1),
        "action_of": ("i", 1),
        "discount": ("f", 0),
        "initial": ("f", 1),
    },
    optional={"termination": ("f", 1), **dict.fromkeys(NAMES, ("U", 1))},
    check_shapes=check_shapes,
)


def arrays_of(mdp: Any) -> dict[str, Any]:
    """The arrays of an MDP by their names in a file."""
    t = mdp.transitions
    arrays = {"data": t.data, "indices": t.indices, "indptr": t.indptr}
    for name in (*FORMAT.required, *FORMAT.optional):
        if name not in arrays and (value := getattr(mdp, name)) is not None:
            arrays[name] = value
    return arrays


def arguments(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Turn the arrays of a file into the arguments of `MDP`."""
    pointer, n_pairs = arrays["pointer"], len(arrays["action_of"])
    n_states, n_given = len(pointer) - 1, len(arrays["data"])
    if not divides(pointer, n_pairs):
        raise InvalidInput(f"pointer does not divide {n_pairs} pairs among the states")
    if not divides(arrays["indptr"], n_given):
        raise InvalidInput(f"indptr does not divide {n_given} transitions among the pairs")
    outside = arrays["indices"][(arrays["indices"] < 0) | (arrays["indices"] >= n_states)]
    if outside.size:
        raise InvalidInput(f"indices names state {outside[0]}, not 0 to {n_states - 1}")
    rows = (arrays["data"], arrays["indices"], arrays["indptr"])
    transitions = csr_array(rows, shape=(n_pairs, n_states))
    for key in {"rewards", "termination"} & arrays.keys():
        arrays[key].flags.writeable = False
    counts = np.diff(pointer)
    state_of = np.repeat(np.arange(n_states, dtype=np.int32), counts)
    return {
        "transitions": transitions,
        "rewards": arrays["rewards"],
        "discount": float(arrays["discount"]),
        "initial": arrays["initial"],
        "pairs": np.stack([state_of, arrays["action_of"]], axis=1),
        "terminal": counts == 0,
        "termination": arrays.get("termination"),
        **{key: arrays[key].tolist() for key in NAMES if key in arrays},
    }


def divides(ends: NDArray[Any], total: int) -> bool:
    """Whether pointers rise from 0 to the total, never decreasing."""
    within = len(ends) >= 2 and ends[0] == 0 and ends[-1] == total
    return bool(within and (ends[1:] >= ends[:-1]).all())
