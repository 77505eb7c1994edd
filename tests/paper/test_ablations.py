"""The runs with other schedules of epsilon are complete, and are compared as they should be."""

import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from tsallax.paper.sweep.rows import read_file

ROOT = Path(__file__).parents[2]


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
    for row in (row for rows in ablations.values() for row in rows):
        before = usual[row.task, row.actions]
        names = before.keys() | row.config.keys()
        differ = {name for name in names if before.get(name) != row.config.get(name)}
        assert {"epsilon"} <= differ <= {"epsilon", "update", "alpha"}
    sizes = {name: len({row.key for row in rows}) for name, rows in ablations.items()}
    reacher = {f"reacher-epsilon-{steps}": 81 for steps in (50_000, 25_000, 12_500)}
    assert sizes == {**reacher, "pendulum-epsilon-0.001": 108}


def test_the_comparison_counts_the_runs_that_reached_the_threshold(ablations):
    command = [sys.executable, ROOT / "ablations" / "compare.py"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name, rows in ablations.items():
        label = name.split("-", 1)[1]
        lines = [line for line in printed.splitlines() if line.split()[:1] == [label]]
        for line, actions in zip(lines, sorted({row.actions for row in rows}), strict=True):
            times = [r.reached for r in rows if r.actions == actions and r.reached is not None]
            assert line.split()[1:5] == [f"{len(times)}", "of", "27", f"{median(times):,.0f}"]
            assert 0 <= float(line.split()[5]) <= 1
