"""Training of a suite's fleet: interrupted at any point, every run ends with one row, the same."""

import dataclasses
from pathlib import Path

import pytest

from refusals import refused
from small_suites import EVERY, STEPS, outcome, plan, small
from tsallax.deep import options
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.fleet import Fleet, Member
from tsallax.paper.suites import suite_training
from tsallax.paper.suites.suite_rows import read_suite_rows
from tsallax.paper.suites.suite_training import train_suite_job


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    (job,) = plan(folder)
    assert train_suite_job(job)
    return folder


def test_a_row_is_what_the_fleet_gives(whole: Path, tmp_path: Path):
    (job,) = plan(tmp_path)
    configs = [
        options.from_mapping(DeepQConfig, options.without_unused(r.config)) for r in job.runs
    ]
    members = [Member(config, run.seed) for config, run in zip(configs, job.runs, strict=True)]
    fleet = Fleet("CartPole-v1", members, workers=0)
    halfway: list[list[float]] = []

    def look(fleet: Fleet) -> None:
        if fleet.steps == EVERY:
            halfway.append([fleet.evaluate(i, 2).mean for i in (0, 1)])

    fleet.learn(steps=STEPS, callback=look, progress=False)
    rows = read_suite_rows(whole)
    assert [row.key for row in rows] == [
        ("classic", "CartPole-v1", "tsallax", None, s) for s in (0, 1)
    ]
    for i, row in enumerate(rows):
        found, returns = fleet.evaluate(i, 3), fleet.records[i].returns
        assert (row.greedy, row.greedy_error) == (found.mean, found.standard_error)
        assert row.evaluations[0] == (EVERY, pytest.approx(halfway[0][i], rel=1e-5), 2)
        assert [at for at, *_ in row.evaluations] == [EVERY, STEPS]
        assert (row.steps, row.episodes, row.agents) == (STEPS, len(returns), 2)
        total = sum(mean * count for _, mean, count in row.training)
        assert total == pytest.approx(sum(returns), rel=1e-4)
        assert sum(count for *_, count in row.training) == len(returns)
        assert (row.config["net_arch"], row.config["alpha"]) == ([8], "auto")
    assert rows[0].training != rows[1].training


def test_training_that_ends_at_its_deadline_continues_to_the_same_rows(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The deadline comes after the segment that ends at step 100; an interrupt after the first
    row."""
    (job,) = plan(tmp_path)
    late = dataclasses.replace(job, deadline=1000.0)
    clock = {"now": 0.0}
    monkeypatch.setattr(suite_training.time, "time", lambda: clock["now"])
    steps = []

    def look(fleet: Fleet) -> None:
        steps.append(fleet.steps)
        if fleet.steps >= EVERY:
            clock["now"] = 999.0

    assert not train_suite_job(late, look)
    assert steps == [20, 50, 100]
    assert outcome(tmp_path) == []
    clock["now"] = 0.0
    (again,) = plan(tmp_path)
    assert again.runs == job.runs
    written = suite_training.append_suite_row

    def write_one(row, path):
        written(row, path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(suite_training, "append_suite_row", write_one)
        with pytest.raises(KeyboardInterrupt):
            train_suite_job(dataclasses.replace(again, deadline=1000.0))
    assert len(outcome(tmp_path)) == 1
    (last,) = plan(tmp_path)
    assert last.runs == job.runs
    assert train_suite_job(last)
    assert outcome(tmp_path) == outcome(whole)
    assert not list((tmp_path / "fleets").iterdir())
    assert plan(tmp_path) == []


def test_an_interrupted_fleet_is_resumed(whole: Path, tmp_path: Path):
    (job,) = plan(tmp_path)

    def interrupt(fleet: Fleet) -> None:
        if fleet.steps >= 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_suite_job(job, interrupt)
    assert train_suite_job(job)
    assert outcome(tmp_path) == outcome(whole)


@pytest.mark.slow
def test_a_diverging_agent_is_named_and_the_others_have_rows(tmp_path: Path):
    request = small(options={**small().options, "layer_norm": False, "huber": None})
    (job,) = plan(tmp_path, request)
    first, *others = job.runs
    wild = dataclasses.replace(first, config={**first.config, "learning_rate": 1e30})
    job = dataclasses.replace(job, runs=(wild, *others))
    with refused(f"{job.task}: no rows of tsallax, seed {first.seed}: the loss was not finite"):
        train_suite_job(job)
    assert {row.seed for row in read_suite_rows(tmp_path)} == {run.seed for run in others}
    assert not job.files.checkpoint.exists()
