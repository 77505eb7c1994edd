"""Writes and reads an MDP as one `.npz` file: plain arrays, no pickles, versioned.

A file is written under a temporary name and moved into place when it is complete. Reading checks
the checksums of all arrays before it looks at any of them, and never unpickles anything.
"""

from __future__ import annotations

import os
import secrets
import zipfile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tsallax.errors import InvalidInput

if TYPE_CHECKING:
    from tsallax.mdp import MDP

FORMAT = "tsallax-mdp"
VERSION = 1

REQUIRED = {
    "data": ("f", 1),
    "indices": ("i", 1),
    "indptr": ("i", 1),
    "rewards": ("f", 1),
    "pointer": ("i", 1),
    "action_of": ("i", 1),
    "discount": ("f", 0),
    "initial": ("f", 1),
}
NAMES = ("state_names", "action_names")
OPTIONAL = {"termination": ("f", 1), **dict.fromkeys(NAMES, ("U", 1))}


def write(path: str | PathLike[str], mdp: MDP) -> None:
    """Write the arrays of an MDP to a file, whole or not at all."""
    target = Path(path)
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "data": mdp.transitions.data,
        "indices": mdp.transitions.indices,
        "indptr": mdp.transitions.indptr,
        "rewards": mdp.rewards,
        "pointer": mdp.pointer,
        "action_of": mdp.action_of,
        "discount": mdp.discount,
        "initial": mdp.initial,
    }
    for name in OPTIONAL:
        if (value := getattr(mdp, name)) is not None:
            arrays[name] = value
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        try:
            with open(partial, "xb") as file:
                _write_arrays(file, arrays)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written: {error.strerror or error}") from error


def _write_arrays(file: BinaryIO, arrays: dict[str, Any]) -> None:
    """Write an `.npz` that depends on the arrays alone, not on the time of writing."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, value in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """Read what `MDP` needs to build the MDP of a file again."""
    arrays = _arrays(path)
    pointer, n_pairs = arrays["pointer"], len(arrays["action_of"])
    counts = np.diff(pointer)
    if len(pointer) < 2 or pointer[0] != 0 or pointer[-1] != n_pairs or (counts < 0).any():
        raise InvalidInput(f"{path}: pointer does not divide {n_pairs} pairs among the states")
    n_states = len(pointer) - 1
    try:
        transitions = csr_array(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n_pairs, n_states)
        )
    except ValueError as error:
        raise InvalidInput(f"{path}: transitions are damaged: {error}") from None
    names = {key: arrays[key].tolist() for key in NAMES if key in arrays}
    for key in ("rewards", "termination"):
        if key in arrays:
            arrays[key].flags.writeable = False
            if arrays[key].shape != (n_pairs,):
                raise InvalidInput(f"{path}: {key} has {arrays[key].size} numbers, not {n_pairs}")
    state_of = np.repeat(np.arange(n_states, dtype=np.int32), counts)
    return {
        "transitions": transitions,
        "rewards": arrays["rewards"],
        "discount": float(arrays["discount"]),
        "initial": arrays["initial"],
        "pairs": np.stack([state_of, arrays["action_of"]], axis=1),
        "terminal": counts == 0,
        "termination": arrays.get("termination"),
        "state_names": names.get("state_names"),
        "action_names": names.get("action_names"),
    }


def _arrays(path: str | PathLike[str]) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file, each with the kind and dimension it must have.

    What zipfile and NumPy raise on damaged bytes is not documented, so all of it is caught.
    """
    if not Path(path).is_file():
        raise InvalidInput(f"{path}: no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise InvalidInput(f"{path}: damaged: {damaged} does not match its checksum")
        with np.load(path, allow_pickle=False) as file:
            kind = file["format"] if "format" in file.files else None
            if kind is None or kind.dtype.kind != "U" or str(kind) != FORMAT:
                raise InvalidInput(f"{path}: not a file written by MDP.save")
            version = file["version"] if "version" in file.files else np.array(-1)
            if version.shape != () or version.dtype.kind not in "iu" or version != VERSION:
                raise InvalidInput(
                    f"{path}: version {version}, but this tsallax reads version {VERSION}"
                )
            missing = [key for key in REQUIRED if key not in file.files]
            if missing:
                raise InvalidInput(f"{path}: incomplete: {', '.join(missing)} missing")
            wanted = {k: v for k, v in (REQUIRED | OPTIONAL).items() if k in file.files}
            arrays: dict[str, NDArray[Any]] = {key: file[key] for key in wanted}
    except InvalidInput:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidInput(f"{path}: not a readable MDP file: {reason}") from None
    for key, (kind_, ndim) in wanted.items():
        array = arrays[key]
        if array.dtype.kind != kind_ or array.ndim != ndim:
            raise InvalidInput(f"{path}: {key} has type {array.dtype} and {array.ndim} dimensions")
    return arrays
