"""The paper's deep experiments as a whole: train what is missing, here or on Ray, and write it up.

learned([sweep], "out/paper")      train, with a row for every run
write_tables(["out/paper"], "out/paper")          tables and figures from all rows there are
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from tsallax.errors import InvalidInput
from tsallax.paper.report import require_folder, write_result
from tsallax.paper.sweep import rows
from tsallax.paper.sweep.jobs import (
    SAVE_SECONDS,
    Job,
    Sweep,
    plan,
    require_device,
    train,
    use_device,
)
from tsallax.paper.sweep.status_table import live
from tsallax.paper.sweep.tasks import TASKS

AT_ONCE = {"cpu": 1, "gpu": 81}
"""Agents of a fleet. On a CPU they would take turns: a run that is finished is better than two
that are half done."""


def learned(
    sweeps: Sequence[Sweep],
    out: str | os.PathLike[str],
    *,
    device: str | None = None,
    ray: str | None = None,
    at_once: int | None = None,
    processes: int = 1,
    save_seconds: float = SAVE_SECONDS,
    progress: bool | None = None,
) -> None:
    """Train every run of the sweeps that the folder does not hold.

    Args:
        sweeps: what to train.
        out: the folder; what it holds is not trained again, what was begun goes on.
        device: "cpu" or "gpu"; default: what JAX finds.
        ray: the address of a Ray cluster, "auto" for the one of this machine, "local" for a new
            one; its workers must see the same folder. Default: train here.
        at_once: agents of a fleet; default: 81 on a GPU, 1 on a CPU.
        processes: fleets that are trained side by side, each in a process of its own.
        save_seconds: from one checkpoint of a fleet to the next.
        progress: show a live table; default: on a terminal.
    """
    require_means(device, ray, at_once, processes)
    folder = require_folder(out)
    size = at_once or AT_ONCE[device or ("gpu" if ray is None and _gpu() else "cpu")]
    jobs: list[Job] = []
    for sweep in sweeps:
        jobs += plan(sweep, folder, at_once=size, device=device, save_seconds=save_seconds)
    with live(jobs, progress) as draw:
        if ray is not None:
            from tsallax.paper.sweep.ray_workers import train_on_ray

            train_on_ray(jobs, ray, draw)
        elif processes > 1:
            from tsallax.paper.sweep.processes import train_side_by_side

            train_side_by_side(jobs, processes, draw)
        else:
            for job in jobs:
                train(job, draw)


def require_means(
    device: str | None, ray: str | None, at_once: int | None, processes: int = 1
) -> None:
    """Refuse, before any work, what there is nothing to train on."""
    if processes < 1:
        raise InvalidInput(f"--processes must be at least 1, got {processes}")
    if processes > 1 and ray is not None:
        raise InvalidInput("--processes is for this machine: Ray has workers of its own")
    if at_once is not None and at_once < 1:
        raise InvalidInput(f"--at-once must be at least 1, got {at_once}")
    if ray is None:
        use_device(device)
    else:
        from tsallax.paper.sweep.ray_workers import require_ray

        require_device(device)
        require_ray(ray)


def write_tables(
    sources: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]
) -> list[str]:
    """Write tables and figures of every task that the folders have rows of; their names.

    They are marked as quick where a run is shorter than the paper's.
    """
    found = rows.read(*sources)
    names = [name for name in TASKS if any(row.task == name for row in found)]
    if names:
        from tsallax.paper.tables import tables

        for name in names:
            begin = time.perf_counter()
            task = TASKS[name]
            result = tables(task, found)
            short = any(
                row.episodes < task.episodes and row.steps < task.steps
                for row in found
                if row.task == name
            )
            write_result(result, Path(out), seconds=time.perf_counter() - begin, quick=short)
    return names


def _gpu() -> bool:
    import jax

    return jax.default_backend() == "gpu"
