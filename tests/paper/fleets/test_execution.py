"""Training of what is missing: rows, statuses, side by side, an end at the time limit."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import small_suites
import small_sweeps
from refusals import refused
from small_suites import outcome, small
from small_sweeps import STATUS, finished_folder, finished_row
from tsallax.errors import InvalidInput
from tsallax.paper.fleets import execution
from tsallax.paper.fleets.job_training import DivergedRuns
from tsallax.paper.fleets.jobs import Job
from tsallax.paper.fleets.row_files import RowFormat


def train(folder: Path, **options: Any) -> bool:
    """Train the small suite, or another request."""
    return small_suites.train(options.pop("request", small()), folder, **{"at_once": 1, **options})


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    assert train(folder)
    return folder


def test_only_missing_runs_are_trained_and_their_statuses_displayed(tmp_path, monkeypatch):
    """In one process no status and no new row is read from a file."""
    path, shown = finished_folder(tmp_path), []

    @contextmanager
    def display(jobs, show):
        yield lambda statuses: shown.append(dict(statuses))

    def train_job(job, rows, on_status):
        on_status(STATUS)
        for run in job.runs:
            rows.append(finished_row(run.seed), path)
        monkeypatch.setattr(RowFormat, "read_file", None)

    monkeypatch.setattr(execution, "train_job", train_job)
    monkeypatch.setattr(execution, "read_statuses", None)
    monkeypatch.setattr(execution, "status_display", display)
    rows = small_sweeps.train(small_sweeps.small(seeds=6), tmp_path, at_once=2)
    assert [row.seed for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [len(statuses) for statuses in shown] == [1, 2]
    assert set(shown[1].values()) == {STATUS}


def test_a_second_call_trains_nothing(alone: Path, monkeypatch: pytest.MonkeyPatch):
    before = outcome(alone)
    monkeypatch.setattr(execution, "train_job", None)
    assert train(alone)
    assert outcome(alone) == before
    assert [row["seed"] for row in before] == [0, 1]


def test_a_time_limit_that_has_passed_leaves_the_runs_for_the_next_call(
    alone: Path, tmp_path: Path
):
    assert not train(tmp_path, time_limit=1e-3)
    assert outcome(tmp_path) == []
    assert train(tmp_path)
    assert outcome(tmp_path) == outcome(alone)


@pytest.mark.slow
def test_fleets_side_by_side_give_the_same_rows(alone: Path, tmp_path: Path):
    assert train(tmp_path, processes=2, device="cpu")
    assert outcome(tmp_path) == outcome(alone)
    assert not train(tmp_path, request=small(seeds=3), processes=2, time_limit=1e-3)


def test_runs_that_diverge_are_named_at_the_end_and_at_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    record = SimpleNamespace(diverged_at=50)
    fleet = SimpleNamespace(diverged=[0], steps=100, records=[record])

    def train_job(job: Job, *_: Any) -> bool:
        if job.runs[0].seed == 0:
            raise DivergedRuns(job, fleet)
        if not in_time:
            job.files.checkpoint.parent.mkdir()
            job.files.checkpoint.touch()
        return in_time

    monkeypatch.setattr(execution, "train_job", train_job)
    for in_time in (True, False):
        options = {"at_once": 1, "time_limit": 60.0}
        if in_time:
            with refused("tsallax, seed 0: the loss was not finite"):
                train(tmp_path, **options)
        else:
            assert not train(tmp_path, **options)
            assert "tsallax, seed 0: the loss was not finite" in capsys.readouterr().err


def test_an_environment_that_cannot_be_made_is_refused_before_any_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def make(env: str) -> SimpleNamespace:
        if env == "LunarLander-v3":
            raise InvalidInput("needs Box2D", source=env)
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(execution, "make", make)
    with refused("LunarLander-v3: needs Box2D"):
        train(tmp_path, request=small(tasks=["CartPole-v1", "LunarLander-v3"]))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options",
    [{"device": "tpu"}, {"device": "tpu", "ray": "local"}, {"at_once": 0}, {"processes": 0},
     {"processes": 2, "ray": "local"}, {"time_limit": 0}],
    ids=str,
)  # fmt: skip
def test_resources_that_cannot_be_used_are_refused_before_any_work(options, tmp_path):
    with pytest.raises(InvalidInput):
        train(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
