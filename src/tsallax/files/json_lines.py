"""Files of JSON, one line for each record, that several processes append to.

A record is appended as a whole line, durably. A last line without its end, left by a crash, is
ignored when reading and removed before the next record is written.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tsallax.errors import InvalidInput


def append_line(path: Path, data: dict[str, Any]) -> None:
    """Append a record to a file: as a whole line or not at all.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.jsonl"
    >>> append_line(path, {"seed": 1})
    >>> [record for _, record in read_lines(path)]
    [{'seed': 1}]
    """
    text = json.dumps(data, allow_nan=False)
    with path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":  # left by a crash
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        file.write(text.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> list[tuple[str, Any]]:
    """The records of a file, each with its place, such as "rows.jsonl, line 3"."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise InvalidInput("not a file of rows: it is not text", source=path) from None
    del lines[-1]  # after the last end of line: empty, or cut off by a crash
    found = []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            found.append((where, json.loads(line)))
        except (ValueError, RecursionError):
            raise InvalidInput("not JSON", source=where) from None
    return found
