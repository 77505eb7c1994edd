"""Training of a job, of a sweep or a suite: interrupted at any point, every run ends with one row,
the same one.
"""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small_suites
from refusals import refused
from small_suites import EVERY, STEPS
from small_sweeps import EPISODES, NAME, OPTIONS, PIECES, Pieces, outcome, plan, small, train
from tsallax.deep.fleet import Fleet
from tsallax.deep.fleet_members import Member
from tsallax.paper.fleets import job_training
from tsallax.paper.fleets.job_status import read_status
from tsallax.paper.fleets.job_training import train_in_process, train_job
from tsallax.paper.fleets.jobs import Job
from tsallax.paper.fleets.row_files import RowFolder, RowFormat
from tsallax.paper.suites.suite_rows import SUITE_ROWS
from tsallax.paper.sweep.sweep_rows import SWEEP_ROWS, compact
from tsallax.paper.sweep.sweep_specification import learner_config
from tsallax.paper.sweep.sweep_tasks import REACHER, choose_variants


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Pieces:
    return Pieces(monkeypatch)


def new_job(folder: Path, **options: Any) -> Job:
    (job,) = plan(small(), folder, **options)
    return job


def interrupt(job: Job, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Train a job that Ctrl-C ends after so many pieces."""
    left = iter(range(after - 1))

    def on_status(status: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job_training, "STATUS_SECONDS", -1.0)
        with pytest.raises(KeyboardInterrupt):
            train_job(job, on_status=on_status)


def test_a_row_of_a_sweep_is_what_the_fleet_gives(whole: Path):
    (variant,) = choose_variants([NAME])
    config = learner_config(REACHER, variant, OPTIONS)
    fleet = Fleet("Reacher-v5", [Member(config, seed) for seed in (0, 1)], actions=3)
    fleet.learn(episodes=EPISODES, progress=False)
    found = SWEEP_ROWS.read(whole)
    assert [row.key for row in found] == [("reacher", NAME, 9, seed) for seed in (0, 1)]
    for i, row in enumerate(found):
        returns = fleet.records[i].returns
        assert row.returns == compact(returns)
        assert (row.episodes, row.steps, row.agents) == (EPISODES, 50 * EPISODES, 2)
        assert row.final == np.mean(returns)
        greedy, sampled = (fleet.evaluate(i, 20, deterministic=d) for d in (True, False))
        assert (row.greedy, row.greedy_error) == (greedy.mean, greedy.standard_error)
        assert (row.sampled, row.sampled_error) == (sampled.mean, sampled.standard_error)
        assert row.greedy != row.sampled
        assert (row.config["net_arch"], row.config["alpha"]) == ([8], 0.1)


def test_an_interrupted_job_is_resumed(whole: Path, tmp_path: Path, monkeypatch, pieces: Pieces):
    job = new_job(tmp_path)
    interrupt(job, monkeypatch, after=7)
    assert pieces.count == 7
    assert not outcome(tmp_path)
    assert read_status(job).share == pytest.approx(7 / EPISODES)
    partial = job.files.checkpoint.with_name(f".{job.files.checkpoint.name}.0123.partial")
    partial.write_text("left by a process that was killed")
    train_job(job)
    assert pieces.count == PIECES
    assert outcome(tmp_path) == outcome(whole)
    assert [path.suffix for path in (tmp_path / "fleets").iterdir()] == [".json"]


def test_a_piece_that_was_interrupted_is_not_saved(
    whole: Path, tmp_path: Path, monkeypatch, pieces: Pieces
):
    """A second Ctrl-C ends a piece before its end: the last whole state counts."""
    monkeypatch.setattr(job_training, "SAVING_SHARE", math.inf)
    job = new_job(tmp_path, save_seconds=-1.0)
    pieces.interrupted = 8
    with pytest.raises(KeyboardInterrupt):
        train_job(job)
    assert job.files.checkpoint.is_file()
    train_job(job)
    assert pieces.count == PIECES + 1
    assert outcome(tmp_path) == outcome(whole)


def test_a_row_that_was_written_before_an_interrupt_is_not_written_again(
    whole: Path, tmp_path: Path, monkeypatch, pieces: Pieces
):
    job = new_job(tmp_path)
    with monkeypatch.context() as patch:
        written = write_one_row(patch)
        with pytest.raises(KeyboardInterrupt):
            train_job(job)
    assert [row.seed for row in SWEEP_ROWS.read(tmp_path)] == written == [0]
    train_job(job)
    assert pieces.count == PIECES
    assert outcome(tmp_path) == outcome(whole)


def write_one_row(patch: pytest.MonkeyPatch) -> list[int]:
    """Interrupt the writing of every row but the first; the seed of that."""
    append, written = RowFormat.append, []

    def append_once(form: RowFormat, row: Any, path: Path) -> None:
        if written:
            raise KeyboardInterrupt
        append(form, row, path)
        written.append(row.seed)

    patch.setattr(RowFormat, "append", append_once)
    return written


def test_a_run_that_another_process_has_finished_has_one_row(whole, tmp_path, monkeypatch):
    """Two commands that cut the same runs into other fleets."""
    monkeypatch.setattr(job_training, "STATUS_SECONDS", -1.0)
    job = new_job(tmp_path)
    done = [line for file in (whole / "rows").iterdir() for line in file.read_text().splitlines()]

    def finish_elsewhere(status: Any) -> None:
        (tmp_path / "rows" / "other.jsonl").write_text(done[0] + "\n")

    train_job(job, RowFolder(tmp_path, SWEEP_ROWS), finish_elsewhere)
    assert len(SWEEP_ROWS.read_file(job.files.rows)) == 1
    assert len(SWEEP_ROWS.read(tmp_path)) == 2


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the rows of the small suite, trained at once."""
    folder = tmp_path_factory.mktemp("suite")
    (job,) = small_suites.plan(folder)
    assert train_job(job)
    return folder


def test_a_row_of_a_suite_is_what_the_fleet_gives(suite: Path, tmp_path: Path):
    (job,) = small_suites.plan(tmp_path)
    members = [job.member_of(run) for run in job.runs]
    fleet = Fleet("CartPole-v1", members, workers=0)
    halfway: list[list[float]] = []

    def look(fleet: Fleet) -> None:
        if fleet.steps == EVERY:
            halfway.append([fleet.evaluate(i, 2).mean for i in (0, 1)])

    fleet.learn(steps=STEPS, callback=look, progress=False)
    rows = SUITE_ROWS.read(suite)
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
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The deadline comes after the segment that ends at step 100; an interrupt after the first
    row."""
    monkeypatch.setattr(job_training, "STATUS_SECONDS", -1.0)
    (job,) = small_suites.plan(tmp_path)
    clock = {"now": 0.0}
    monkeypatch.setattr(job_training.time, "time", lambda: clock["now"])
    steps = []

    def look(status: Any) -> None:
        steps.append(status.steps)
        if status.steps >= EVERY:
            clock["now"] = 999.0

    assert not train_job(dataclasses.replace(job, deadline=1000.0), on_status=look)
    assert steps == [20, 50, 100]
    assert small_suites.outcome(tmp_path) == []
    clock["now"] = 0.0
    (again,) = small_suites.plan(tmp_path)
    assert again.runs == job.runs
    with monkeypatch.context() as patch:
        write_one_row(patch)
        with pytest.raises(KeyboardInterrupt):
            train_job(dataclasses.replace(again, deadline=1000.0))
    assert len(small_suites.outcome(tmp_path)) == 1
    (last,) = small_suites.plan(tmp_path)
    assert last.runs == job.runs
    assert train_job(last)
    assert small_suites.outcome(tmp_path) == small_suites.outcome(suite)
    assert [path.suffix for path in (tmp_path / "fleets").iterdir()] == [".json"]
    assert small_suites.plan(tmp_path) == []


def test_nothing_is_trained_after_the_deadline(tmp_path: Path):
    assert not train_job(new_job(tmp_path, deadline=1.0))
    assert not list(tmp_path.iterdir())


def test_an_interrupted_fleet_of_a_suite_is_resumed(suite: Path, tmp_path: Path, monkeypatch):
    (job,) = small_suites.plan(tmp_path)
    interrupt(job, monkeypatch, after=4)
    assert read_status(job).steps == 150
    assert train_job(job)
    assert small_suites.outcome(tmp_path) == small_suites.outcome(suite)


def test_damaged_curves_beside_a_checkpoint_are_refused(tmp_path: Path, monkeypatch):
    (job,) = small_suites.plan(tmp_path)
    interrupt(job, monkeypatch, after=1)
    state = json.loads(job.files.state.read_text())
    job.files.state.write_text(json.dumps({**state, "counts": [[5, [1]]]}))
    with refused("damaged", source=job.files.state):
        train_job(job)


def test_a_process_checks_whether_it_is_to_go_on(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(job_training, "STATUS_SECONDS", -1.0)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_in_process(new_job(tmp_path), interrupt)


WILD = {"layer_norm": False, "huber": None}
"""Options with which a learning rate of 1e30 diverges."""


@pytest.mark.slow
def test_a_diverging_agent_is_named_and_the_others_have_rows(tmp_path: Path, capsys):
    request = small_suites.small(options={**small_suites.OPTIONS, **WILD})
    (job,) = small_suites.plan(tmp_path, request)
    first, *others = job.runs
    wild = dataclasses.replace(first, config={**first.config, "learning_rate": 1e30})
    job = dataclasses.replace(job, runs=(wild, *others))
    with refused(f"{job.task}: no rows of tsallax, seed {first.seed}: the loss was not finite"):
        train_job(job)
    assert {row.seed for row in SUITE_ROWS.read(tmp_path)} == {run.seed for run in others}
    assert not job.files.checkpoint.exists()
    train_in_process(job, lambda: None)
    assert "tsallax, seed 0: the loss was not finite" in capsys.readouterr().err


def test_runs_that_all_diverge_are_named(tmp_path: Path):
    (job,) = plan(small(options={**OPTIONS, "learning_rate": 1e30}), tmp_path)
    with refused(f"no rows of {NAME}, seed 0; {NAME}, seed 1: the loss was not finite"):
        train_job(job)
    assert not SWEEP_ROWS.read(tmp_path)


def test_runs_that_all_diverge_leave_no_checkpoint(tmp_path: Path, monkeypatch):
    """One would make the table look as if only its time limit had come first."""
    saved = []
    save = Fleet.save
    monkeypatch.setattr(job_training._Training, "_save_is_due", lambda self: True)
    monkeypatch.setattr(Fleet, "save", lambda fleet, path: (save(fleet, path), saved.append(path)))
    wild = small(options={**OPTIONS, "learning_rate": 1e30, "learning_starts": 100})
    with refused(f"no rows of {NAME}, seed 0; {NAME}, seed 1: the loss was not finite"):
        train(wild, tmp_path, at_once=2)
    assert saved
    assert not saved[0].exists()
