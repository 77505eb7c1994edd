"""Files of fleets: of one process at a time, and refused where they are damaged."""

import pytest

import small_suites
import small_sweeps
from refusals import refused
from tsallax.paper.fleets.fleet_files import write_state
from tsallax.paper.suites.suite_training import train_suite_job
from tsallax.paper.sweep.job_training import train_job

KINDS = [
    (lambda folder: small_sweeps.plan(small_sweeps.small(), folder), train_job),
    (small_suites.plan, train_suite_job),
]


@pytest.fixture(params=KINDS, ids=["sweep", "suite"])
def kind(request):
    """How to plan the jobs of a folder, and how to train one."""
    return request.param


def test_a_fleet_that_another_process_trains_is_refused(kind, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    plan, train = kind
    (job,) = plan(tmp_path)
    job.files.rows.parent.mkdir(parents=True)
    with job.files.rows.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with refused("another process trains", source=tmp_path):
            train(job)


def test_a_damaged_checkpoint_is_refused(kind, tmp_path):
    plan, train = kind
    (job,) = plan(tmp_path)
    job.files.checkpoint.parent.mkdir(parents=True)
    job.files.checkpoint.write_bytes(b"not a fleet")
    with refused(job.files.checkpoint.name, "remove it to train its runs from the start"):
        train(job)


def test_a_damaged_state_is_refused_with_its_file_where_there_is_a_checkpoint(kind, tmp_path):
    plan, _ = kind
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
