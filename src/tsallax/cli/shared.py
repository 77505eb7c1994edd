"""What the commands share: errors in one line, and options that are read alike."""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tsallax.errors import InvalidInput

if TYPE_CHECKING:
    from tsallax.deep.agent import Agent


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
        if key in options:
            raise InvalidInput(f"{option} {key} is given twice")
        try:
            options[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
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


def set_values(pairs: list[str]) -> dict[str, Any]:
    """What --set sets."""
    from tsallax.runs.settings import option

    values: dict[str, Any] = {}
    for pair in pairs:
        key, text = split_pair("--set", pair)
        if key in values:
            raise InvalidInput(f"--set {pair}: {key} is set twice")
        try:
            values[key] = option(text)
        except InvalidInput as error:
            raise InvalidInput(f"--set {pair}: {error}") from None
    return values


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print warnings as remarks, each once."""
    seen = set[str]()

    def show(message: Any, category: Any, *_: Any, **__: Any) -> None:
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(message))
        if issubclass(category, UserWarning) and text not in seen:
            seen.add(text)
            note(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def trained(agent: Agent) -> str:
    """How far an agent has come."""
    n = agent.history.episodes
    return f"{n:,} episode{'s' * (n != 1)}, {agent.steps:,} steps"


def named(agent: Agent) -> str:
    """What an agent is."""
    return repr(agent).rsplit(": ", 1)[0].replace("(", ", ", 1).replace("'", "")
