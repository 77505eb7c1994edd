"""Sweeps on Ray: workers that are killed, cancelled or wrong, and clusters that are not there."""

from __future__ import annotations

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
from typing import Any

import pytest

from small_sweeps import OPTIONS, outcome, small
from tsallax.errors import InvalidInput
from tsallax.paper.sweep import ray_workers, status_table
from tsallax.paper.sweep.execution import learned
from tsallax.paper.sweep.jobs import plan

imports_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is missing: tsallax[ray]")
LONG = 300
"""Episodes that take seconds."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep without Ray."""
    folder = tmp_path_factory.mktemp("whole")
    learned([small(episodes=LONG)], folder, at_once=1, progress=False)
    return folder


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray of this process, that the sweeps use and leave as it is."""
    with ray_workers._cluster("local") as ray:
        yield ray


def needs_ray(test: Any) -> Any:
    """Slow, and at the mercy of a busy machine: a Ray may take its time to start."""
    return pytest.mark.slow(imports_ray(test))


def nothing() -> None:
    pass


@needs_ray
def test_a_killed_worker_costs_no_more_than_its_time(whole: Path, tmp_path: Path, capfd):
    jobs = plan(small(episodes=LONG), tmp_path, at_once=1, save_seconds=0.0)
    seen: list[tuple[int, float]] = []
    killed: list[tuple[int, float]] = []

    def draw() -> None:
        about = status_table.status(jobs[0])
        if about is not None:
            seen.append((about["process"], about["share"]))
            if 0 < about["share"] < 1 and not killed:
                os.kill(about["process"], signal.SIGKILL)
                killed.append((about["process"], about["share"]))

    ray_workers.train_on_ray(jobs, "local", draw)
    assert not sys.modules["ray"].is_initialized()
    assert killed, "the worker must have been killed on the way"
    after = [share for process, share in seen if process != killed[0][0]]
    assert after
    assert after[0] >= killed[0][1], "the fleet must have gone on, not begun again"
    assert outcome(tmp_path) == outcome(whole)
    assert not list((tmp_path / "fleets").glob("*.npz"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "how",
    [pytest.param("--ray local", marks=[pytest.mark.slow, imports_ray]), "--processes 2"],
    ids=["ray", "processes"],
)
def test_ctrl_c_saves_what_the_workers_have(how: str, whole: Path, tmp_path: Path):
    sets = [f"--set={k}={v[0] if k == 'hidden' else v}" for k, v in OPTIONS.items()]
    command = ["reproduce", "reacher", "--quick", "--variants", "Sparse+SparseBellman-0.1"]
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
    assert err == (
        "2 runs to train\n"
        "tsallax: note: what was done is in here: the same command goes on from there\n"
        "tsallax: error: interrupted\n"
    )
    if "ray" not in how:  # where Ctrl-C may come twice or late, and all that counts is what follows
        assert list(folder.glob("*.npz"))
    learned([small(episodes=LONG)], tmp_path / "here", at_once=1, progress=False)
    assert outcome(tmp_path / "here") == outcome(whole)


def _share(path: Path) -> float:
    return float(json.loads(path.read_text())["share"])


@needs_ray
def test_what_a_worker_refuses_is_refused_in_one_line(ray: Any, tmp_path: Path):
    jobs = plan(small(), tmp_path, at_once=2)
    jobs[0].checkpoint.parent.mkdir()
    jobs[0].checkpoint.write_text("no fleet")
    with pytest.raises(InvalidInput) as caught:
        ray_workers.train_on_ray(jobs, "auto", nothing)
    assert str(jobs[0].checkpoint) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert ray.is_initialized()


@needs_ray
def test_a_folder_that_workers_do_not_see_is_refused(ray: Any, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(ray_workers, "_sees", lambda marker, text: not Path(marker).is_file())
    jobs = plan(small(), tmp_path, at_once=2)
    with pytest.raises(InvalidInput, match="the --out folder must be on storage that all"):
        ray_workers.train_on_ray(jobs, "auto", nothing)
    assert not list(tmp_path.iterdir())


def test_a_node_sees_the_same_file_and_no_other(tmp_path: Path):
    (tmp_path / "marker").write_text("this")
    assert ray_workers._sees(str(tmp_path / "marker"), "this")
    assert not ray_workers._sees(str(tmp_path / "marker"), "that")
    assert not ray_workers._sees(str(tmp_path / "elsewhere"), "this")


@needs_ray
def test_a_gpu_that_no_node_has_is_refused(ray: Any, tmp_path: Path):
    if ray.cluster_resources().get("GPU"):
        pytest.skip("there is a GPU")
    jobs = plan(small(), tmp_path, at_once=2, device="gpu")
    with pytest.raises(InvalidInput, match="no node of the Ray cluster has a GPU"):
        ray_workers.train_on_ray(jobs, "auto", nothing)


@imports_ray
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:9", "cannot be reached: Connection refused"),
        ("ray://127.0.0.1:9", "cannot be reached: Connection refused"),
        ("nowhere", "must be local, auto, host:port or ray://host:port"),
        ("nowhere:0", "must be local, auto, host:port or ray://host:port"),
        ("", "must be local, auto, host:port or ray://host:port"),
    ],
)
def test_a_cluster_that_is_not_there_is_refused(address: str, words: str, tmp_path: Path):
    with pytest.raises(InvalidInput) as caught:
        learned([small()], tmp_path / "out", ray=address, progress=False)
    assert str(caught.value) == f"--ray {address}: {words}"
    assert not (tmp_path / "out").exists()


@imports_ray
@pytest.mark.parametrize("mode", [None, "token"])
def test_a_cluster_that_does_not_let_us_in_gets_a_hint_of_its_token(mode, tmp_path, monkeypatch):
    import ray

    def refuse(**options: Any) -> None:
        raise ConnectionError("Failed to connect\nand more of it")

    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.setattr(ray_workers.socket, "create_connection", lambda *_: io.BytesIO())
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    if mode is not None:
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
    with pytest.raises(InvalidInput) as caught:
        ray_workers.train_on_ray(plan(small(), tmp_path, at_once=2), "127.0.0.1:9", nothing)
    hint = "" if mode else " (if it asks for a token, set RAY_AUTH_MODE=token)"
    assert str(caught.value) == f"--ray 127.0.0.1:9: cannot be reached: Failed to connect{hint}"


def test_without_ray_it_is_said_how_to_install_it(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidInput, match=r"^--ray needs ray: pip install 'tsallax\[ray\]'$"):
        learned([small()], tmp_path, ray="local", progress=False)
