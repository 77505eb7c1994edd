"""Sweeps on Ray: workers that are killed, interrupted or fail, and clusters that do not exist."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from refusals import refused
from small_sweeps import NAME, OPTIONS, outcome, plan, small, train
from tsallax.errors import InvalidInput
from tsallax.paper.fleets import ray_workers
from tsallax.paper.fleets.job_status import read_status
from tsallax.paper.fleets.job_training import DivergedRuns
from tsallax.paper.fleets.jobs import Job

imports_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is missing")
LONG = 300
"""Episodes that take seconds."""


@pytest.fixture(scope="module")
def long_sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep without Ray."""
    folder = tmp_path_factory.mktemp("long")
    train(small(episodes=LONG), folder, at_once=1)
    return folder


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray of this process, that the sweeps use and leave as it is."""
    with ray_workers._cluster("local") as ray:
        yield ray


def needs_ray(test: Any) -> Any:
    """Slow: Ray takes seconds to start, on a busy machine a minute."""
    return pytest.mark.slow(imports_ray(test))


@needs_ray
def test_a_killed_worker_costs_no_more_than_its_time(long_sweep: Path, tmp_path: Path, capfd):
    jobs = plan(small(episodes=LONG), tmp_path, at_once=1, save_seconds=0.0)
    seen: list[tuple[int, float]] = []
    killed: list[tuple[int, float]] = []

    def poll() -> None:
        status = read_status(jobs[0])
        if status is not None:
            seen.append((status.process, status.share))
            if 0 < status.share < 1 and not killed:
                os.kill(status.process, signal.SIGKILL)
                killed.append((status.process, status.share))

    ray_workers.train_on_ray(jobs, "local", poll)
    assert not sys.modules["ray"].is_initialized()
    assert killed, "a worker must have been killed"
    after = [share for process, share in seen if process != killed[0][0]]
    assert after
    assert after[0] > 0, "the fleet must have been resumed"
    assert outcome(tmp_path) == outcome(long_sweep)
    assert not list((tmp_path / "fleets").glob("*.npz"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("how", [pytest.param("--ray local", marks=imports_ray), "--processes 2"])
def test_ctrl_c_saves_the_fleets_of_the_workers(how: str, long_sweep: Path, tmp_path: Path):
    sets = [f"--set={k}={v}" for k, v in OPTIONS.items()]
    command = ["reproduce", "reacher", "--quick", "--variants", NAME]
    command += [*sets, "--episodes", str(LONG), "--steps", "20000", *how.split()]
    process = subprocess.Popen(
        [sys.executable, "-m", "tsallax", *command, "--out", "here"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    folder, end = tmp_path / "here" / "fleets", time.monotonic() + 90
    while not any(_share(path) > 0 for path in folder.glob("*.json")):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=90)
    assert process.returncode == 130
    assert "Traceback" not in err
    if "ray" not in how:  # there Ctrl-C may come twice or late
        assert list(folder.glob("*.npz"))
    train(small(episodes=LONG), tmp_path / "here", at_once=1)
    assert outcome(tmp_path / "here") == outcome(long_sweep)


def _share(path: Path) -> float:
    return float(json.loads(path.read_text())["share"])


@needs_ray
def test_the_error_of_a_worker_is_raised_in_one_line(ray: Any, tmp_path: Path):
    jobs = plan(small(), tmp_path, at_once=2)
    jobs[0].files.checkpoint.parent.mkdir()
    jobs[0].files.checkpoint.write_text("no fleet")
    with refused(str(jobs[0].files.checkpoint)):
        ray_workers.train_on_ray(jobs, "auto", lambda: None)
    assert ray.is_initialized()


@needs_ray
def test_a_folder_that_workers_do_not_see_is_refused(ray: Any, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(ray_workers, "_sees", lambda marker, text: not Path(marker).is_file())
    jobs = plan(small(), tmp_path, at_once=2)
    with refused("does not see it"):
        ray_workers.train_on_ray(jobs, "auto", lambda: None)
    assert not list(tmp_path.iterdir())


def test_a_node_sees_the_same_file_and_no_other(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(ray_workers, "SHARED_SECONDS", 0.1)
    (tmp_path / "marker").write_text("this")
    assert ray_workers._sees(str(tmp_path / "marker"), "this")
    assert not ray_workers._sees(str(tmp_path / "marker"), "that")
    assert not ray_workers._sees(str(tmp_path / "elsewhere"), "this")


@needs_ray
def test_a_gpu_that_no_node_has_is_refused(ray: Any, tmp_path: Path):
    if ray.cluster_resources().get("GPU"):
        pytest.skip("there is a GPU")
    jobs = plan(small(), tmp_path, at_once=2, device="gpu")
    with refused("no node of the Ray cluster has a GPU"):
        ray_workers.train_on_ray(jobs, "auto", lambda: None)


@imports_ray
@pytest.mark.parametrize(
    ("address", "word"),
    [("ray://127.0.0.1:9", "refused"), ("nowhere", "host:port"), ("nowhere:0", "host:port")],
)
def test_a_cluster_that_does_not_exist_is_refused(address: str, word: str, tmp_path: Path):
    with refused(word):
        train(small(), tmp_path / "out", ray=address)
    assert not (tmp_path / "out").exists()


@imports_ray
@pytest.mark.parametrize("mode", [None, "token"])
def test_a_refused_connection_gives_a_hint_at_the_token(mode, tmp_path, monkeypatch):
    import ray

    def refuse(**options: Any) -> None:
        raise ConnectionError("Failed to connect\nand more of it")

    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.setattr(ray_workers.socket, "create_connection", lambda *_: io.BytesIO())
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    if mode is not None:
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
    with pytest.raises(InvalidInput) as caught:
        ray_workers.train_on_ray(plan(small(), tmp_path, at_once=2), "127.0.0.1:9", lambda: None)
    assert ("RAY_AUTH_MODE=token" in str(caught.value)) == (mode is None)
    assert "Failed to connect" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_ray_the_error_names_the_extra(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with refused("pip install ray"):
        train(small(), tmp_path, ray="local")


def test_runs_that_diverge_do_not_end_the_other_jobs(tmp_path: Path, monkeypatch, capsys):
    """With a stand-in for Ray, whose tasks are done when they are waited for, one after another."""
    jobs = plan(small(seeds=3), tmp_path, at_once=1)
    fleet = SimpleNamespace(diverged=[0], steps=100, records=[SimpleNamespace(diverged_at=50)])
    trained = []

    def train_job(job: Job) -> bool:
        trained.append(job)
        if job is jobs[0]:
            raise DivergedRuns(job, fleet)
        if job is jobs[2]:
            raise InvalidInput("damaged")
        return True

    monkeypatch.setattr(ray_workers, "train_job", train_job)
    ray = SimpleNamespace(
        wait=lambda left, timeout: (left[:1], left[1:]),
        get=lambda i: ray_workers._train(jobs[i]),
        exceptions=SimpleNamespace(RayTaskError=ZeroDivisionError, RayError=ArithmeticError),
    )
    ray_workers._wait(ray, {0: jobs[0], 1: jobs[1]}, lambda: None, lambda: False)
    assert trained == jobs[:2]
    assert f"no rows of {NAME}, seed 0: the loss was not finite" in capsys.readouterr().err
    with refused("damaged"):
        ray_workers._wait(ray, {2: jobs[2]}, lambda: None, lambda: False)
