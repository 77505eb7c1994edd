"""Statuses as columns, lines in a log, and a table on a terminal."""

import dataclasses

from small_sweeps import STATUS
from tsallax.paper.sweep import status_table
from tsallax.paper.sweep.jobs import Job
from tsallax.paper.sweep.specification import Run
from tsallax.paper.sweep.status_table import columns, status_display, table_rows
from tsallax.paper.sweep.tasks import DDPG, Variant

DONE = dataclasses.replace(STATUS, share=1.0, finished=2)


def job(actions=9, seed=0):
    variant = DDPG if actions is None else Variant("sparse", "sparse", 0.1)
    runs = (Run(variant, actions, seed), Run(variant, actions, seed + 1))
    return Job("reacher", actions, runs, 100, 5000, {}, 20, "folder")


def test_columns_of_a_job():
    what = "Reacher, 9 actions, 2 agents:"
    assert columns(job(), None) == (what, "waits", "", "", "", "")
    expected = (what, "25%", "1 at -6", "100.00 ms a step", "best -7.25", "ETA 5:00")
    assert columns(job(), STATUS) == expected
    begun = dataclasses.replace(
        STATUS, share=0.0, steps=0, seconds=0.0, reached_threshold=0, best=None
    )
    assert columns(job(), begun) == (what, "0%", "0 at -6", "", "", "")
    assert columns(job(), DONE) == (what, "done", "2 runs", "", "best -7.25", "1:40")
    assert columns(job(None), None)[0] == "Reacher, DDPG, 2 agents:"


def test_of_many_jobs_those_in_training_are_shown():
    jobs = [job(seed=2 * i) for i in range(5)]
    statuses = {jobs[0].name: DONE, jobs[1].name: STATUS}
    assert table_rows(jobs, statuses) == [columns(one, statuses.get(one.name)) for one in jobs]
    few = table_rows(jobs, statuses, max_rows=4)
    assert few[0] == columns(jobs[1], STATUS)
    assert few[1:] == [("5 fleets: 1 done, 1 in training, 3 waiting",)]


def test_statuses_are_lines_in_a_log_and_a_table_on_a_terminal(capsys, monkeypatch):
    mine, other = job(), job(None)
    monkeypatch.setattr(status_table, "LINE_SECONDS", -1.0)
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
