"""Atomic file writes: a file appears complete or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path


@contextmanager
def whole(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which replaces `path` if no exception is raised.

    What was written is on the disk before it does.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole(folder / "a.txt") as draft:
    ...     _ = draft.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        yield draft
        with open(draft, "rb") as written:
            os.fsync(written.fileno())
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a file of text in UTF-8, complete or not at all."""
    with whole(path) as draft:
        draft.write_text(text, encoding="utf-8")
