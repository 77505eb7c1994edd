"""Curves beside a checkpoint: they agree with the fleet whatever was written last."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from refusals import refused
from small_suites import plan
from tsallax.paper.suites.fleet_progress import FleetProgress, read_progress, write_progress
from tsallax.paper.suites.suite_jobs import Protocol, SuiteJob


@pytest.fixture
def job(tmp_path: Path) -> SuiteJob:
    (made,) = plan(tmp_path)
    made.files.state.parent.mkdir()
    return made


def fleet(steps: int, *episodes: int) -> SimpleNamespace:
    records = [SimpleNamespace(returns=[1.0] * count) for count in episodes]
    return SimpleNamespace(steps=steps, records=records)


def test_evaluations_are_due_at_multiples_and_milestones_but_not_at_the_end(job: SuiteJob):
    protocol = Protocol(1000, 300, 10, 100, milestones=(450,))
    job = SuiteJob(job.suite, job.task, job.env, None, job.runs, protocol, job.folder)
    progress = FleetProgress()
    due = {at: progress.record(job, fleet(at, 1, 1)) for at in (150, 300, 450, 600, 910, 1000)}
    assert due == {150: None, 300: 10, 450: 100, 600: 10, 910: 10, 1000: None}


def test_a_training_curve_has_the_means_between_its_entries():
    progress = FleetProgress(counts=[(10, [1, 2]), (20, [1, 3]), (30, [4, 3])])
    returns = [1.0, 2.0, 3.0, 7.0]
    assert progress.training_curve(returns, 0) == ((10, 1.0, 1), (30, 4.0, 3))
    assert progress.training_curve(returns[:3], 1) == ((10, 1.5, 2), (20, 3.0, 1))


def test_entries_after_the_checkpoint_are_dropped(job: SuiteJob):
    counts = [(50, [1, 2]), (100, [3, 4]), (150, [5, 6])]
    evaluations = [(100, 2, [9.0, 9.5]), (150, 2, [8.0, 8.5])]
    write_progress(job, FleetProgress(150, counts, evaluations))
    assert read_progress(job, 150) == FleetProgress(150, counts, evaluations)
    assert read_progress(job, 100) == FleetProgress(100, counts[:2], evaluations[:1])


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"counts": [[5, [1]]], "evaluations": []}',
             '{"counts": [[-5, [1, 2]]], "evaluations": []}',
             '{"counts": [], "evaluations": [[5, 2, [1, "x"]]]}'],
)  # fmt: skip
def test_a_damaged_file_is_refused(job: SuiteJob, text: str):
    job.files.state.write_text(text)
    with refused("damaged", source=job.files.state):
        read_progress(job, 100)
