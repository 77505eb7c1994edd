"""The history of an agent as CSV files, and for TensorBoard and Weights & Biases.

Rows are added while the agent learns. Opening a log rewrites it with the whole history of the
agent, which drops rows that a killed process wrote after its last checkpoint.
"""

import csv
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from tsallax.deep.history import History
from tsallax.deep.option_changes import Change
from tsallax.errors import InvalidInput
from tsallax.files import yaml_text
from tsallax.files.atomic import atomic_path

EPISODES, EVALUATIONS, TRACE = "episodes.csv", "evaluations.csv", "trace.csv"
CHANGES = "changes.csv"
TABLES = {
    EPISODES: ("episode_", ("episode", "step", "return", "length")),
    EVALUATIONS: ("evaluation_", ("episode", "step", "return", "std", "length", "sampled")),
    TRACE: ("trace_", ("step", "loss", "value", "support")),
}
"""Prefix of the history's columns and names of the columns of each file."""
WANDB_ID = "wandb_id.txt"
"""The file with the id of a folder's run of Weights & Biases."""


class Logs:
    """The logs in a folder: rewritten with a history when opened, then appended to."""

    def __init__(
        self,
        folder: str | PathLike[str],
        history: History,
        tensorboard: bool = False,
        wandb: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._folder = Path(folder)
        self._writers: list[TensorBoardWriter | WandbWriter] = []
        if tensorboard:
            self._writers.append(TensorBoardWriter(self._folder))
        if wandb is not None:
            self._writers.append(WandbWriter(self._folder, wandb, options or {}))
        self._written: dict[str, int] = {}
        self._files: dict[str, TextIO] = {}
        for name in TABLES:
            rows = _rows(history, name, 0)
            self._files[name] = _replace(self._folder / name, TABLES[name][1], rows)
            self._written[name] = len(rows)
            self._pass_on(name, rows, 0)

    def add(self, history: History) -> None:
        """Append the rows of a history that are not written yet."""
        for name, file in self._files.items():
            rows = _rows(history, name, self._written[name])
            if rows:
                try:
                    csv.writer(file, lineterminator="\n").writerows(rows)
                    file.flush()
                except OSError as error:
                    problem = f"cannot be written: {error.strerror or error}"
                    raise InvalidInput(problem, source=self._folder / name) from None
                self._pass_on(name, rows, self._written[name])
                self._written[name] += len(rows)

    def _pass_on(self, name: str, rows: list[tuple[Any, ...]], first: int) -> None:
        """Write rows, of which the first has this index, to TensorBoard and W&B."""
        prefix, columns = TABLES[name]
        for writer in self._writers if rows else []:
            for index, row in enumerate(rows, first):
                values = dict(zip(columns, row, strict=True))
                step = values.pop("step")
                values.pop("episode", None)
                writer.add(prefix[:-1], index, step, values)
            writer.flush()

    def close(self) -> None:
        """Close the files; `add` has written all that they are to hold, or said that it cannot."""
        for file in self._files.values():
            with suppress(OSError):
                file.close()
        for writer in self._writers:
            writer.close()


class TensorBoardWriter:
    """The event file of TensorBoard in a folder, instead of those of earlier processes."""

    def __init__(self, folder: Path) -> None:
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self._board = import_tensorboard().SummaryWriter(logdir=str(folder))

    def add(self, table: str, index: int, step: int, values: Mapping[str, float]) -> None:
        """Write a row of a table."""
        for column, value in values.items():
            self._board.add_scalar(f"{table}/{column}", value, step)

    def flush(self) -> None:
        self._board.flush()

    def close(self) -> None:
        self._board.close()


class WandbWriter:
    """A run of Weights & Biases, continued by later processes of the same folder.

    Every row has its index in its table, so that a row that is there already is not sent again.
    """

    def __init__(self, folder: Path, project: str, options: Mapping[str, Any]) -> None:
        file = folder / WANDB_ID
        if not file.exists():
            with atomic_path(file) as temporary:
                temporary.write_text(f"{uuid.uuid4().hex[:12]}\n", encoding="utf-8")
        self._run = import_wandb().init(
            project=project,
            id=file.read_text(encoding="utf-8").strip(),
            resume="allow",
            name=folder.resolve().name,
            dir=str(folder),
            config=dict(options),
        )
        self._run.define_metric("*", step_metric="step")

    def add(self, table: str, index: int, step: int, values: Mapping[str, float]) -> None:
        """Send a row of a table, unless an earlier process did."""
        if index > self._run.summary.get(f"{table}/index", -1):
            named = {f"{table}/{column}": value for column, value in values.items()}
            self._run.log({"step": step, f"{table}/index": index, **named})

    def flush(self) -> None:
        """Nothing: the library sends rows by itself."""

    def close(self) -> None:
        self._run.finish()


def import_tensorboard() -> Any:
    """The module that writes TensorBoard's event files."""
    try:
        import tensorboardX
    except ImportError:
        raise InvalidInput("--tensorboard needs tensorboardX: pip install tensorboardX") from None
    return tensorboardX


def import_wandb() -> Any:
    """The library of Weights & Biases."""
    try:
        import wandb
    except ImportError:
        raise InvalidInput("--wandb needs wandb: pip install wandb") from None
    return wandb


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


def write_changes(path: Path, changes: Sequence[Change]) -> None:
    """Write the record of options that changed, if there are any; values are YAML."""
    if changes:
        with (
            atomic_path(path) as temporary,
            open(temporary, "w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Change._fields)
            for step, name, before, after in changes:
                writer.writerow([step, name, yaml_text.scalar(before), yaml_text.scalar(after)])


def read_changes(path: Path) -> list[dict[str, str]]:
    """The rows of a record of options that changed; none where there is no file."""
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


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
    with atomic_path(path) as temporary:
        file = open(temporary, "w", encoding="utf-8", newline="")  # noqa: SIM115  kept open
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])
        file.flush()
    return file
