"""Atomic file writes: a file appears complete or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from os import PathLike
from pathlib import Path

from tsallax.errors import InvalidInput


@contextmanager
def atomic_path(path: str | PathLike[str], source: str | None = None) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which replaces `path` if no exception is raised.

    What was written is on the disk before it does. An `OSError` becomes `InvalidInput`, which names
    `source`; default: the path. One that names another file is raised as it is.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_path(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)
    except OSError as error:
        named = {error.filename, error.filename2} - {None}
        if named and named.isdisjoint({str(temporary), str(target)}):
            raise
        problem = f"cannot be written: {error.strerror or error}"
        raise InvalidInput(problem, source=source or path) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def remove_leftovers(path: str | PathLike[str]) -> None:
    """Remove the temporary files of `path` that a killed process has left."""
    target = Path(path)
    for leftover in target.parent.glob(f".{escape(target.name)}.*.partial"):
        leftover.unlink(missing_ok=True)


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a file of text in UTF-8, complete or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
