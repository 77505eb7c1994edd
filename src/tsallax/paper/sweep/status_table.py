"""How far the fleets of a sweep are: a table that is drawn again and again, or lines in a log."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tsallax.paper.sweep.jobs import Job
from tsallax.paper.sweep.tasks import TASKS

Draw = Callable[[], None]
LINES = 60.0
"""Seconds from one line to the next, where there is no terminal."""
MOST = 20
"""Fleets that a table has a row for, each."""


@contextmanager
def live(jobs: Sequence[Job], show: bool | None = None) -> Iterator[Draw]:
    """Yield a function that shows the jobs as they are; `show` None: a table on a terminal."""
    terminal = sys.stderr.isatty()
    if show is False:
        yield lambda: None
    elif not terminal:
        spoken = time.monotonic()
        runs = sum(len(job.runs) for job in jobs)
        sys.stderr.write(f"{runs} run{'s' * (runs != 1)} to train\n")

        def line() -> None:
            nonlocal spoken
            if time.monotonic() - spoken > LINES:
                spoken = time.monotonic()
                for job in jobs:
                    about = status(job)
                    if about is not None and about["share"] < 1:
                        sys.stderr.write(" ".join(words(job, about)) + "\n")

        yield line
    else:
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as screen:

            def draw() -> None:
                screen.update(_table(jobs), refresh=True)

            draw()
            yield draw


def status(job: Job) -> dict[str, Any] | None:
    """What a job says of itself; None before it has begun."""
    try:
        about: dict[str, Any] = json.loads(job.status.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return about


def words(job: Job, about: dict[str, Any] | None) -> tuple[str, ...]:
    """A job in columns: what, share done, runs finished, speed, best return, time left."""
    parts = [TASKS[job.task].title, "DDPG" if job.actions is None else f"{job.actions:,} actions"]
    if len(job.runs) > 1:
        parts.append(f"{len(job.runs)} agents")
    else:
        parts += [job.runs[0].variant.name] * (job.actions is not None)
        parts.append(f"seed {job.runs[0].seed}")
    what = f"{', '.join(parts)}:"
    if about is None:
        return what, "waits", "", "", "", ""
    share, seconds = float(about["share"]), float(about["seconds"])
    best = "" if about["best"] is None else f"best {about['best']:.4g}"
    if share >= 1:
        count = f"{about['finished']} run{'s' * (about['finished'] != 1)}"
        return what, "done", count, "", best, _duration(seconds)
    speed = f"{1e3 * seconds / about['steps']:.2f} ms a step" if about["steps"] else ""
    left = f"ETA {_duration(seconds / share - seconds)}" if share > 0 else ""
    there = f"{about['there']} at {TASKS[job.task].threshold:g}"
    return what, f"{100 * share:.0f}%", there, speed, best, left


def _table(jobs: Sequence[Job]) -> Any:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for row in summary([(job, status(job)) for job in jobs]):
        grid.add_row(*row)
    return grid


def summary(
    jobs: Sequence[tuple[Job, dict[str, Any] | None]], most: int = MOST
) -> list[tuple[str, ...]]:
    """The jobs in rows; where there are too many, those under way, and how many others."""
    if len(jobs) <= most:
        return [words(job, about) for job, about in jobs]
    begun = [(job, about) for job, about in jobs if about is not None]
    running = [(job, about) for job, about in begun if about["share"] < 1]
    done, waiting = len(begun) - len(running), len(jobs) - len(begun)
    count = f"{len(jobs)} fleets: {done} done, {len(running)} under way, {waiting} wait"
    return [*(words(job, about) for job, about in running[:most]), (count,)]


def _duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _duration(3725), _duration(65)
    ('1:02:05', '1:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
