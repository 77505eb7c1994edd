"""The history of an agent as CSV files, and as TensorBoard event files.

Rows are added while the agent learns. Opening a log rewrites it with the whole history of the
agent, which drops rows that a killed process wrote after its last checkpoint.
"""

import csv
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

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
"""Prefix of the history's columns and names of the columns of each file."""


class Logs:
    """The logs in a folder: rewritten with a history when opened, then appended to."""

    def __init__(self, folder: str | PathLike[str], history: History, tensorboard: bool) -> None:
        self._folder = Path(folder)
        self._board: Any = None
        if tensorboard:
            for old in self._folder.glob("events.out.tfevents.*"):
                old.unlink()
            self._board = import_tensorboard().SummaryWriter(logdir=str(self._folder))
        self._written: dict[str, int] = {}
        self._files: dict[str, TextIO] = {}
        for name in TABLES:
            rows = _rows(history, name, 0)
            self._files[name] = _replace(self._folder / name, TABLES[name][1], rows)
            self._written[name] = len(rows)
            self._add_scalars(name, rows)

    def add(self, history: History) -> None:
        """Append the rows of a history that are not written yet."""
        for name, file in self._files.items():
            rows = _rows(history, name, self._written[name])
            if rows:
                self._written[name] += len(rows)
                csv.writer(file, lineterminator="\n").writerows(rows)
                file.flush()
                self._add_scalars(name, rows)

    def _add_scalars(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        """Write rows to TensorBoard's event file."""
        if self._board is None or not rows:
            return
        prefix, columns = TABLES[name]
        for row in rows:
            values = dict(zip(columns, row, strict=True))
            for column, value in values.items():
                if column not in ("episode", "step"):
                    self._board.add_scalar(f"{prefix[:-1]}/{column}", value, values["step"])
        self._board.flush()

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        if self._board is not None:
            self._board.close()


def import_tensorboard() -> Any:
    """The module that writes TensorBoard's event files."""
    try:
        import tensorboardX
    except ImportError:
        raise InvalidInput("--tensorboard needs tensorboardX: pip install tensorboardX") from None
    return tensorboardX


def read(path: str | PathLike[str]) -> dict[str, NDArray[np.float64]]:
    """The columns of a log; an incomplete last line is left out."""
    name = Path(path).name
    columns = TABLES[name][1]
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput("no such file", source=path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", source=path) from None
    head, *lines = text[: text.rfind("\n") + 1].splitlines() or [""]
    if head != ",".join(columns):
        problem = f"not a log of tsallax train: its first line is {head[:60]!r}"
        raise InvalidInput(problem, source=path)
    table = np.empty((len(lines), len(columns)))
    for i, line in enumerate(lines):
        try:
            table[i] = [float(cell) for cell in line.split(",")]
        except ValueError:
            problem = f"line {i + 2} is not {len(columns)} numbers: {line[:60]!r}"
            raise InvalidInput(problem, source=path) from None
    return {column: table[:, i] for i, column in enumerate(columns)}


def _rows(history: History, name: str, begin: int) -> list[tuple[Any, ...]]:
    """The rows of a table from index `begin` on; episodes are numbered from 1."""
    prefix, columns = TABLES[name]
    numbered = name == EPISODES
    values: list[Any] = [history.columns[prefix + column][begin:] for column in columns[numbered:]]
    if numbered:
        values.insert(0, range(begin + 1, begin + 1 + len(values[0])))
    return [tuple(x.item() if isinstance(x, np.generic) else x for x in r) for r in zip(*values)]


def _replace(path: Path, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> TextIO:
    """Replace a file atomically by one with these rows; it is returned open, to append to."""
    try:
        with whole(path) as draft:
            file = open(draft, "w", encoding="utf-8", newline="")  # noqa: SIM115  kept open
            csv.writer(file, lineterminator="\n").writerows([columns, *rows])
            file.flush()
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror or error}", source=path) from None
    return file
