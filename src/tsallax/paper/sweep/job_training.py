"""Train one job: its fleet, from its checkpoint on, with a row for every run that is finished."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from tsallax import provenance
from tsallax.deep import options
from tsallax.deep.fleet import Diverged, Fleet, Member
from tsallax.errors import InvalidInput
from tsallax.paper.fleets.fleet_device import use_device
from tsallax.paper.fleets.fleet_files import load_fleet, locked
from tsallax.paper.sweep.job_status import Status, status_of, write_status
from tsallax.paper.sweep.jobs import Job
from tsallax.paper.sweep.rows import EVERY, WINDOW, Key, Row, RowFolder, compact, first_episode_at
from tsallax.paper.sweep.specification import learner_config

OnStatus = Callable[[Status], None]
STATUS_SECONDS = 1.0
"""From one status of a fleet to the next."""


def train_job(
    job: Job, rows: RowFolder | None = None, on_status: OnStatus = lambda status: None
) -> None:
    """Train a fleet from its checkpoint, or from the start; `rows` are those of its folder.

    `on_status` is called with the status about once a second.
    """
    use_device(job.device)
    rows = RowFolder(job.folder) if rows is None else rows
    with locked(job.files):
        written = {row.key for row in rows.read()}
        if any(job.key(run) not in written for run in job.runs):
            _train(job, rows, written, on_status)
        job.files.checkpoint.unlink(missing_ok=True)


def train_in_process(job: Job, check: Callable[[], None]) -> None:
    """Train a job in a process of its own; `check` is called about once a second."""

    def on_status(status: Status) -> None:
        check()

    train_job(job, on_status=on_status)


def _train(job: Job, rows: RowFolder, written: set[Key], on_status: OnStatus) -> None:
    fleet = _load_fleet(job)
    limits: dict[str, Any] = {"episodes": job.sweep.episodes, "steps": job.sweep.steps}
    saved = reported = time.monotonic()
    write_status(job, status_of(job, fleet, written))

    def after_piece(fleet: Fleet) -> None:
        nonlocal saved, reported
        _write_rows(job, fleet, rows, written)
        now = time.monotonic()
        if now - saved > job.save_seconds and fleet.learning:
            fleet.save(job.files.checkpoint)
            saved = time.monotonic()
        if now - reported > STATUS_SECONDS:
            status = status_of(job, fleet, written)
            write_status(job, status)
            reported = now
            on_status(status)

    _write_rows(job, fleet, rows, written)
    try:
        fleet.learn(**limits, callback=after_piece, progress=False)
    except KeyboardInterrupt:
        if fleet.whole:
            fleet.save(job.files.checkpoint)
            write_status(job, status_of(job, fleet, written))
        raise
    except Diverged as error:
        run = job.runs[error.member]
        raise InvalidInput(f"{run.variant.name}, seed {run.seed}: {error}") from None
    status = status_of(job, fleet, written)
    write_status(job, status)
    on_status(status)


def _load_fleet(job: Job) -> Fleet:
    task, given = job.sweep.task, job.sweep.options
    members = [Member(learner_config(task, r.variant, given), r.seed) for r in job.runs]
    levels = None if job.actions is None else task.levels(job.actions)
    return load_fleet(job.files, task.env, members, levels)


def _write_rows(job: Job, fleet: Fleet, rows: RowFolder, written: set[Key]) -> None:
    """Add a row for every run that is finished and has none, from whatever process."""
    finished = [i for i, record in enumerate(fleet.records) if record.finished_at is not None]
    if any(job.key(job.runs[i]) not in written for i in finished):
        written |= {row.key for row in rows.read()}
    for i in finished:
        if job.key(job.runs[i]) not in written:
            rows.append(_row(job, fleet, i), job.files.rows)
            written.add(job.key(job.runs[i]))


def _row(job: Job, fleet: Fleet, i: int) -> Row:
    run, record, task = job.runs[i], fleet.records[i], job.sweep.task
    episodes = job.sweep.evaluated
    greedy, sampled = (fleet.evaluate(i, episodes, deterministic=d) for d in (True, False))
    assert record.finished_at is not None
    return Row(
        task=task.name,
        algorithm=run.variant.name,
        **asdict(run.variant),
        actions=run.actions,
        seed=run.seed,
        episodes=len(record.returns),
        steps=record.finished_at,
        threshold=task.threshold,
        reached=first_episode_at(record.returns, task.threshold),
        final=float(np.mean(record.returns[-WINDOW:] or [record.running])),
        greedy=greedy.mean,
        greedy_error=greedy.standard_error,
        sampled=sampled.mean,
        sampled_error=sampled.standard_error,
        evaluated=episodes,
        every=EVERY,
        returns=compact(record.returns),
        seconds=round(fleet.seconds, 1),
        agents=len(job.runs),
        config=options.to_mapping(fleet.members[i].config),
        provenance=provenance.of_row(),
    )
