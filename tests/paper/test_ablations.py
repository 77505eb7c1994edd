"""The runs with other schedules of epsilon are complete, and are compared as they should be."""

import runpy
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from tsallax import DeepQConfig
from tsallax.deep.options import to_mapping
from tsallax.paper.fleets.row_files import RowFormat
from tsallax.paper.sweep.sweep_rows import SWEEP_ROWS

ROOT = Path(__file__).parents[2]
DEFAULTS = to_mapping(DeepQConfig())
"""Of options that are newer than a row."""
read_file = cache(SWEEP_ROWS.read_file)


@pytest.fixture(scope="module")
def ablations():
    return {path.parent.name: read_file(path) for path in ROOT.glob("ablations/*/*.jsonl")}


def test_the_runs_are_complete_and_differ_in_epsilon_alone(ablations):
    usual = {
        (row.task, row.actions): row.config
        for task in ("reacher", "pendulum")
        for row in read_file(ROOT / "results" / f"{task}.jsonl")
        if row.explore == "epsilon"
    }
    for row in (row for runs in ablations.values() for row in runs):
        before = {**DEFAULTS, **usual[row.task, row.actions]}
        here = {**DEFAULTS, **row.config}
        differ = {name for name in before if before[name] != here[name]}
        assert {"epsilon"} <= differ <= {"epsilon", "update", "alpha"}
    sizes = {name: len({row.key for row in runs}) for name, runs in ablations.items()}
    reacher = {f"reacher-epsilon-{steps}": 81 for steps in (50_000, 25_000, 12_500)}
    assert sizes == {**reacher, "pendulum-epsilon-0.001": 108}


def test_the_comparison_counts_the_runs_that_reached_the_threshold(ablations, monkeypatch, capsys):
    monkeypatch.setattr(RowFormat, "read_file", lambda form, path: read_file(path))
    runpy.run_path(str(ROOT / "ablations" / "compare.py"))["main"]()
    printed = capsys.readouterr().out
    for name, runs in ablations.items():
        label = name.split("-", 1)[1]
        lines = [line for line in printed.splitlines() if line.split()[:1] == [label]]
        for line, actions in zip(lines, sorted({row.actions for row in runs}), strict=True):
            times = [r.reached for r in runs if r.actions == actions and r.reached is not None]
            assert line.split()[1:5] == [f"{len(times)}", "of", "27", f"{median(times):,.0f}"]
            assert 0 <= float(line.split()[5]) <= 1
