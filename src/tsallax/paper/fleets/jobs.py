"""Jobs: the fleets that are still to be trained for a table.

What has a row is not trained again, and a fleet that was begun continues as it is. `Job` is what
`tsallax.paper.fleets` needs to know of a table; the paper's sweeps and the suites each have a
subclass of it.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

from tsallax.deep.evaluation_episodes import Episodes
from tsallax.deep.fleet import Fleet
from tsallax.deep.fleet_members import Member
from tsallax.paper.fleets.fleet_curves import EvaluationProtocol, FleetCurves
from tsallax.paper.fleets.fleet_files import (
    FleetFiles,
    begun_fleets,
    files_of_fleet,
    require_equal,
)
from tsallax.paper.fleets.row_files import RowFormat

J = TypeVar("J", bound="Job")
SAVE_SECONDS = 120.0
"""The least time from one checkpoint of a fleet to the next."""


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """A fleet to train: runs of one task with one number of actions, which have a seed each."""

    format: ClassVar[RowFormat[Any]]
    """The format of the rows."""
    backend: ClassVar[str] = "auto"
    """The backend of the environment, as `Fleet` takes it."""
    samples: ClassVar[bool] = False
    """Whether agents are also evaluated with actions drawn from the exploring policy."""

    env: str
    """The id of the environment."""
    levels: int | None
    """The levels of each dimension of an action; None where there is no grid of actions."""
    runs: tuple[Any, ...]
    folder: str
    device: str | None = None
    workers: int | None = None
    """Processes of Gymnasium environments; None: by the number of cores."""
    save_seconds: float = SAVE_SECONDS
    deadline: float | None = None
    """The time, in seconds since the epoch, by which training is to have ended."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A name that distinguishes it from other jobs, the same for the same runs."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Task and actions in words."""

    @property
    @abstractmethod
    def goals(self) -> Mapping[str, int]:
        """The `steps`, and perhaps `episodes`, after which an agent is finished."""

    @property
    @abstractmethod
    def final_episodes(self) -> int:
        """Evaluation episodes after training."""

    @property
    @abstractmethod
    def description(self) -> dict[str, Any]:
        """Its runs, options and protocol as plain data."""

    @abstractmethod
    def with_description(self, state: Mapping[str, Any]) -> Self:
        """The job of a `description`, otherwise as this one."""

    @abstractmethod
    def protocol_of(self, run: Any) -> dict[str, Any]:
        """The options and limits of a run, by which runs of two protocols are told apart."""

    @abstractmethod
    def key(self, run: Any) -> Any:
        """The key of the run's row."""

    @abstractmethod
    def agent_of(self, run: Any) -> str:
        """The name of the run's algorithm."""

    @abstractmethod
    def member_of(self, run: Any) -> Member:
        """The run as a member of a fleet."""

    @abstractmethod
    def row(self, fleet: Fleet, i: int, played: Sequence[Episodes], curves: FleetCurves) -> Any:
        """The row of a finished run; `played` are its episodes, greedy and perhaps sampled."""

    @property
    def curve_protocol(self) -> EvaluationProtocol | None:
        """The times of the points of curves, for rows that have curves."""
        return None

    @property
    def threshold(self) -> float | None:
        """The mean training return that counts as learned, if there is one."""
        return None

    @cached_property
    def files(self) -> FleetFiles:
        """Its files."""
        return files_of_fleet(self.folder, self.name, self.format.suffix)


def pending_jobs(full_job: J, done: Collection[Any], at_once: int) -> list[J]:
    """The jobs left of a whole task: fleets begun before as they were, then runs without a fleet.

    `done` are the keys of the rows. A new fleet has at most `at_once` agents. A fleet that was
    begun by another protocol is refused.
    """
    pending = {full_job.key(run): run for run in full_job.runs if full_job.key(run) not in done}
    jobs = []
    for job in begun_fleets(
        full_job.folder, full_job.name.rpartition("-")[0], full_job.with_description
    ):
        if all(job.key(run) in done for run in job.runs):  # left by a crash
            job.files.checkpoint.unlink(missing_ok=True)
        again = [run for run in job.runs if job.key(run) in pending]
        for run in again:
            asked = pending.pop(job.key(run))
            require_equal(full_job.folder, job.protocol_of(run), full_job.protocol_of(asked))
        if again:
            jobs.append(dataclasses.replace(full_job, runs=job.runs))
    left = list(pending.values())
    parts = [tuple(left[i : i + at_once]) for i in range(0, len(left), at_once)]
    return [*jobs, *(dataclasses.replace(full_job, runs=runs) for runs in parts)]
