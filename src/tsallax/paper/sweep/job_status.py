"""The status of a fleet in training: an object within a process, a JSON file between processes."""

import dataclasses
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tsallax.deep.fleet import Fleet
from tsallax.paper.fleets.fleet_files import write_state
from tsallax.paper.sweep.jobs import Job
from tsallax.paper.sweep.rows import WINDOW, Key
from tsallax.paper.sweep.tasks import TASKS


@dataclass(frozen=True)
class Status:
    """How far a fleet is: share of the training, steps of each agent, seconds, process id."""

    share: float
    steps: int
    seconds: float
    finished: int
    """Runs that have a row."""
    reached_threshold: int
    """Agents whose mean return of the last 100 episodes is at the threshold."""
    best: float | None
    """The largest of these means; None before the first episode has ended."""
    process: int


def status_of(job: Job, fleet: Fleet, written: set[Key]) -> Status:
    """The status of a fleet; `written` are the keys of all rows."""
    recent = [float(np.mean(r.returns[-WINDOW:])) for r in fleet.records if r.returns]
    return Status(
        share=fleet.share(job.episodes, job.steps),
        steps=fleet.steps,
        seconds=fleet.seconds,
        finished=sum(job.key(run) in written for run in job.runs),
        reached_threshold=sum(mean >= TASKS[job.task].threshold for mean in recent),
        best=max(recent) if recent else None,
        process=os.getpid(),
    )


def write_status(job: Job, status: Status) -> None:
    """Write the status of a job for other processes, with all that is needed to resume it."""
    write_state(job.files, {**job.description, **dataclasses.asdict(status)})


def read_status(job: Job) -> Status | None:
    """The status that another process has written; None where there is none."""
    try:
        data: dict[str, Any] = json.loads(job.files.state.read_text(encoding="utf-8"))
        return Status(**{field.name: data[field.name] for field in dataclasses.fields(Status)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_statuses(jobs: Iterable[Job]) -> dict[str, Status]:
    """The statuses of those jobs that have one, by name."""
    found = {job.name: read_status(job) for job in jobs}
    return {name: status for name, status in found.items() if status is not None}
