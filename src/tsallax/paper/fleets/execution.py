"""Train the runs of tables that a folder does not hold: here, in several processes or on Ray."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tsallax import checks
from tsallax.envs.gymnasium.gymnasium_make import make
from tsallax.errors import InvalidInput
from tsallax.paper.fleets.fleet_device import (
    check_device,
    default_device,
    use_device,
)
from tsallax.paper.fleets.job_status import Show, Status, read_statuses, status_display
from tsallax.paper.fleets.job_training import DivergedRuns, train_in_process, train_job
from tsallax.paper.fleets.jobs import SAVE_SECONDS, Job
from tsallax.paper.fleets.processes import train_side_by_side
from tsallax.paper.fleets.ray_workers import require_ray, train_on_ray
from tsallax.paper.fleets.row_files import RowFolder

AT_ONCE = {"cpu": 1, "gpu": 81}
"""Agents of a fleet. A CPU trains them one after another: one finished run is better than two
half-finished ones, and processes share the work better."""
THREADS = {"NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Variables by which each of several processes computes with one thread."""

Plan = Callable[..., Sequence[Job]]
"""Gives the jobs of a request that have no rows: `plan_sweep` or `plan_suite`."""


def train_missing(
    requests: Sequence[Any],
    plan: Plan,
    rows: RowFolder[Any],
    *,
    device: str | None = None,
    ray: str | None = None,
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
        plan: cuts a request into jobs.
        rows: those of the folder; what was begun in it is resumed.
        device: "cpu" or "gpu"; default: what JAX finds.
        ray: the address of a Ray cluster, "auto" for the one of this machine, "local" for a new
            one; its workers must see the same folder. Default: train here.
        at_once: agents of a fleet; default: 81 on a GPU, 1 on a CPU.
        processes: fleets that are trained side by side, each in a process of its own.
        workers: processes of Gymnasium environments of a fleet; default: by the number of cores.
        time_limit: seconds after which training ends, with files from which it continues.
        save_seconds: from one checkpoint of a fleet to the next, at least.
        progress: show a live table; default: on a terminal.
    """
    check_resources(device, ray, at_once, processes)
    limit = None if time_limit is None else checks.number("time_limit", time_limit, above=0)
    deadline = None if limit is None else time.time() + limit
    checks.output_folder(rows.folder)
    size = at_once or AT_ONCE[device or ("cpu" if ray is not None else default_device())]

    def missing() -> list[Job]:
        job_fields: dict[str, Any] = {
            "device": device, "workers": 0 if processes > 1 else workers,
            "save_seconds": save_seconds, "deadline": deadline,
        }  # fmt: skip
        return [job for each in requests for job in plan(each, rows, at_once=size, **job_fields)]

    jobs = missing()
    for env in dict.fromkeys(job.env for job in jobs if job.backend == "gymnasium"):
        make(env).close()
    diverged: list[str] = []
    with status_display(jobs, progress) as show:

        def poll() -> None:
            show(read_statuses(jobs))

        if ray is not None:
            train_on_ray(jobs, ray, poll)
        elif processes > 1:
            train_side_by_side(jobs, processes, poll, train_in_process)
        else:
            diverged = _train_in_turn(jobs, rows, show)
    left = missing()
    late = deadline is not None and (
        time.time() >= deadline or any(job.files.checkpoint.exists() for job in left)
    )
    if left and late:
        sys.stderr.writelines(f"{problem}\n" for problem in diverged)
        return False
    if left and not diverged:
        raise InvalidInput("some runs diverged and have no rows: they are named above")
    if diverged:
        raise InvalidInput("; ".join(diverged))
    return True


def _train_in_turn(jobs: Sequence[Job], rows: RowFolder[Any], show: Show) -> list[str]:
    """Train jobs one after another; the errors of those with runs that diverged."""
    statuses: dict[str, Status] = {}
    diverged = []
    for job in jobs:

        def on_status(status: Status, name: str = job.name) -> None:
            statuses[name] = status
            show(statuses)

        try:
            train_job(job, rows, on_status)
        except DivergedRuns as error:
            diverged.append(str(error))
    return diverged


def check_resources(
    device: str | None = None,
    ray: str | None = None,
    at_once: int | None = None,
    processes: int = 1,
) -> None:
    """Refuse, before any work, a device or cluster that cannot be trained on."""
    checks.count("--processes", processes)
    if at_once is not None:
        checks.count("--at-once", at_once)
    if ray is None:
        if processes > 1 and device != "gpu":  # before JAX starts its threads
            for name, value in THREADS.items():
                os.environ.setdefault(name, value)
        use_device(device)
        return
    if processes > 1:
        raise InvalidInput("--processes is for this machine: Ray has workers of its own")
    check_device(device)
    require_ray(ray)
