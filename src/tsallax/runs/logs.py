"""What an agent went through as files that other programs read: CSV, and TensorBoard's.

Rows are added while the agent learns. A log that is opened starts with the whole history of the
agent, so that rows which a killed process wrote after its last checkpoint are dropped.
"""

from __future__ import annotations

import csv
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import numpy as np
from numpy.typing import NDArray

from tsallax.deep.history import History
from tsallax.errors import InvalidInput
from tsallax.files.atomic import whole

EPISODES, EVALUATIONS, TRACE = "episodes.csv", "evaluations.csv", "trace.csv"
TABLES = {
    EPISODES: ("episode_", ("episode", "step", "return", "length")),
    EVALUATIONS: ("evaluation_", ("episode", "step", "return", "std", "length", "sampled")),
    TRACE: ("trace_", ("step", "loss", "value", "support")),
}
"""The columns of each file, and how the history's are called: the columns with a prefix."""


class Logs:
    """The logs in a folder, written anew with what a history holds and then added to."""

    def __init__(self, folder: str | PathLike[str], history: History, tensorboard: bool) -> None:
        self._folder = Path(folder)
        self._board: Any = None
        if tensorboard:
            for old in self._folder.glob("events.out.tfevents.*"):
                old.unlink()
            self._board = require_tensorboard().SummaryWriter(logdir=str(self._folder))
        self._written: dict[str, int] = {}
        self._files: dict[str, TextIO] = {}
        for name in TABLES:
            rows = _rows(history, name, 0)
            self._files[name] = _replace(self._folder / name, TABLES[name][1], rows)
            self._written[name] = len(rows)
            self._show(name, rows)

    def add(self, history: History) -> None:
        """Add what is new in a history."""
        for name, file in self._files.items():
            rows = _rows(history, name, self._written[name])
            if rows:
                self._written[name] += len(rows)
                csv.writer(file, lineterminator="\n").writerows(rows)
                file.flush()
                self._show(name, rows)

    def _show(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        """Hand rows to TensorBoard."""
        if self._board is None or not rows:
            return
        prefix, columns = TABLES[name]
        for row in rows:
            named = dict(zip(columns, row, strict=True))
            for column, value in named.items():
                if column not in ("episode", "step"):
                    self._board.add_scalar(f"{prefix[:-1]}/{column}", value, named["step"])
        self._board.flush()

    def close(self) -> None:
        """Write what is left and close the files."""
        for file in self._files.values():
            file.close()
        if self._board is not None:
            self._board.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def require_tensorboard() -> Any:
    """The writer of TensorBoard's files."""
    try:
        return import_module("tensorboardX")
    except ImportError:
        raise InvalidInput(
            "--tensorboard needs tensorboardX: pip install 'tsallax[tensorboard]'"
        ) from None


def read(path: str | PathLike[str]) -> dict[str, NDArray[np.float64]]:
    """The columns of a log; a last line that is only half written is left out."""
    name = Path(path).name
    columns = TABLES[name][1]
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: cannot be read: {error}") from None
    head, *lines = text[: text.rfind("\n") + 1].splitlines() or [""]
    if head != ",".join(columns):
        raise InvalidInput(f"{path}: not a log of tsallax train: its first line is {head[:60]!r}")
    table = np.empty((len(lines), len(columns)))
    for i, line in enumerate(lines):
        try:
            table[i] = [float(cell) for cell in line.split(",")]
        except ValueError:
            raise InvalidInput(
                f"{path}: line {i + 2} is not {len(columns)} numbers: {line[:60]!r}"
            ) from None
    return {column: table[:, i] for i, column in enumerate(columns)}


def _rows(history: History, name: str, begin: int) -> list[tuple[Any, ...]]:
    """The rows of a table from number `begin` on."""
    prefix, columns = TABLES[name]
    counted = name == EPISODES
    found: list[Any] = [history.columns[prefix + column][begin:] for column in columns[counted:]]
    if counted:
        found.insert(0, range(begin + 1, begin + 1 + len(found[0])))
    return list(zip(*([_plain(x) for x in column] for column in found), strict=True))


def _plain(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


def _replace(path: Path, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> TextIO:
    """Replace a file, in one go, by one with these rows; give it open for more."""
    try:
        with whole(path) as partial:
            file = open(partial, "w", encoding="utf-8", newline="")  # noqa: SIM115  kept open
            csv.writer(file, lineterminator="\n").writerows([columns, *rows])
            file.flush()
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written: {error.strerror or error}") from None
    return file
