"""Train fleets as tasks of a Ray cluster, which may be this machine alone.

A task trains one fleet in a folder that all nodes share. Where a worker or its node is lost, Ray
runs the task again, and the fleet resumes from its last checkpoint.
"""

import dataclasses
import logging
import os
import re
import secrets
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tsallax.errors import InvalidInput
from tsallax.interrupts import deferred
from tsallax.paper.fleets.job_training import DivergedRuns, train_job
from tsallax.paper.fleets.jobs import Job
from tsallax.paper.fleets.processes import SAVING_SECONDS

RETRIES = 5
"""How often a fleet is tried again after it has lost its worker."""
CONNECT_SECONDS = 5.0
PROBE_SECONDS = 60.0
SHARED_SECONDS = 3.0
"""How long a file on a network file system may take to appear on a node."""
RAY_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
"""What Ray reads when it is imported: no statistics, no advice, no line for every lost worker."""
AUTH_MODE = "RAY_AUTH_MODE"
"""The variable that makes Ray send the cluster's token."""
OBJECT_STORE_BYTES = 100 * 2**20
"""Tasks return next to nothing."""


def train_on_ray(jobs: Sequence[Job], address: str, poll: Callable[[], None]) -> None:
    """Train every job as a task; `poll` is called about once a second.

    The address is "local" for a new Ray on this machine, "auto", "host:port" or "ray://host:port".
    """
    if not jobs:
        return
    with _cluster(address) as ray:
        if any(job.device == "gpu" for job in jobs) and not ray.cluster_resources().get("GPU"):
            raise InvalidInput("--device gpu: no node of the Ray cluster has a GPU")
        _require_shared(ray, {job.folder for job in jobs})
        task = ray.remote(max_retries=RETRIES)(_train)
        tasks = {}
        for job in jobs:
            needs = {"num_gpus": 1} if job.device == "gpu" else {"num_cpus": 1}
            here = dataclasses.replace(job, device=job.device or "cpu")
            tasks[task.options(**needs, name=job.name).remote(here)] = job
        with deferred() as interrupted:
            try:
                _wait(ray, tasks, poll, interrupted)
            except BaseException:
                _cancel(ray, list(tasks))
                raise


def _train(job: Job) -> tuple[str, bool] | None:
    """Train a job in a worker; the text of its error, if any, and whether the other jobs go on."""
    try:
        train_job(job)
    except DivergedRuns as error:
        return str(error), True
    except InvalidInput as error:
        return str(error), False
    return None


def _wait(
    ray: Any, tasks: dict[Any, Job], poll: Callable[[], None], interrupted: Callable[[], bool]
) -> None:
    """Wait for all tasks, or for the first that fails; runs that diverge are named on stderr."""
    left = list(tasks)
    while left:
        done, left = ray.wait(left, timeout=1.0)
        if interrupted():
            raise KeyboardInterrupt
        for each in done:
            try:
                problem = ray.get(each)
            except ray.exceptions.RayTaskError:
                raise
            except ray.exceptions.RayError as error:
                raise InvalidInput(
                    f"the fleet {tasks[each].name} lost its worker {RETRIES + 1} times "
                    f"({_lines(error)[0]}): the same command resumes what is saved"
                ) from None
            if problem is not None:
                text, others_go_on = problem
                if not others_go_on:
                    raise InvalidInput(text)
                sys.stderr.write(f"{text}\n")
        poll()


def _cancel(ray: Any, tasks: list[Any]) -> None:
    """Interrupt the workers and let them save."""
    for each in tasks:
        ray.cancel(each, force=False)
    ray.wait(tasks, num_returns=len(tasks), timeout=SAVING_SECONDS)


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Ray, connected and quiet; left as it was if it was connected already."""
    require_ray(address)
    import ray

    if ray.is_initialized():
        yield ray
        return
    _connect(ray, address)
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    logging.getLogger("ray").setLevel(logging.ERROR)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks beside JAX, of which nothing runs yet
        try:
            ray.init(address=address, **options)
        except Exception as error:
            ray.shutdown()
            hint = f" (if it asks for a token, set {AUTH_MODE}=token)"
            text = f"--ray {address}: cannot be reached: {_lines(error)[0]}"
            raise InvalidInput(text + hint * (AUTH_MODE not in os.environ)) from None


def require_ray(address: str) -> None:
    """Refuse an address without a cluster at once; Ray would try for a minute."""
    for name, value in RAY_SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # noqa: F401
    except ImportError:
        raise InvalidInput("--ray needs ray: pip install ray") from None
    if address in ("local", "auto"):
        return
    found = re.fullmatch(r"(?:ray://)?\[?([^\s/]+?)\]?:(\d{1,5})", address)
    if found is None or not 0 < int(found[2]) < 2**16:
        raise InvalidInput(f"--ray {address}: must be local, auto, host:port or ray://host:port")
    try:
        socket.create_connection((found[1], int(found[2])), CONNECT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or error
        raise InvalidInput(f"--ray {address}: cannot be reached: {reason}") from None


def _require_shared(ray: Any, folders: set[str]) -> None:
    """Refuse a folder that a node does not see, by a marker file that each node must find."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    probe = ray.remote(num_cpus=0)(_sees)
    for folder in sorted(folders):
        Path(folder).mkdir(parents=True, exist_ok=True)
        marker, text = Path(folder) / f".shared-{secrets.token_hex(4)}", secrets.token_hex(8)
        marker.write_text(text, encoding="utf-8")
        try:
            for node in nodes:
                on_node = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                task = probe.options(scheduling_strategy=on_node).remote(str(marker), text)
                if not _answer(ray, task, node):
                    raise InvalidInput(
                        f"{folder}: the node {node['NodeManagerAddress']} does not see it: the "
                        "--out folder must be on storage that all nodes share, at the same path"
                    )
        finally:
            marker.unlink(missing_ok=True)


def _answer(ray: Any, task: Any, node: dict[str, Any]) -> Any:
    try:
        return ray.get(task, timeout=PROBE_SECONDS)
    except ray.exceptions.RayError as error:
        raise InvalidInput(
            f"--ray: the node {node['NodeManagerAddress']} cannot work: {_lines(error)[-1]}"
        ) from None


def _sees(marker: str, text: str) -> bool:
    """Whether this node finds the same file, in a folder that it can write to."""
    path, end = Path(marker), time.monotonic() + SHARED_SECONDS
    while time.monotonic() < end:
        try:
            return path.read_text(encoding="utf-8") == text and os.access(path.parent, os.W_OK)
        except OSError:
            time.sleep(0.2)
    return False


def _lines(error: Exception) -> list[str]:
    return str(error).strip().splitlines() or [type(error).__name__]
