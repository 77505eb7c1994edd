"""The status of a fleet: what it counts, and its file."""

import json
import os
from types import SimpleNamespace

import pytest

from small_sweeps import STATUS, plan, small
from tsallax.paper.sweep.job_status import read_status, read_statuses, status_of, write_status


@pytest.fixture
def job(tmp_path):
    (job,) = plan(small(), tmp_path)
    job.files.state.parent.mkdir()
    return job


def test_status_counts_the_finished_runs_of_its_own_fleet(job):
    records = [SimpleNamespace(returns=[-9.0] * 60 + [-5.0] * 100), SimpleNamespace(returns=[-7.0])]
    fleet = SimpleNamespace(records=records, share=lambda *limits: 0.5, steps=70, seconds=3.0)
    written = {job.key(job.runs[1]), ("reacher", "DDPG", None, 0)}
    status = status_of(job, fleet, written)
    assert (status.finished, status.reached_threshold, status.best) == (1, 1, -5.0)
    assert (status.share, status.steps, status.process) == (0.5, 70, os.getpid())
    fleet.records = [SimpleNamespace(returns=[])]
    assert status_of(job, fleet, set()).best is None


def test_status_reads_back_as_it_was_written(job):
    assert read_status(job) is None
    assert read_statuses([job]) == {}
    write_status(job, STATUS)
    assert read_status(job) == STATUS
    assert read_statuses([job]) == {job.name: STATUS}


def test_a_damaged_file_or_one_of_an_earlier_version_is_no_status(job):
    write_status(job, STATUS)
    text = job.files.state.read_text()
    earlier = {k: v for k, v in json.loads(text).items() if k != "reached_threshold"}
    for damaged in ("", text[:30], "\x00" * 8, "[]", json.dumps(earlier)):
        job.files.state.write_text(damaged)
        assert read_status(job) is None
