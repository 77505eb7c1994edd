"""Rows of suites: what is written is read back, and a damaged one is refused."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from refusals import refused
from small_suites import example_row
from tsallax.paper.suites.suite_rows import append_suite_row, parse_suite_row, read_suite_rows
from tsallax.paper.sweep.rows import read_rows


def test_rows_are_read_back_and_are_not_rows_of_the_paper(tmp_path: Path):
    rows = [example_row(seed=seed) for seed in (0, 1)]
    for row in rows:
        append_suite_row(row, tmp_path / "a.suite.jsonl")
    assert read_suite_rows(tmp_path) == rows
    assert read_suite_rows(tmp_path, tmp_path) == rows
    assert read_rows(tmp_path) == []


def test_two_different_rows_of_one_run_are_refused(tmp_path: Path):
    append_suite_row(example_row(), tmp_path / "a.suite.jsonl")
    append_suite_row(example_row(greedy=21.0), tmp_path / "b.suite.jsonl")
    with refused("a.suite.jsonl", "b.suite.jsonl", "CartPole-v1, tsallax, seed 0", "remove one"):
        read_suite_rows(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("greedy", "20"),
        ("greedy", 1e308),
        ("greedy_error", -1.0),
        ("seconds", 0.0),
        ("steps", 0),
        ("steps", 10.5),
        ("evaluated", 1),
        ("seed", -1),
        ("agents", True),
        ("levels", 1),
        ("agent", ""),
        ("task", 3),
        ("config", []),
        ("evaluations", [[300, 1.0, 2]]),
        ("evaluations", [[100, 1.0, 2], [100, 2.0, 2]]),
        ("evaluations", [[100, None, 2]]),
        ("training", [[100, 1.0, 0]]),
        ("training", [[100, 1.0]]),
        ("training", "none"),
    ],
)
def test_a_row_with_an_impossible_value_is_refused(name: str, value: Any, tmp_path: Path):
    data = {"format": 1, **dataclasses.asdict(example_row()), name: value}
    with refused(f"{name} cannot be", source="here"):
        parse_suite_row(json.loads(json.dumps(data)), "here")
    with refused(f"{name} of a row cannot be"):
        append_suite_row(example_row(**{name: value}), tmp_path / "a.suite.jsonl")
    assert not list(tmp_path.iterdir())


def test_other_records_are_refused():
    data = {"format": 1, **dataclasses.asdict(example_row())}
    for wrong in (None, [], {"format": 2}, {**data, "format": 0}):
        with refused("not a row of a table of this version"):
            parse_suite_row(wrong, "here")
    with refused("colour missing or unknown"):
        parse_suite_row({**data, "colour": "red"}, "here")
    del data["greedy"]
    with refused("greedy missing or unknown"):
        parse_suite_row(data, "here")


def test_speed_is_that_of_all_agents_together():
    assert example_row(steps=200, agents=10, seconds=4.0).steps_per_second == 500.0


def test_reading_and_writing_rows_does_not_import_jax():
    code = (
        "import sys; import tsallax.paper.suites.suite_rows, tsallax.paper.suites.suite_tasks; "
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
