"""Train what a folder does not hold of the tables `classic` and `control`."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from tsallax import checks
from tsallax.deep.fleet import Fleet
from tsallax.envs.gymnasium.gymnasium_make import make
from tsallax.errors import InvalidInput
from tsallax.paper.fleets.fleet_device import check_counts, default_device, use_device
from tsallax.paper.fleets.processes import train_side_by_side
from tsallax.paper.suites.suite_jobs import SAVE_SECONDS, Request, SuiteJob, plan_suite
from tsallax.paper.suites.suite_training import DivergedRuns, train_suite_job
from tsallax.progress import LINE_SECONDS, bar

AT_ONCE = {"cpu": 1, "gpu": 64}
"""Agents of a fleet. On a CPU, where agents learn one by one, processes share the work better."""
THREADS = {"NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Variables by which each of several processes computes with one thread."""


def train_suites(
    requests: Sequence[Request],
    out: str | os.PathLike[str],
    *,
    device: str | None = None,
    at_once: int | None = None,
    processes: int = 1,
    workers: int | None = None,
    time_limit: float | None = None,
    save_seconds: float = SAVE_SECONDS,
    progress: bool | None = None,
) -> bool:
    """Train every run that the folder does not hold; False where the time limit came first.

    An environment that cannot be made is refused before any training. Runs that diverge are named
    when all others are finished.

    Args:
        requests: what to train.
        out: the folder; what was begun in it is resumed.
        device: "cpu" or "gpu"; default: what JAX finds.
        at_once: agents of a fleet; default: 64 on a GPU, 1 on a CPU.
        processes: fleets that are trained side by side, each in a process of its own.
        workers: processes of environments of a fleet; default: by the number of cores.
        time_limit: seconds after which training ends, with files from which it continues.
        save_seconds: from one checkpoint of a fleet to the next, at least.
        progress: show progress; default: a bar on a terminal, else a line each minute.
    """
    if processes > 1 and device != "gpu":  # before JAX starts its threads
        for name, value in THREADS.items():
            os.environ.setdefault(name, value)
    check_counts(at_once, processes)
    use_device(device)
    limit = None if time_limit is None else checks.number("time_limit", time_limit, above=0)
    deadline = None if limit is None else time.time() + limit
    folder = checks.output_folder(out)
    jobs = []
    for request in requests:
        jobs += plan_suite(
            request, folder, at_once=at_once or AT_ONCE[device or default_device()], device=device,
            workers=0 if processes > 1 else workers, save_seconds=save_seconds, deadline=deadline,
        )  # fmt: skip
    for env in dict.fromkeys(job.env for job in jobs):
        make(env).close()
    if processes > 1:
        train_side_by_side(jobs, processes, lambda: None, train_in_process)
        left = [job for request in requests for job in plan_suite(request, folder, at_once=1)]
        out_of_time = deadline is not None and time.time() >= deadline
        if left and not out_of_time and not any(job.files.checkpoint.exists() for job in left):
            raise InvalidInput("some runs diverged and have no rows: they are named above")
        return not left
    finished, diverged = True, []
    for job in jobs:
        if deadline is not None and time.time() >= deadline:
            finished = False
            break
        with _display(job, progress) as show:
            try:
                finished = train_suite_job(job, show) and finished
            except DivergedRuns as error:
                diverged.append(str(error))
    if diverged and finished:
        raise InvalidInput("; ".join(diverged))
    sys.stderr.writelines(f"{problem}\n" for problem in diverged)
    return finished


def train_in_process(job: SuiteJob, check: Callable[[], None]) -> None:
    """Train a job, unless its deadline has passed; `check` is called after each segment.

    Runs that diverge are named on stderr, and do not end the jobs of other processes.
    """
    if job.deadline is None or time.time() < job.deadline:
        try:
            train_suite_job(job, lambda fleet: check())
        except DivergedRuns as error:
            sys.stderr.write(f"{error}\n")


@contextmanager
def _display(job: SuiteJob, show: bool | None) -> Iterator[Callable[[Fleet], None]]:
    """Yield a function that displays the progress of a job's fleet."""
    shown = time.monotonic()
    with bar(job.task, show) as report:

        def display(fleet: Fleet) -> None:
            nonlocal shown
            text = status_line(job, fleet)
            report(fleet.steps / job.protocol.steps, text)
            lines = show is not False and not sys.stderr.isatty()
            if lines and time.monotonic() - shown > LINE_SECONDS:
                shown = time.monotonic()
                sys.stderr.write(f"{job.name}: {text}\n")
                sys.stderr.flush()

        yield display


def status_line(job: SuiteJob, fleet: Fleet) -> str:
    """Steps, agents, speed and the mean training return of the best and the worst agent."""
    recent = [float(np.mean(r.returns[-20:])) for r in fleet.records if r.returns]
    spread = f", returns {min(recent):.4g} to {max(recent):.4g}" if recent else ""
    speed = f", {1e3 * fleet.seconds / fleet.steps:.2f} ms a step" if fleet.steps else ""
    return f"step {fleet.steps:,} of {job.protocol.steps:,}, {len(job.runs)} agents{speed}{spread}"
