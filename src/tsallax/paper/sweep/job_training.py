"""Train one job: its fleet, from its checkpoint on, with a row for every run that is finished."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tsallax import checks, provenance
from tsallax.deep import options
from tsallax.deep.fleet import Diverged, Fleet, Member
from tsallax.errors import InvalidInput
from tsallax.paper.sweep.job_status import Status, status_of, write_status
from tsallax.paper.sweep.jobs import Job
from tsallax.paper.sweep.rows import EVERY, WINDOW, Key, Row, RowFolder, compact, first_episode_at
from tsallax.paper.sweep.specification import learner_config
from tsallax.paper.sweep.tasks import TASKS

OnStatus = Callable[[Status], None]
STATUS_SECONDS = 1.0
"""From one status of a fleet to the next."""
SAVING_SECONDS = 60.0
"""How long an interrupted sweep waits for fleets in other processes to be saved."""


def train_job(
    job: Job, rows: RowFolder | None = None, on_status: OnStatus = lambda status: None
) -> None:
    """Train a fleet from its checkpoint, or from the start; `rows` are those of its folder.

    `on_status` is called with the status about once a second.
    """
    use_device(job.device)
    for file in (job.rows_file, job.status_file):
        file.parent.mkdir(parents=True, exist_ok=True)
    rows = RowFolder(job.folder) if rows is None else rows
    with locked(job.rows_file, job.name):
        written = {row.key for row in rows.read()}
        if any(job.key(run) not in written for run in job.runs):
            _train(job, rows, written, on_status)
        job.checkpoint_file.unlink(missing_ok=True)


@contextmanager
def locked(rows_file: Path, name: str) -> Iterator[None]:
    """Refuse to train a fleet that another process is training."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with rows_file.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(
                f"another process trains {name}: let it finish, or stop it",
                source=rows_file.parent.parent,
            ) from None
        yield


def _train(job: Job, rows: RowFolder, written: set[Key], on_status: OnStatus) -> None:
    fleet = _load_fleet(job)
    saved = reported = time.monotonic()
    write_status(job, status_of(job, fleet, written))

    def after_piece(fleet: Fleet) -> None:
        nonlocal saved, reported
        _write_rows(job, fleet, rows, written)
        now = time.monotonic()
        if now - saved > job.save_seconds and fleet.learning:
            fleet.save(job.checkpoint_file)
            saved = time.monotonic()
        if now - reported > STATUS_SECONDS:
            status = status_of(job, fleet, written)
            write_status(job, status)
            reported = now
            on_status(status)

    _write_rows(job, fleet, rows, written)
    try:
        fleet.learn(episodes=job.episodes, steps=job.steps, callback=after_piece, progress=False)
    except KeyboardInterrupt:
        if fleet.whole:
            fleet.save(job.checkpoint_file)
            write_status(job, status_of(job, fleet, written))
        raise
    except Diverged as error:
        run = job.runs[error.member]
        raise InvalidInput(f"{run.variant.name}, seed {run.seed}: {error}") from None
    status = status_of(job, fleet, written)
    write_status(job, status)
    on_status(status)


def _load_fleet(job: Job) -> Fleet:
    """The fleet of a job, as its checkpoint has it or new."""
    task, checkpoint = TASKS[job.task], job.checkpoint_file
    members = tuple(Member(learner_config(task, r.variant, job.options), r.seed) for r in job.runs)
    levels = None if job.actions is None else task.levels(job.actions)
    for left in checkpoint.parent.glob(f".{checkpoint.name}.*.partial"):
        left.unlink(missing_ok=True)  # of a process that was killed
    if not checkpoint.is_file():
        return Fleet(task.env, members, actions=levels)
    try:
        fleet = Fleet.load(checkpoint)
    except InvalidInput as error:
        raise InvalidInput(f"{error}: remove it to train its runs from the start") from None
    if (fleet.members, fleet.actions) != (members, levels):
        raise InvalidInput("a fleet with other options: remove it", source=checkpoint)
    return fleet


def _write_rows(job: Job, fleet: Fleet, rows: RowFolder, written: set[Key]) -> None:
    """Add a row for every run that is finished and has none, from whatever process."""
    finished = [i for i, record in enumerate(fleet.records) if record.finished_at is not None]
    if any(job.key(job.runs[i]) not in written for i in finished):
        written |= {row.key for row in rows.read()}
    for i in finished:
        if job.key(job.runs[i]) not in written:
            rows.append(_row(job, fleet, i), job.rows_file)
            written.add(job.key(job.runs[i]))


def _row(job: Job, fleet: Fleet, i: int) -> Row:
    run, record, task = job.runs[i], fleet.records[i], TASKS[job.task]
    greedy, sampled = (fleet.evaluate(i, job.evaluated, deterministic=d) for d in (True, False))
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
        evaluated=job.evaluated,
        every=EVERY,
        returns=compact(record.returns),
        seconds=round(fleet.seconds, 1),
        agents=len(job.runs),
        config=options.to_mapping(fleet.members[i].config),
        provenance=provenance.of_row(),
    )


def use_device(name: str | None) -> None:
    """Compute on the CPU or the GPU; None leaves it to JAX."""
    if name is None:
        return
    check_device(name)
    import jax

    if name == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if jax.default_backend() != name:
        hint = "install jax[cuda13] on a machine with one" if name == "gpu" else "JAX uses another"
        raise InvalidInput(f"--device {name}: JAX finds no {name.upper()} here: {hint}")


def check_device(name: str | None) -> None:
    """Refuse a name that is no device on any machine."""
    if name is not None:
        checks.one_of("device", name, ("cpu", "gpu"))
