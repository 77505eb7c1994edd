"""The status of fleets in training: within a process, between processes, and on a terminal."""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tsallax.deep.fleet import Fleet
from tsallax.paper.fleets.fleet_files import write_state
from tsallax.paper.fleets.jobs import Job
from tsallax.progress import LINE_SECONDS
from tsallax.wording import plural

WINDOW = 100
"""Training episodes whose mean return is displayed."""
MAX_ROWS = 20
"""Fleets up to which the table has a row for each."""


@dataclass(frozen=True)
class Status:
    """How far a fleet is: share of the training, steps of each agent, seconds, process id."""

    share: float
    steps: int
    seconds: float
    finished: int
    """Runs that have a row."""
    reached_threshold: int | None
    """Agents whose mean return of the last 100 episodes is at the threshold, if there is one."""
    best: float | None
    """The largest of these means; None before the first episode has ended."""
    worst: float | None
    process: int


def status_of(job: Job, fleet: Fleet, written: Collection[Any]) -> Status:
    """The status of a fleet; `written` are the keys of all rows."""
    recent = [float(np.mean(r.returns[-WINDOW:])) for r in fleet.records if r.returns]
    threshold = job.threshold
    return Status(
        share=fleet.share(job.goals.get("episodes"), job.goals["steps"]),
        steps=fleet.steps,
        seconds=fleet.seconds,
        finished=sum(job.key(run) in written for run in job.runs),
        reached_threshold=None if threshold is None else sum(mean >= threshold for mean in recent),
        best=max(recent, default=None),
        worst=min(recent, default=None),
        process=os.getpid(),
    )


def write_status(job: Job, status: Status, curves: Mapping[str, Any]) -> None:
    """Write the status of a job for other processes, with all that is needed to resume it."""
    write_state(job.files, {**job.description, **dataclasses.asdict(status), **curves})


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


Show = Callable[[Mapping[str, Status]], None]
"""Displays the statuses of jobs, by name; one without a status has not begun."""


@contextmanager
def status_display(jobs: Sequence[Job], show: bool | None = None) -> Iterator[Show]:
    """Yield a function that displays statuses; `show` None: a table on a terminal, else lines."""
    terminal = sys.stderr.isatty()
    if show is False:
        yield lambda statuses: None
    elif not terminal:
        written = time.monotonic()
        runs = sum(len(job.runs) for job in jobs)
        sys.stderr.write(f"{plural(runs, 'run')} to train\n")

        def write_lines(statuses: Mapping[str, Status]) -> None:
            nonlocal written
            if time.monotonic() - written > LINE_SECONDS:
                written = time.monotonic()
                for job in jobs:
                    status = statuses.get(job.name)
                    if status is not None and status.share < 1:
                        sys.stderr.write(" ".join(columns(job, status)) + "\n")

        yield write_lines
    else:
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as screen:
            screen.update(_grid(jobs, {}), refresh=True)
            yield lambda statuses: screen.update(_grid(jobs, statuses), refresh=True)


def columns(job: Job, status: Status | None) -> tuple[str, ...]:
    """A job in columns: what, share done, runs finished, speed, returns, time left."""
    parts = [job.title]
    if len(job.runs) > 1:
        parts.append(f"{len(job.runs)} agents")
    else:
        (run,) = job.runs
        name = job.agent_of(run)
        parts += [*([] if name in job.title else [name]), f"seed {run.seed}"]
    what = f"{', '.join(parts)}:"
    if status is None:
        return what, "waits", "", "", "", ""
    returns = ""
    if status.best is not None and status.worst is not None:
        spread = f"{status.worst:.4g} to " if len(job.runs) > 1 else ""
        returns = f"return {spread}{status.best:.4g}"
    if status.share >= 1:
        return what, "done", plural(status.finished, "run"), "", returns, _duration(status.seconds)
    speed = f"{1e3 * status.seconds / status.steps:.2f} ms a step" if status.steps else ""
    left = status.seconds / status.share - status.seconds if status.share > 0 else None
    eta = "" if left is None else f"ETA {_duration(left)}"
    reached = "" if job.threshold is None else f"{status.reached_threshold} at {job.threshold:g}"
    return what, f"{100 * status.share:.0f}%", reached, speed, returns, eta


def table_rows(
    jobs: Sequence[Job], statuses: Mapping[str, Status], max_rows: int = MAX_ROWS
) -> list[tuple[str, ...]]:
    """The jobs in rows; where there are too many, those in training, and how many others."""
    if len(jobs) <= max_rows:
        return [columns(job, statuses.get(job.name)) for job in jobs]
    begun = [(job, statuses[job.name]) for job in jobs if job.name in statuses]
    running = [(job, status) for job, status in begun if status.share < 1]
    done, waiting = len(begun) - len(running), len(jobs) - len(begun)
    count = f"{len(jobs)} fleets: {done} done, {len(running)} in training, {waiting} waiting"
    return [*(columns(job, status) for job, status in running[:max_rows]), (count,)]


def _grid(jobs: Sequence[Job], statuses: Mapping[str, Status]) -> Any:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for row in table_rows(jobs, statuses):
        grid.add_row(*row)
    return grid


def _duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _duration(3725), _duration(65)
    ('1:02:05', '1:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
