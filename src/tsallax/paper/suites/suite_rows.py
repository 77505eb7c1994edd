"""Finished runs of the tables `classic` and `control`, of our agents and of peers, one line each.

The files are `*.suite.jsonl`. A peer's script writes them as well (`benchmarks/sb3_classic.py`);
this module therefore imports no JAX.
"""

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.files.json_lines import append_line, read_lines

FORMAT = 1
SUITE_SUFFIX = ".suite.jsonl"
"""Of the files of rows, which distinguishes them from the rows of the paper's sweeps."""
Key = tuple[str, str, str, int | None, int]
Point = tuple[int, float, int]
"""Steps made, mean return, and the number of episodes that it is the mean of."""

MINIMA = {"seed": 0, "steps": 1, "episodes": 0, "evaluated": 2, "agents": 1}
"""Of fields that are integers."""
MAX_RETURN = 1e300


@dataclass(frozen=True)
class SuiteRow:
    """One agent's run.

    Attributes:
        suite: the name of the table.
        task: the name of the task in it.
        agent: the name of the algorithm, such as "sparse-auto" or "sb3-dqn".
        levels: of each dimension of an action; None for discrete actions.
        steps, episodes: of the training.
        greedy, greedy_error: mean return of the evaluation episodes after training, without
            exploration, and its standard error over these episodes.
        evaluated: the number of these episodes.
        evaluations: greedy returns on the way and at the end.
        training: mean returns of the training episodes that ended since the entry before.
        seconds, agents: the time of training, without evaluations, together with the agents that
            learned beside it in one program, and their number with it.
        config: every option of the learner.
        provenance: versions, hardware and date.
    """

    suite: str
    task: str
    agent: str
    levels: int | None
    seed: int
    steps: int
    episodes: int
    greedy: float
    greedy_error: float
    evaluated: int
    evaluations: tuple[Point, ...]
    training: tuple[Point, ...]
    seconds: float
    agents: int
    config: dict[str, Any]
    provenance: dict[str, str]

    @property
    def key(self) -> Key:
        """What distinguishes the run from all others of a table."""
        return self.suite, self.task, self.agent, self.levels, self.seed

    @property
    def steps_per_second(self) -> float:
        """Steps of all agents that learned in one program, for each second."""
        return self.agents * self.steps / self.seconds


def append_suite_row(row: SuiteRow, path: Path) -> None:
    """Append a row to a file, durably: as a whole line or not at all."""
    data = {"format": FORMAT, **asdict(row)}
    wrong = _invalid_field({name: value for name, value in data.items() if name != "format"})
    if wrong is not None:
        raise InvalidInput(f"{wrong} of a row cannot be {data[wrong]!r:.40}", source=path)
    append_line(path, data)


def read_suite_rows(*folders: str | os.PathLike[str]) -> list[SuiteRow]:
    """All rows of some folders and those in them, each once; two of one run are refused."""
    paths = [path for folder in folders for path in sorted(Path(folder).rglob(f"*{SUITE_SUFFIX}"))]
    found: dict[Key, tuple[SuiteRow, str]] = {}
    for where, data in _lines(dict.fromkeys(path.resolve() for path in paths)):
        row = parse_suite_row(data, where)
        before, other = found.get(row.key, (row, where))
        if before != row:
            name = f"{row.task}, {row.agent}, seed {row.seed}"
            raise InvalidInput(f"{where} and {other} hold different runs of {name}: remove one")
        found.setdefault(row.key, (row, where))
    return [row for row, _ in found.values()]


def _lines(paths: Iterable[Path]) -> Iterable[tuple[str, Any]]:
    for path in paths:
        yield from read_lines(path)


def parse_suite_row(data: Any, where: str) -> SuiteRow:
    """The row in a record; anything else is refused, with its place."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InvalidInput("not a row of a table of this version", source=where)
    given = {name: value for name, value in data.items() if name != "format"}
    names = {field.name for field in fields(SuiteRow)}
    if set(given) != names:
        wrong = ", ".join(sorted(names ^ set(given)))
        raise InvalidInput(f"not a row of a table: {wrong} missing or unknown", source=where)
    field = _invalid_field(given)
    if field is not None:
        raise InvalidInput(f"{field} cannot be {given[field]!r:.40}", source=where)
    for name in ("evaluations", "training"):
        given[name] = tuple((int(s), float(value), int(n)) for s, value, n in given[name])
    return SuiteRow(**given)


def _invalid_field(data: dict[str, Any]) -> str | None:
    """The first field of a row with an impossible value, or None."""
    fine = {name: _is_count(data[name], least) for name, least in MINIMA.items()}
    fine |= {
        name: isinstance(data[name], str) and data[name] for name in ("suite", "task", "agent")
    }
    fine["levels"] = data["levels"] is None or _is_count(data["levels"], 2)
    fine["greedy"] = _is_finite(data["greedy"])
    fine["greedy_error"] = _is_finite(data["greedy_error"]) and data["greedy_error"] >= 0
    fine["seconds"] = _is_finite(data["seconds"]) and data["seconds"] > 0
    fine |= {name: isinstance(data[name], dict) for name in ("config", "provenance")}
    for name in ("evaluations", "training"):
        fine[name] = _is_curve(data[name], data["steps"] if fine["steps"] else 0)
    return next((name for name, good in fine.items() if not good), None)


def _is_curve(points: Any, steps: int) -> bool:
    """Whether it is a list of points with rising steps."""
    if not isinstance(points, list | tuple):
        return False
    before = 0
    for point in points:
        if not (isinstance(point, list | tuple) and len(point) == 3 and _is_count(point[0], 1)):
            return False
        if not (before < point[0] <= steps and _is_finite(point[1]) and _is_count(point[2], 1)):
            return False
        before = point[0]
    return True


def _is_count(value: Any, least: int) -> bool:
    return checks.is_integer(value) and value >= least


def _is_finite(value: Any) -> bool:
    return checks.is_number(value) and abs(value) < MAX_RETURN
