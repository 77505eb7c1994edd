"""Train the runs of sweeps that a folder does not hold: here, in several processes or on Ray."""

import os
from collections.abc import Sequence

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.paper.fleets.fleet_device import (
    check_counts,
    check_device,
    default_device,
    use_device,
)
from tsallax.paper.fleets.processes import train_side_by_side
from tsallax.paper.sweep.job_status import Status, read_statuses, status_display
from tsallax.paper.sweep.job_training import train_in_process, train_job
from tsallax.paper.sweep.jobs import SAVE_SECONDS, Job, plan_jobs
from tsallax.paper.sweep.ray_workers import require_ray, train_on_ray
from tsallax.paper.sweep.rows import Row, RowFolder
from tsallax.paper.sweep.specification import Sweep

AT_ONCE = {"cpu": 1, "gpu": 81}
"""Agents of a fleet. A CPU trains them one after another: one finished run is better than two
half-finished ones."""


def train_sweeps(
    sweeps: Sequence[Sweep],
    out: str | os.PathLike[str],
    *,
    device: str | None = None,
    ray: str | None = None,
    at_once: int | None = None,
    processes: int = 1,
    save_seconds: float = SAVE_SECONDS,
    progress: bool | None = None,
) -> list[Row]:
    """Train every run of the sweeps that the folder does not hold, and return all its rows.

    Args:
        sweeps: what to train.
        out: the folder; what was begun in it is resumed.
        device: "cpu" or "gpu"; default: what JAX finds.
        ray: the address of a Ray cluster, "auto" for the one of this machine, "local" for a new
            one; its workers must see the same folder. Default: train here.
        at_once: agents of a fleet; default: 81 on a GPU, 1 on a CPU.
        processes: fleets that are trained side by side, each in a process of its own.
        save_seconds: from one checkpoint of a fleet to the next.
        progress: show a live table; default: on a terminal.
    """
    check_resources(device, ray, at_once, processes)
    rows = RowFolder(checks.output_folder(out))
    size = at_once or AT_ONCE[device or ("cpu" if ray is not None else default_device())]
    jobs: list[Job] = []
    for sweep in sweeps:
        jobs += plan_jobs(sweep, rows, at_once=size, device=device, save_seconds=save_seconds)
    with status_display(jobs, progress) as show:

        def poll() -> None:
            show(read_statuses(jobs))

        if ray is not None:
            train_on_ray(jobs, ray, poll)
        elif processes > 1:
            train_side_by_side(jobs, processes, poll, train_in_process)
        else:
            statuses: dict[str, Status] = {}
            for job in jobs:

                def on_status(status: Status, name: str = job.name) -> None:
                    statuses[name] = status
                    show(statuses)

                train_job(job, rows, on_status)
    return rows.read()


def check_resources(
    device: str | None, ray: str | None, at_once: int | None, processes: int = 1
) -> None:
    """Refuse, before any work, a device or cluster that cannot be trained on."""
    check_counts(at_once, processes)
    if ray is None:
        use_device(device)
        return
    if processes > 1:
        raise InvalidInput("--processes is for this machine: Ray has workers of its own")
    check_device(device)
    require_ray(ray)
