"""The status of a fleet: what it counts, its file, and its display in lines and tables."""

import dataclasses
import json
import os
from types import SimpleNamespace

import pytest

from small_sweeps import STATUS, plan, small
from tsallax.paper.fleets import job_status
from tsallax.paper.fleets.job_status import (
    columns,
    read_status,
    read_statuses,
    status_display,
    status_of,
    table_rows,
    write_status,
)
from tsallax.paper.sweep.sweep_jobs import SweepJob
from tsallax.paper.sweep.sweep_specification import SweepRun
from tsallax.paper.sweep.sweep_tasks import DDPG_VARIANT, Variant

DONE = dataclasses.replace(STATUS, share=1.0, finished=2)


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
    write_status(job, STATUS, {})
    assert read_status(job) == STATUS
    assert read_statuses([job]) == {job.name: STATUS}


def test_a_damaged_file_or_one_of_an_earlier_version_is_no_status(job):
    write_status(job, STATUS, {})
    text = job.files.state.read_text()
    earlier = {k: v for k, v in json.loads(text).items() if k != "reached_threshold"}
    for damaged in ("", text[:30], "\x00" * 8, "[]", json.dumps(earlier)):
        job.files.state.write_text(damaged)
        assert read_status(job) is None


def shown_job(actions=9, seed=0):
    variant = DDPG_VARIANT if actions is None else Variant("sparse", "sparse", 0.1)
    runs = (SweepRun(variant, actions, seed), SweepRun(variant, actions, seed + 1))
    return SweepJob(sweep=small(), env="Reacher-v5", levels=3, runs=runs, folder="folder")


def test_columns_of_a_job():
    what = "Reacher, 9 actions, 2 agents:"
    assert columns(shown_job(), None) == (what, "waits", "", "", "", "")
    expected = (what, "25%", "1 at -6", "100.00 ms a step", "return -9.5 to -7.25", "ETA 5:00")
    assert columns(shown_job(), STATUS) == expected
    begun = dataclasses.replace(
        STATUS, share=0.0, steps=0, seconds=0.0, reached_threshold=0, best=None, worst=None
    )
    assert columns(shown_job(), begun) == (what, "0%", "0 at -6", "", "", "")
    assert columns(shown_job(), DONE) == (
        what,
        "done",
        "2 runs",
        "",
        "return -9.5 to -7.25",
        "1:40",
    )
    assert columns(shown_job(None), None)[0] == "Reacher, DDPG, 2 agents:"


def test_of_many_jobs_those_in_training_are_shown():
    jobs = [shown_job(seed=2 * i) for i in range(5)]
    statuses = {jobs[0].name: DONE, jobs[1].name: STATUS}
    assert table_rows(jobs, statuses) == [columns(one, statuses.get(one.name)) for one in jobs]
    few = table_rows(jobs, statuses, max_rows=4)
    assert few[0] == columns(jobs[1], STATUS)
    assert few[1:] == [("5 fleets: 1 done, 1 in training, 3 waiting",)]


def test_statuses_are_lines_in_a_log_and_a_table_on_a_terminal(capsys, monkeypatch):
    mine, other = shown_job(), shown_job(None)
    monkeypatch.setattr(job_status, "LINE_SECONDS", -1.0)
    with status_display([mine, other]) as show:
        show({mine.name: STATUS})
    assert capsys.readouterr().err == f"4 runs to train\n{' '.join(columns(mine, STATUS))}\n"
    with status_display([mine, other], show=False) as show:
        show({mine.name: STATUS})
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with status_display([mine]) as show:
        show({mine.name: STATUS})
    shown = capsys.readouterr().err
    assert "waits" in shown
    assert "25%" in shown
