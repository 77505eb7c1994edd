"""Train fleets side by side, in processes of their own.

Several small programs fill a machine better than one: the cores of a CPU, and a GPU too, where
they can share it at the same time (NVIDIA's multi-process service).
"""

import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tsallax.errors import InvalidInput
from tsallax.interrupts import deferred

MEMORY_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
"""The share of a GPU's memory that a process takes for itself."""
POLL_SECONDS = 1.0
SAVING_SECONDS = 60.0
"""How long an interrupted command waits for fleets in other processes to be saved."""
Train = Callable[[Any, Callable[[], None]], Any]
"""Trains a job; it calls its second argument often, which may raise KeyboardInterrupt."""


class JobProcess(NamedTuple):
    """A process, the name of the job it trains, and the pipe for the text of its error."""

    process: Any
    name: str
    errors: Any


def train_side_by_side(
    jobs: Sequence[Any], processes: int, poll: Callable[[], None], train: Train
) -> None:
    """Train every job, `processes` of them at a time; `poll` is called about once a second.

    A job is plain data with a `name`; `train` is a function of a module, by which a process of its
    own trains it.
    """
    os.environ.setdefault(MEMORY_FRACTION, f"{0.9 / processes:.3f}")
    waiting, running, polled = list(jobs), list[JobProcess](), -math.inf
    with deferred() as interrupted:
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    running.append(_start(waiting.pop(0), train))
                for worker in [w for w in running if w.process.exitcode is not None]:
                    running.remove(worker)
                    _check_exit(worker)
                if interrupted():
                    raise KeyboardInterrupt
                if time.monotonic() - polled > POLL_SECONDS:
                    poll()
                    polled = time.monotonic()
                time.sleep(0.2)
        except BaseException:
            _stop(running)
            raise


def _start(job: Any, train: Train) -> JobProcess:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    given = job, train, sender
    process = context.Process(target=_run_worker, args=given, name=job.name, daemon=True)
    process.start()
    sender.close()
    return JobProcess(process, job.name, receiver)


def _run_worker(job: Any, train: Train, errors: Any) -> None:
    """Train a job in a process of its own, which only its parent interrupts."""
    if hasattr(os, "setpgrp"):  # not on Windows
        os.setpgrp()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        train(job, _require_parent)
    except KeyboardInterrupt:
        sys.exit(130)
    except InvalidInput as error:
        errors.send(str(error))
        sys.exit(2)


def _require_parent() -> None:
    """Interrupt the training where the parent process has ended."""
    parent = multiprocessing.parent_process()
    if parent is None or not parent.is_alive():
        raise KeyboardInterrupt


def _check_exit(worker: JobProcess) -> None:
    """Raise the error of a process that failed."""
    code = worker.process.exitcode
    if code == 130:
        raise KeyboardInterrupt
    if code == 2 and worker.errors.poll():
        raise InvalidInput(worker.errors.recv())
    if code != 0:
        raise InvalidInput(
            f"the process that trained {worker.name} ended with code {code}: the same command "
            "resumes it; if it was short of memory, use fewer --processes"
        )


def _stop(running: Sequence[JobProcess]) -> None:
    """Interrupt the processes, and wait until their fleets are saved."""
    for worker in running:
        if worker.process.is_alive():
            os.kill(worker.process.pid, signal.SIGINT)
    end = time.monotonic() + SAVING_SECONDS
    for worker in running:
        worker.process.join(max(0.0, end - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
