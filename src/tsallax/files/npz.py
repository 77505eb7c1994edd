"""Versioned `.npz` files of plain arrays, without pickles, written completely or not at all.

A file is written under a temporary name and moved into place when it is complete. Reading first
verifies the checksums of all arrays, and never unpickles anything.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.files.atomic import whole

Kind = tuple[str, int]
"""The kind of an array's numbers, as in `dtype.kind`, and its number of dimensions."""


@dataclass(frozen=True)
class Format:
    """A file format: its name and version, the function that writes it, and its arrays."""

    name: str
    version: int
    what: str
    writer: str
    required: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)


def write(path: str | PathLike[str], form: Format, arrays: Mapping[str, Any]) -> None:
    """Write arrays as a file of the given format."""
    content = {"format": form.name, "version": form.version, **arrays}
    try:
        with whole(path) as partial, open(partial, "xb") as file:
            _write_arrays(file, content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror or error}", source=path) from error


def _write_arrays(file: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Write an `.npz` whose bytes depend on the arrays alone, not on the time."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, value in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)


def read(path: str | PathLike[str], form: Format) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file, each with the kind and dimension it must have."""
    arrays = read_all(path, form)
    missing = [key for key in form.required if key not in arrays]
    if missing:
        raise InvalidInput(f"incomplete: {', '.join(missing)} missing", source=path)
    wanted = {**form.required, **form.optional}
    arrays = {key: arrays[key] for key in wanted if key in arrays}
    for key, array in arrays.items():
        kind, ndim = wanted[key]
        if array.dtype.kind != kind or array.ndim != ndim:
            raise InvalidInput(
                f"{key} has type {array.dtype} and {array.ndim} dimensions", source=path
            )
    return arrays


def read_all(path: str | PathLike[str], form: Format) -> dict[str, NDArray[Any]]:
    """Read every array of a file of the given format and version.

    The exceptions of zipfile and NumPy for damaged bytes are not documented, so all are caught.
    """
    if not Path(path).is_file():
        raise InvalidInput("no such file", source=path)
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
            if any(entry.comment for entry in archive.infolist()):  # it may hide other entries
                raise InvalidInput("damaged: its table of contents", source=path)
        if damaged is not None:
            raise InvalidInput(f"damaged: {damaged} does not match its checksum", source=path)
        with np.load(path, allow_pickle=False) as file:
            name = file["format"] if "format" in file.files else None
            if name is None or name.dtype.kind != "U" or str(name) != form.name:
                raise InvalidInput(f"not a file written by {form.writer}", source=path)
            version = file["version"] if "version" in file.files else np.array(-1)
            if version.shape != () or version.dtype.kind not in "iu" or version != form.version:
                raise InvalidInput(
                    f"version {version}, but this tsallax reads version {form.version}", source=path
                )
            return {key: file[key] for key in file.files if key not in ("format", "version")}
    except InvalidInput:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidInput(f"not a readable {form.what} file: {reason}", source=path) from None
