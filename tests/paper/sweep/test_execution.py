"""Sweeps in one process: what is missing is trained, statuses are displayed, rows come back."""

from contextlib import contextmanager

import pytest

from small_sweeps import STATUS, finished_folder, finished_row, small
from tsallax.errors import InvalidInput
from tsallax.paper.sweep import execution
from tsallax.paper.sweep.execution import train_sweeps


def test_only_missing_runs_are_trained_and_their_statuses_displayed(tmp_path, monkeypatch):
    """In one process no status and no new row is read from a file."""
    path, shown = finished_folder(tmp_path), []

    @contextmanager
    def display(jobs, show):
        yield lambda statuses: shown.append(dict(statuses))

    def train(job, rows, on_status):
        on_status(STATUS)
        for run in job.runs:
            rows.append(finished_row(run.seed), path)
        monkeypatch.setattr("tsallax.paper.sweep.rows.read_file", None)

    monkeypatch.setattr(execution, "train_job", train)
    monkeypatch.setattr(execution, "read_statuses", None)
    monkeypatch.setattr(execution, "status_display", display)
    rows = train_sweeps([small(seeds=6)], tmp_path, at_once=2)
    assert [row.seed for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [len(statuses) for statuses in shown] == [1, 2]
    assert set(shown[1].values()) == {STATUS}


@pytest.mark.parametrize(
    "options",
    [{"device": "tpu"}, {"device": "tpu", "ray": "local"}, {"at_once": 0}, {"processes": 0},
     {"processes": 2, "ray": "local"}],
    ids=str,
)  # fmt: skip
def test_resources_that_cannot_be_used_are_refused_before_any_work(options, tmp_path):
    with pytest.raises(InvalidInput):
        train_sweeps([small()], tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
