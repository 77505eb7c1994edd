"""What is left of a task: fleets begun before as they were, then runs without a row or fleet."""

import json
from pathlib import Path

import pytest

import small_suites
import small_sweeps
from tsallax.paper.fleets.fleet_files import write_state
from tsallax.paper.fleets.jobs import Job, pending_jobs

PLANS = [
    lambda folder: small_sweeps.plan(small_sweeps.small(4), folder, at_once=4),
    lambda folder: small_suites.plan(folder, small_suites.small(seeds=4), at_once=4),
]


@pytest.fixture(params=PLANS, ids=["sweep", "suite"])
def whole(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    """A job of four runs."""
    (job,) = request.param(tmp_path)
    return job


def begin(job: Job) -> Job:
    """Leave the files of a fleet in training."""
    job.files.state.parent.mkdir(parents=True, exist_ok=True)
    write_state(job.files, job.description)
    job.files.checkpoint.touch()
    return job


def seeds(jobs: list[Job]) -> list[list[int]]:
    return [[run.seed for run in job.runs] for job in jobs]


def test_runs_without_a_row_are_cut_into_fleets(whole: Job):
    done = {whole.key(whole.runs[1])}
    assert seeds(pending_jobs(whole, done, at_once=2)) == [[0, 2], [3]]
    assert pending_jobs(whole, {whole.key(run) for run in whole.runs}, at_once=2) == []


def test_a_fleet_that_was_begun_comes_first_with_all_its_runs(whole: Job):
    first, _ = pending_jobs(whole, set(), at_once=3)
    begin(first)
    found = pending_jobs(whole, {whole.key(whole.runs[0])}, at_once=1)
    assert found[0] == first
    assert seeds(found) == [[0, 1, 2], [3]]
    assert found[0].files == first.files


def test_the_checkpoint_of_finished_runs_is_removed(whole: Job):
    begin(whole)
    assert pending_jobs(whole, {whole.key(run) for run in whole.runs}, at_once=1) == []
    assert [path.suffix for path in whole.files.state.parent.iterdir()] == [".json"]


def test_a_description_is_plain_data_of_the_same_job(whole: Job):
    assert whole.with_description(json.loads(json.dumps(whole.description))) == whole


def test_names_depend_on_the_runs(whole: Job):
    parts = pending_jobs(whole, set(), at_once=1)
    assert len({job.name for job in (whole, *parts)}) == 5
    assert len({job.name.rpartition("-")[0] for job in (whole, *parts)}) == 1
