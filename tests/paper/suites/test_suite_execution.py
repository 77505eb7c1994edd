"""Training of whole suites: rows of all runs, side by side too, and an end at the time limit."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from refusals import refused
from small_suites import outcome, plan, small
from tsallax.errors import InvalidInput
from tsallax.paper.suites import suite_execution
from tsallax.paper.suites.suite_execution import train_in_process, train_suites
from tsallax.paper.suites.suite_jobs import SuiteJob
from tsallax.paper.suites.suite_training import DivergedRuns


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    assert train_suites([small()], folder, at_once=1, progress=False)
    return folder


def test_a_second_call_trains_nothing(alone: Path, monkeypatch: pytest.MonkeyPatch):
    before = outcome(alone)
    monkeypatch.setattr(suite_execution, "train_suite_job", None)
    assert train_suites([small()], alone, progress=False)
    assert outcome(alone) == before
    assert [row["seed"] for row in before] == [0, 1]


def test_a_time_limit_that_has_passed_leaves_the_runs_for_the_next_call(
    alone: Path, tmp_path: Path
):
    assert not train_suites([small()], tmp_path, at_once=1, time_limit=1e-3, progress=False)
    assert outcome(tmp_path) == []
    assert train_suites([small()], tmp_path, at_once=1, progress=False)
    assert outcome(tmp_path) == outcome(alone)


@pytest.mark.slow
def test_fleets_side_by_side_give_the_same_rows(alone: Path, tmp_path: Path):
    assert train_suites([small()], tmp_path, at_once=1, processes=2, device="cpu", progress=False)
    assert outcome(tmp_path) == outcome(alone)
    assert not train_suites(
        [small(seeds=3)], tmp_path, at_once=1, processes=2, time_limit=1e-3, progress=False
    )


def test_a_process_checks_after_each_segment(tmp_path: Path):
    (job,) = plan(tmp_path)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_in_process(job, interrupt)


def test_runs_that_diverge_are_named_at_the_end_and_at_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    record = SimpleNamespace(diverged_at=50)
    fleet = SimpleNamespace(diverged=[0], steps=100, records=[record])

    def train(job: SuiteJob, show: Any) -> bool:
        if job.runs[0].seed == 0:
            raise DivergedRuns(job, fleet)
        return in_time

    monkeypatch.setattr(suite_execution, "train_suite_job", train)
    for in_time in (True, False):
        options = {"at_once": 1, "progress": False, "time_limit": 60.0}
        if in_time:
            with refused("tsallax, seed 0: the loss was not finite"):
                train_suites([small()], tmp_path, **options)
        else:
            assert not train_suites([small()], tmp_path, **options)
            assert "tsallax, seed 0: the loss was not finite" in capsys.readouterr().err


def test_an_environment_that_cannot_be_made_is_refused_before_any_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def make(env: str) -> SimpleNamespace:
        if env == "LunarLander-v3":
            raise InvalidInput("needs Box2D", source=env)
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(suite_execution, "make", make)
    with refused("LunarLander-v3: needs Box2D"):
        train_suites([small(tasks=["CartPole-v1", "LunarLander-v3"])], tmp_path)
    assert not list(tmp_path.iterdir())


def test_impossible_resources_are_refused(tmp_path: Path):
    for words, wrong in (("--processes", {"processes": 0}), ("time_limit", {"time_limit": 0})):
        with refused(words):
            train_suites([small()], tmp_path, **wrong)
