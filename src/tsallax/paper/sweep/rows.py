"""The runs of a sweep as rows of JSON, one line each: `*.jsonl` files in a folder.

A row is appended when its run is finished. What a crash cut off in the middle of a line is not a
row; everything else that is not one is refused.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tsallax.deep.options import with_current_names
from tsallax.errors import InvalidInput
from tsallax.paper.sweep.tasks import EXPLORE, TASKS, UPDATE, Variant

FORMAT = 1
EVERY = 20
WINDOW = 100
"""Episodes over which a training return is averaged."""

LEAST = {"seed": 0, "episodes": 1, "steps": 1, "evaluated": 1, "every": 1, "agents": 1}
"""Of fields that are whole numbers."""

Key = tuple[str, str, int | None, int]


@dataclass(frozen=True)
class Row:
    """One agent's run.

    Attributes:
        task: "reacher" or "pendulum".
        algorithm: the paper's name, such as "Sparse+SparseBellman-0.1" or "DDPG".
        explore, update, alpha: what the name says; None for DDPG.
        actions: the number of actions in all; None for DDPG.
        seed: of the run.
        episodes, steps: how many it had.
        threshold: the return that counts as learned.
        reached: the first episode whose mean with the 99 before it is at the threshold, from one.
        final: the mean return of the last 100 training episodes.
        greedy, greedy_error: mean return of evaluation episodes without exploration, and the
            standard error over these episodes, which says nothing about other runs.
        sampled, sampled_error: likewise, with actions drawn from the exploring policy.
        evaluated: the number of evaluation episodes of each kind.
        every: how many training episodes an entry of `returns` averages.
        returns: mean returns of training episodes, `every` at a time; the last may be of fewer.
        seconds: the time the agents that learned beside it took with it.
        agents: how many those were, itself included.
        config: every option of the learner.
        provenance: versions, hardware and date.
    """

    task: str
    algorithm: str
    explore: str | None
    update: str | None
    alpha: float | None
    actions: int | None
    seed: int
    episodes: int
    steps: int
    threshold: float
    reached: int | None
    final: float
    greedy: float
    greedy_error: float
    sampled: float
    sampled_error: float
    evaluated: int
    every: int
    returns: tuple[float, ...]
    seconds: float
    agents: int
    config: dict[str, Any]
    provenance: dict[str, str]

    @property
    def key(self) -> Key:
        """What names a run: no two rows of a sweep share it."""
        return self.task, self.algorithm, self.actions, self.seed


def reached(returns: list[float], threshold: float, window: int = WINDOW) -> int | None:
    """The first episode, from one, whose mean with those before it in the window is there.

    >>> reached([0.0, 4.0, 4.0, 9.0], threshold=4.0, window=2)
    3
    """
    total = np.concatenate([[0.0], np.cumsum(np.asarray(returns, np.float64))])
    means = (total[window:] - total[:-window]) / window
    there = np.flatnonzero(means >= threshold)
    return int(there[0]) + window if len(there) else None


def compact(returns: list[float], every: int = EVERY) -> tuple[float, ...]:
    """Means of `every` returns at a time, to five digits.

    >>> compact([1.0, 2.0, 4.0], every=2)
    (1.5, 4.0)
    """
    parts = (returns[i : i + every] for i in range(0, len(returns), every))
    return tuple(float(f"{sum(part) / len(part):.5g}") for part in parts)


def append(row: Row, path: Path) -> None:
    """Add a row to a file; it is there when this returns, or not at all."""
    text = json.dumps({"format": FORMAT, **dataclasses.asdict(row)}, allow_nan=False)
    with path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":  # what a crash has left
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        file.write(text.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(*folders: str | os.PathLike[str]) -> list[Row]:
    """All rows of some folders and the folders in them, each run once, in a fixed order."""
    found: dict[Key, tuple[Row, Path]] = {}
    for path in (path for folder in folders for path in sorted(Path(folder).rglob("*.jsonl"))):
        for row in read_file(path):
            before = found.setdefault(row.key, (row, path))
            if not _alike(before[0], row):
                raise InvalidInput(
                    f"{path} and {before[1]} hold different runs of {row.algorithm}, "
                    f"{row.actions} actions, seed {row.seed}: remove one"
                )
    return [row for row, _ in found.values()]


def _alike(one: Row, other: Row) -> bool:
    """Whether two rows tell the same run, made at different times perhaps."""
    return (
        dataclasses.replace(
            other, seconds=one.seconds, agents=one.agents, provenance=one.provenance
        )
        == one
    )


def read_file(path: Path) -> list[Row]:
    """The rows of one file."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path}: not a file of rows: it is not text") from None
    rows = []
    for number, line in enumerate(lines, 1):
        if number == len(lines):  # after the last end of line: empty, or cut off by a crash
            break
        rows.append(_parse(line, f"{path}, line {number}"))
    return rows


def _parse(line: str, where: str) -> Row:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{where}: not JSON") from None
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise InvalidInput(f"{where}: not a row of a sweep of this version")
    names = {field.name for field in dataclasses.fields(Row)}
    if set(data) != names:
        wrong = sorted(names ^ set(data))
        raise InvalidInput(f"{where}: not a row of a sweep: {', '.join(wrong)} missing or unknown")
    field = _wrong(data)
    if field is not None:
        raise InvalidInput(f"{where}: {field} is {data[field]!r:.40}, which cannot be")
    data["returns"] = tuple(float(x) for x in data["returns"])
    data["config"] = with_current_names(data["config"])
    return Row(**data)


def _wrong(data: dict[str, Any]) -> str | None:
    """The first field of a row that cannot be so, or None."""
    for name in ("final", "greedy", "sampled", "threshold", "seconds"):
        if not _is_number(data[name]):
            return name
    for name in ("greedy_error", "sampled_error"):
        if not (_is_number(data[name]) and data[name] >= 0):
            return name
    for name, least in LEAST.items():
        if not (_is_whole(data[name]) and data[name] >= least):
            return name
    if not (data["reached"] is None or _is_whole(data["reached"])):
        return "reached"
    if data["reached"] is not None and not 1 <= data["reached"] <= data["episodes"]:
        return "reached"
    for name in ("config", "provenance"):
        if not isinstance(data[name], dict):
            return name
    if data["task"] not in TASKS:
        return "task"
    if not (data["actions"] is None or (_is_whole(data["actions"]) and data["actions"] >= 2)):
        return "actions"
    known = (data["explore"] in EXPLORE and data["update"] in UPDATE) and _is_number(data["alpha"])
    none = data["explore"] is data["update"] is data["alpha"] is data["actions"] is None
    if not (known or none):
        return "explore"
    if Variant(data["explore"], data["update"], data["alpha"]).name != data["algorithm"]:
        return "algorithm"
    returns = data["returns"]
    if not (isinstance(returns, list) and all(map(_is_number, returns))):
        return "returns"
    return None if len(returns) == -(-data["episodes"] // data["every"]) else "returns"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and abs(value) < 1e300
