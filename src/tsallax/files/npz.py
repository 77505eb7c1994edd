"""Versioned `.npz` files of plain arrays, without pickles, written completely or not at all.

A file is written under a temporary name and moved into place when it is complete.

A file to be read is not trusted. Before any array is allocated, the directory of the archive and
the header of every array are compared: an array has exactly the bytes that its shape needs, and
all of them together are at most `max_bytes`, by default 256 MB or ten times the size of the file,
whichever is more. What `write` writes passes, unless it compresses an array to much less; a file
that someone has compressed passes unless it unpacks to more than that. Then every array is read
once, with its checksum, and nothing is ever unpickled. Arrays that a caller asks to be mapped into
memory are not read here, and their checksums are not compared.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.errors import InvalidInput, one_line
from tsallax.files.atomic import atomic_path

Kind = tuple[str, int]
"""The kind of an array's numbers, as in `dtype.kind`, and its number of dimensions."""

Shapes = Mapping[str, tuple[int, ...]]
"""The shapes of arrays by their names."""

MIN_LIMIT = 256_000_000
"""Bytes to which any file may unpack."""
MAX_RATIO = 10
"""The largest ratio of unpacked to packed size of a larger file, where its format has no other."""
LEVEL = 1
"""The level of compression: the fastest."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Ways to store an array that are read; of others zipfile cannot limit what they unpack to."""
MAX_CODE_POINT = 0x10FFFF
LOCAL_HEADER = 30
"""Bytes of the header in front of an entry of an archive, before its name and extra field."""
LOCAL_LENGTHS = struct.Struct("<26x2H")
"""The lengths of name and extra field in that header."""


@dataclass(frozen=True)
class Format:
    """A file format: its name and version, the function that writes it, and its arrays.

    `check_shapes` raises `InvalidInput` for arrays whose lengths contradict each other; it is
    called before they are read.
    """

    name: str
    version: int
    what: str
    writer: str
    required: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)
    check_shapes: Callable[[Shapes], None] = lambda shapes: None
    max_ratio: int = MAX_RATIO


def write(
    path: str | PathLike[str],
    form: Format,
    arrays: Mapping[str, Any],
    compressed: Collection[str] = (),
) -> None:
    """Write arrays as a file of the given format; those named in `compressed` are compressed."""
    content = {"format": form.name, "version": form.version, **arrays}
    with atomic_path(path) as temporary, open(temporary, "xb") as file:
        _write_arrays(file, content, compressed)


def _write_arrays(file: BinaryIO, arrays: Mapping[str, Any], compressed: Collection[str]) -> None:
    """Write an `.npz` whose bytes depend on the arrays alone, not on the time."""
    with zipfile.ZipFile(file, "w", compresslevel=LEVEL) as archive:
        for name, value in arrays.items():
            archive.compression = METHODS[name in compressed]
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)


def read(
    path: str | PathLike[str],
    form: Format,
    max_bytes: int | None = None,
    mapped: Collection[str] = (),
) -> dict[str, NDArray[Any]]:
    """Read the arrays of a format, each with the kind and dimension it must have.

    The arrays named in `mapped` are mapped into memory where they are not compressed; their
    checksums are not compared.
    """
    return _read(path, form, max_bytes, {**form.required, **form.optional}, mapped)


def read_all(
    path: str | PathLike[str], form: Format, max_bytes: int | None = None
) -> dict[str, NDArray[Any]]:
    """Read every array of a file, of whatever name, kind and dimension."""
    return _read(path, form, max_bytes, None)


def _read(
    path: str | PathLike[str],
    form: Format,
    max_bytes: int | None,
    kinds: Mapping[str, Kind] | None,
    mapped: Collection[str] = (),
) -> dict[str, NDArray[Any]]:
    """Read the arrays named in `kinds`, or all, and map those named in `mapped`.

    The exceptions of zipfile and NumPy for damaged bytes are not documented, so all are caught.
    """
    checks.input_file(path)
    if max_bytes is not None:
        checks.count("max_bytes", max_bytes)
    try:
        with zipfile.ZipFile(path) as archive:
            entries = _entries(archive)
            packed = os.path.getsize(path)
            limit = max(MIN_LIMIT, form.max_ratio * packed) if max_bytes is None else max_bytes
            _check_size(packed, entries.values(), limit)
            _check_version(archive, entries, form)
            del entries["format"], entries["version"]
            headers = {
                name: _header(archive, entry)
                for name, entry in entries.items()
                if kinds is None or name in kinds
            }
            missing = [name for name in form.required if name not in headers]
            if missing:
                raise InvalidInput(f"incomplete: {', '.join(missing)} missing")
            _check_kinds(headers, kinds or {})
            form.check_shapes({name: shape for name, (shape, _) in headers.items()})
            return {
                name: _mapped(path, archive, entries[name])
                if name in mapped and _can_be_mapped(entries[name], dtype)
                else _array(archive, entries[name])
                for name, (_, dtype) in headers.items()
            }
    except InvalidInput as error:
        raise error.of(path) from None
    except Exception as error:
        reason = one_line(error) or type(error).__name__
        raise InvalidInput(f"not a readable {form.what} file: {reason}", source=path) from None


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays in the directory of an archive, by their names.

    `open` compares the name of each entry in the directory with that in front of its contents, so
    that damage to a name cannot pass for the absence of an optional array.
    """
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        archive.open(entry).close()
        name = entry.filename.removesuffix(".npy")
        if entry.comment or name in entries:  # a comment may hide other entries
            raise InvalidInput("damaged: its table of contents")
        if entry.filename.endswith(".npy"):
            entries[name] = entry
            if entry.compress_type not in METHODS:
                raise InvalidInput(f"{name} is compressed by a method that is not deflate")
    return entries


def _check_size(packed: int, entries: Collection[zipfile.ZipInfo], limit: int) -> None:
    """Refuse a file whose directory declares more bytes than allowed."""
    size = sum(entry.file_size for entry in entries)
    if size > limit:
        raise InvalidInput(
            f"unpacks from {packed:,} bytes to {size:,}, more than the limit of {limit:,}; "
            f"if you trust it, load it in Python with max_bytes={size}"
        )


def _check_version(
    archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], form: Format
) -> None:
    """Refuse a file of another format or version."""
    values: dict[str, Any] = {"format": None, "version": -1}
    for key in values.keys() & entries.keys():
        shape, dtype = _header(archive, entries[key])
        if shape == () and dtype.kind in "Uiu":
            values[key] = _array(archive, entries[key]).item()
    if values["format"] != form.name:
        other = values["format"]
        but = f", but of the format {other[:40]!r}" if isinstance(other, str) else ""
        raise InvalidInput(f"not a file written by {form.writer}{but}")
    if values["version"] != form.version:
        raise InvalidInput(
            f"version {values['version']}, but this tsallax reads version {form.version}"
        )


@contextmanager
def _opened(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
    """An entry to read from, refused at its end if it does not match its checksum."""
    with archive.open(entry) as member:
        try:
            yield member
        except zipfile.BadZipFile:
            problem = f"damaged: {entry.filename} does not match its checksum"
            raise InvalidInput(problem) from None


def _header(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type that the header of an array declares, which must fill the entry."""
    name = entry.filename
    with _opened(archive, entry) as member, warnings.catch_warnings():
        warnings.simplefilter("error")
        version = np.lib.format.read_magic(member)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(member)
        else:
            raise InvalidInput(f"damaged: {name} has version {version} of its header")
        if dtype.kind not in "biufcU" or dtype.itemsize == 0:
            raise InvalidInput(f"damaged: {name} has type {dtype}, which is not of numbers or text")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or member.tell() + size != entry.file_size:
            raise InvalidInput(
                f"damaged: {name} has shape {shape} and type {dtype}, but {entry.file_size:,} bytes"
            )
    return shape, dtype


def _check_kinds(
    headers: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]], kinds: Mapping[str, Kind]
) -> None:
    """Refuse arrays of another kind or number of dimensions."""
    for name, (kind, ndim) in kinds.items():
        if name in headers:
            shape, dtype = headers[name]
            if dtype.kind != kind or len(shape) != ndim:
                raise InvalidInput(f"{name} has type {dtype} and {len(shape)} dimensions")


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """An array in the byte order of this machine, with its checksum verified."""
    with _opened(archive, entry) as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind == "U" and array.size:
        letters = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
        if letters.max() > MAX_CODE_POINT:
            raise InvalidInput(f"damaged: {entry.filename} is not text")
    return array


def _can_be_mapped(entry: zipfile.ZipInfo, dtype: np.dtype[Any]) -> bool:
    return entry.compress_type == zipfile.ZIP_STORED and dtype.isnative


def _mapped(
    path: str | PathLike[str], archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> NDArray[Any]:
    """An array that is not compressed, mapped into memory: what is not used is not read."""
    shape, dtype = _header(archive, entry)
    size = math.prod(shape) * dtype.itemsize
    with open(path, "rb") as file:
        file.seek(entry.header_offset)
        name_length, extra_length = LOCAL_LENGTHS.unpack_from(file.read(LOCAL_HEADER))
    content = entry.header_offset + LOCAL_HEADER + name_length + extra_length
    if size == 0:
        return np.empty(shape, dtype)
    offset = content + entry.file_size - size
    return np.asarray(np.memmap(path, dtype, "r", offset, shape))
