"""What the commands share: errors in one line, and options that are read alike."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from tsallax.errors import InvalidInput


def complain(message: str, code: int) -> int:
    """Print an error in one line; give the exit code."""
    sys.stderr.write(f"tsallax: error: {' '.join(message.split())}\n")
    return code


def note(message: str) -> None:
    """Print a remark in one line."""
    sys.stderr.write(f"tsallax: note: {' '.join(message.split())}\n")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what a user can cause into one line and an exit code."""
    try:
        yield
    except InvalidInput as error:
        raise typer.Exit(complain(str(error), 2)) from None
    except MemoryError:
        raise typer.Exit(complain("the problem does not fit into memory", 2)) from None


def key_values(option: str, pairs: list[str]) -> dict[str, Any]:
    """Options of an environment: Python values where they are, words otherwise."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, value = split_pair(option, pair)
        try:
            options[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[key] = {"true": True, "false": False}.get(value, value)
    return options


def split_pair(option: str, pair: str) -> tuple[str, str]:
    """The two sides of KEY=VALUE."""
    key, equals, value = pair.partition("=")
    if not (equals and key.isidentifier()):
        raise InvalidInput(f"{option} {pair}: must have the form KEY=VALUE")
    return key, value


def require_writable(out: Path, option: str = "--out") -> None:
    """Refuse before the work what could not be written after it."""
    folder = out.parent
    if out.is_dir():
        raise InvalidInput(f"{option} {out}: is a folder, give the name of a file")
    if not folder.is_dir():
        raise InvalidInput(f"{option} {out}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"{option} {out}: the folder {folder} cannot be written to")


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of words as columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(f"{word:<{w}}" for word, w in zip(row, widths)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
