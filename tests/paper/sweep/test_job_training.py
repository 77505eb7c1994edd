"""Training of a job: interrupted at any point, every run ends with one row, the same one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refusals import refused
from small_sweeps import EPISODES, NAME, OPTIONS, PIECES, Pieces, outcome, plan, small
from tsallax.deep.fleet import Diverged, Fleet, Member
from tsallax.paper.sweep import job_training, rows
from tsallax.paper.sweep.job_status import read_status
from tsallax.paper.sweep.job_training import train_job
from tsallax.paper.sweep.jobs import Job
from tsallax.paper.sweep.rows import RowFolder, compact, read_file, read_rows
from tsallax.paper.sweep.specification import learner_config
from tsallax.paper.sweep.tasks import REACHER, choose_variants


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


def test_a_row_is_what_the_fleet_gives(whole: Path):
    (variant,) = choose_variants([NAME])
    config = learner_config(REACHER, variant, OPTIONS)
    fleet = Fleet("Reacher-v5", [Member(config, seed) for seed in (0, 1)], actions=3)
    fleet.learn(episodes=EPISODES, progress=False)
    found = read_rows(whole)
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


def test_a_piece_that_was_interrupted_is_not_saved(whole: Path, tmp_path: Path, pieces: Pieces):
    """A second Ctrl-C ends a piece before its end: the last whole state counts."""
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
    append, written = rows.append_row, []

    def append_once(row: rows.Row, path: Path) -> None:
        if written:
            raise KeyboardInterrupt
        append(row, path)
        written.append(row.seed)

    job = new_job(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(rows, "append_row", append_once)
        with pytest.raises(KeyboardInterrupt):
            train_job(job)
    assert [row.seed for row in read_rows(tmp_path)] == written == [0]
    train_job(job)
    assert pieces.count == PIECES
    assert outcome(tmp_path) == outcome(whole)


def test_a_run_that_another_process_has_finished_has_one_row(whole, tmp_path, monkeypatch):
    """Two commands that cut the same runs into other fleets."""
    monkeypatch.setattr(job_training, "STATUS_SECONDS", -1.0)
    job = new_job(tmp_path)
    done = [line for file in (whole / "rows").iterdir() for line in file.read_text().splitlines()]

    def finish_elsewhere(status: Any) -> None:
        (tmp_path / "rows" / "other.jsonl").write_text(done[0] + "\n")

    train_job(job, RowFolder(tmp_path), finish_elsewhere)
    assert len(read_file(job.files.rows)) == 1
    assert len(read_rows(tmp_path)) == 2


def test_a_run_that_diverges_is_named(tmp_path: Path, monkeypatch):
    def diverge(fleet: Fleet, **limits: Any) -> None:
        raise Diverged(1, "Reacher-v5", 100)

    monkeypatch.setattr(Fleet, "learn", diverge)
    with refused("Sparse+SparseBellman-0.1, seed 1: "):
        train_job(new_job(tmp_path))
