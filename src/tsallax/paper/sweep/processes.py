"""Train the fleets of a sweep side by side, in processes of their own.

Several small programs fill a machine better than one: the cores of a CPU, and a GPU too, where
they can share it at the same time (NVIDIA's multi-process service).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tsallax.errors import InvalidInput
from tsallax.interrupts import deferred
from tsallax.paper.sweep.jobs import SAVING_SECONDS, Job, train

MEMORY = "XLA_PYTHON_CLIENT_MEM_FRACTION"
"""The share of a GPU's memory that a process takes for itself."""


class Worker(NamedTuple):
    """A process, what it trains, and where it says what went wrong."""

    process: Any
    job: Job
    words: Any


def train_side_by_side(jobs: Sequence[Job], processes: int, draw: Callable[[], None]) -> None:
    """Train every job, `processes` of them at a time; `draw` is called now and then."""
    os.environ.setdefault(MEMORY, f"{0.9 / processes:.3f}")
    waiting, running = list(jobs), list[Worker]()
    with deferred() as interrupted:
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    running.append(_start(waiting.pop(0)))
                for worker in [w for w in running if w.process.exitcode is not None]:
                    running.remove(worker)
                    _require_well(worker)
                if interrupted():
                    raise KeyboardInterrupt
                draw()
                time.sleep(0.2)
        except BaseException:
            _stop(running)
            raise


def _start(job: Job) -> Worker:
    context = multiprocessing.get_context("spawn")
    words, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(job, theirs), name=job.name, daemon=True)
    process.start()
    theirs.close()
    return Worker(process, job, words)


def _work(job: Job, words: Any) -> None:
    """What a process does; Ctrl-C reaches it through the one that started it, and once."""
    if hasattr(os, "setpgrp"):  # not on Windows
        os.setpgrp()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        train(job, _require_parent)
    except KeyboardInterrupt:
        sys.exit(130)
    except InvalidInput as error:
        words.send(str(error))
        sys.exit(2)


def _require_parent() -> None:
    """Save and end where the process that started this one is gone."""
    parent = multiprocessing.parent_process()
    if parent is None or not parent.is_alive():
        raise KeyboardInterrupt


def _require_well(worker: Worker) -> None:
    """Tell of a process that did not end as it should."""
    code = worker.process.exitcode
    if code == 130:
        raise KeyboardInterrupt
    if code == 2 and worker.words.poll():
        raise InvalidInput(worker.words.recv())
    if code != 0:
        raise InvalidInput(
            f"the process that trained {worker.job.name} ended with code {code}: the same command "
            "goes on; if it was short of memory, with fewer --processes"
        )


def _stop(running: Sequence[Worker]) -> None:
    """Have the fleets saved."""
    for worker in running:
        if worker.process.is_alive():
            os.kill(worker.process.pid, signal.SIGINT)
    end = time.monotonic() + SAVING_SECONDS
    for worker in running:
        worker.process.join(max(0.0, end - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
