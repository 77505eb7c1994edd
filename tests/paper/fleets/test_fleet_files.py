"""Files of fleets: of one process at a time, and refused where they are damaged."""

import pytest

import small_suites
import small_sweeps
from refusals import refused
from tsallax.paper.fleets.fleet_files import write_state
from tsallax.paper.fleets.job_training import train_job

PLANS = [lambda folder: small_sweeps.plan(small_sweeps.small(), folder), small_suites.plan]


@pytest.fixture(params=PLANS, ids=["sweep", "suite"])
def plan(request):
    """How to plan the jobs of a folder."""
    return request.param


def test_a_fleet_that_another_process_trains_is_refused(plan, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    (job,) = plan(tmp_path)
    job.files.rows.parent.mkdir(parents=True)
    with job.files.rows.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with refused("another process trains", source=tmp_path):
            train_job(job)


def test_a_damaged_checkpoint_is_refused(plan, tmp_path):
    (job,) = plan(tmp_path)
    job.files.checkpoint.parent.mkdir(parents=True)
    job.files.checkpoint.write_bytes(b"not a fleet")
    with refused(job.files.checkpoint.name, "remove it to train its runs from the start"):
        train_job(job)


def test_a_damaged_state_is_refused_with_its_file_where_there_is_a_checkpoint(plan, tmp_path):
    (job,) = plan(tmp_path)
    job.files.state.parent.mkdir(parents=True)
    write_state(job.files, job.description)
    text = job.files.state.read_text()
    job.files.checkpoint.write_text("")
    assert plan(tmp_path) == [job]
    for damaged in (text[:-30], '{"runs": 1}', "[]"):
        job.files.state.write_text(damaged)
        with refused("damaged", "to train its runs again", source=job.files.state):
            plan(tmp_path)
    job.files.checkpoint.unlink()
    assert plan(tmp_path) == [job]
