"""Finished runs of the suites, of our agents and of other libraries'.

The files are `*.suite.jsonl` (`tsallax.paper.fleets.row_files`). `benchmarks/sb3_suites.py` writes
them as well; this module therefore imports no JAX.
"""

from dataclasses import dataclass
from typing import Any

from tsallax.paper.fleets.row_files import SUITE_SUFFIX, Point, RowFormat, is_count, is_finite

Key = tuple[str, str, str, int | None, int]

MINIMA = {"seed": 0, "steps": 1, "episodes": 0, "evaluated": 2, "agents": 1}
"""The least values of the fields that are integers."""


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
    def table(self) -> str:
        """The table that shows it."""
        return self.suite

    @property
    def label(self) -> str:
        """The run in words."""
        return f"{self.task}, {self.agent}, seed {self.seed}"

    @property
    def steps_per_second(self) -> float:
        """Steps of all agents that learned in one program, for each second."""
        return self.agents * self.steps / self.seconds


def _invalid_field(data: dict[str, Any]) -> str | None:
    """The first field of a row with an impossible value, or None."""
    fine = {name: is_count(data[name], least) for name, least in MINIMA.items()}
    fine |= {
        name: isinstance(data[name], str) and data[name] for name in ("suite", "task", "agent")
    }
    fine["levels"] = data["levels"] is None or is_count(data["levels"], 2)
    fine["greedy"] = is_finite(data["greedy"])
    fine["greedy_error"] = is_finite(data["greedy_error"]) and data["greedy_error"] >= 0
    fine["seconds"] = is_finite(data["seconds"]) and data["seconds"] > 0
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
        if not (isinstance(point, list | tuple) and len(point) == 3 and is_count(point[0], 1)):
            return False
        if not (before < point[0] <= steps and is_finite(point[1]) and is_count(point[2], 1)):
            return False
        before = point[0]
    return True


def _converted(data: dict[str, Any]) -> dict[str, Any]:
    curves = {
        name: tuple((int(s), float(value), int(n)) for s, value, n in data[name])
        for name in ("evaluations", "training")
    }
    return {**data, **curves}


SUITE_ROWS = RowFormat(SuiteRow, SUITE_SUFFIX, "a table", _invalid_field, _converted)
