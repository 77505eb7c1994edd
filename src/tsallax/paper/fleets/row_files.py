"""Rows of finished runs, one line of JSON each, as sweeps and suites write and read them.

A row is appended when its run is finished. A last line without its end, left by a crash, is
ignored (`tsallax.files.json_lines`); any other line that is not a row is refused. No JAX is
imported here, since scripts that train agents of other libraries write rows, too.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.files.json_lines import append_line, read_lines

R = TypeVar("R", bound=Any)
Point = tuple[int, float, int]
"""A point of a curve in a row: steps made, mean return, and the number of episodes averaged."""
FORMAT = 1
SUITE_SUFFIX = ".suite.jsonl"
"""The ending of the files of suites; those of the paper's sweeps are all other `*.jsonl`."""
MAY_DIFFER = ("seconds", "agents", "provenance")
"""Fields of time and place, in which two rows of one run may differ."""
MAX_NUMBER = 1e300


@dataclass(frozen=True)
class RowFormat(Generic[R]):
    """A kind of rows: a frozen dataclass with a `key`, unique for each run, and a `label`."""

    row: type[R]
    suffix: str
    """The ending of the files of such rows."""
    what: str
    """The kind of table that such rows belong to, for error messages."""
    invalid_field: Callable[[dict[str, Any]], str | None]
    """The first field with an impossible value, or None."""
    converted: Callable[[dict[str, Any]], dict[str, Any]]
    """The fields in the types of the dataclass, from those of JSON."""

    def append(self, row: R, path: Path) -> None:
        """Append a row to a file, durably: as a whole line or not at all."""
        data = asdict(row)
        wrong = self.invalid_field(data)
        if wrong is not None:
            raise InvalidInput(f"{wrong} of a row cannot be {data[wrong]!r:.40}", source=path)
        append_line(path, {"format": FORMAT, **data})

    def read(self, *folders: str | os.PathLike[str]) -> list[R]:
        """All rows of some folders and the folders in them, each run once, in a fixed order."""
        paths = {path.resolve(): path for folder in folders for path in self.files(folder)}
        return self.merged((path, self.read_file(path)) for path in paths.values())

    def files(self, folder: str | os.PathLike[str]) -> list[Path]:
        """The files of such rows in a folder and the folders in it."""
        of_suites = self.suffix == SUITE_SUFFIX
        found = Path(folder).rglob(f"*{self.suffix}")
        return sorted(path for path in found if path.name.endswith(SUITE_SUFFIX) == of_suites)

    def read_file(self, path: Path) -> list[R]:
        """The rows of one file."""
        return [self.parsed(data, where) for where, data in read_lines(path)]

    def parsed(self, data: Any, where: str) -> R:
        """The row in a record; anything else is refused, with its place."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise InvalidInput(f"not a row of {self.what} of this version", source=where)
        given = {name: value for name, value in data.items() if name != "format"}
        names = {field.name for field in fields(self.row)}
        if set(given) != names:
            wrong = ", ".join(sorted(names ^ set(given)))
            problem = f"not a row of {self.what}: {wrong} missing or unknown"
            raise InvalidInput(problem, source=where)
        field = self.invalid_field(given)
        if field is not None:
            raise InvalidInput(f"{field} cannot be {given[field]!r:.40}", source=where)
        row: R = self.row(**self.converted(given))
        return row

    def merged(self, files: Iterable[tuple[Path, list[R]]]) -> list[R]:
        """The rows of all files, each run once; two different rows of a run are refused."""
        found: dict[Any, tuple[R, Path]] = {}
        for path, rows in files:
            for row in rows:
                before, other = found.setdefault(row.key, (row, path))
                if replace(before, **{name: getattr(row, name) for name in MAY_DIFFER}) != row:
                    problem = f"hold different runs of {row.label}: remove one"
                    raise InvalidInput(f"{path} and {other} {problem}")
        return [row for row, _ in found.values()]


class RowFolder(Generic[R]):
    """The rows of a format in a folder, of which this process parses every line once.

    A file is read again only where its size or time of modification shows that another process
    has written to it.
    """

    def __init__(self, folder: str | os.PathLike[str], form: RowFormat[R]) -> None:
        self.folder, self._format = Path(folder), form
        self._files: dict[Path, tuple[tuple[int, int], list[R]]] = {}

    def read(self) -> list[R]:
        """All rows, as of `RowFormat.read`."""
        found = {}
        for path in self._format.files(self.folder):
            known, stamp = self._files.get(path), _stamp(path)
            same = known if known and known[0] == stamp else None
            found[path] = same or (stamp, self._format.read_file(path))
        self._files = found
        return self._format.merged((path, rows) for path, (_, rows) in found.items())

    def append(self, row: R, path: Path) -> None:
        """Append a row to one of its files, as `RowFormat.append` does."""
        known = self._files.pop(path, None)
        unchanged = known is not None and known[0] == _stamp(path)
        self._format.append(row, path)
        if known is not None and unchanged:
            self._files[path] = _stamp(path), [*known[1], row]


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def is_count(value: Any, least: int) -> bool:
    """Whether it is an integer of at least `least`."""
    return checks.is_integer(value) and bool(value >= least)


def is_finite(value: Any) -> bool:
    """Whether it is a number of a size that float64 can compute with."""
    return checks.is_number(value) and bool(abs(value) < MAX_NUMBER)
