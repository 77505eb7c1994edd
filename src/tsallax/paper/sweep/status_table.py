"""Display the statuses of a sweep's fleets: a live table on a terminal, or lines in a log."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tsallax.paper.sweep.job_status import Status
from tsallax.paper.sweep.jobs import Job
from tsallax.paper.sweep.tasks import TASKS
from tsallax.wording import plural

Show = Callable[[Mapping[str, Status]], None]
"""Displays the statuses of jobs, by name; one without a status has not begun."""
LINE_SECONDS = 60.0
"""From one line to the next, where there is no terminal."""
MAX_ROWS = 20
"""Fleets up to which the table has a row for each."""


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
    """A job in columns: what, share done, runs finished, speed, best return, time left."""
    parts = [TASKS[job.task].title, "DDPG" if job.actions is None else f"{job.actions:,} actions"]
    if len(job.runs) > 1:
        parts.append(f"{len(job.runs)} agents")
    else:
        parts += [job.runs[0].variant.name] * (job.actions is not None)
        parts.append(f"seed {job.runs[0].seed}")
    what = f"{', '.join(parts)}:"
    if status is None:
        return what, "waits", "", "", "", ""
    best = "" if status.best is None else f"best {status.best:.4g}"
    if status.share >= 1:
        return what, "done", plural(status.finished, "run"), "", best, _duration(status.seconds)
    speed = f"{1e3 * status.seconds / status.steps:.2f} ms a step" if status.steps else ""
    left = status.seconds / status.share - status.seconds if status.share > 0 else None
    eta = "" if left is None else f"ETA {_duration(left)}"
    reached = f"{status.reached_threshold} at {TASKS[job.task].threshold:g}"
    return what, f"{100 * status.share:.0f}%", reached, speed, best, eta


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
