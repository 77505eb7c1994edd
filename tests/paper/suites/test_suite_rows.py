"""Rows of suites: impossible values are refused, and JAX is not needed."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from refusals import refused
from small_suites import example_row
from tsallax.paper.suites.suite_rows import SUITE_ROWS


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
        SUITE_ROWS.parsed(json.loads(json.dumps(data)), "here")
    with refused(f"{name} of a row cannot be"):
        SUITE_ROWS.append(example_row(**{name: value}), tmp_path / "a.suite.jsonl")
    assert not list(tmp_path.iterdir())


def test_speed_is_that_of_all_agents_together():
    assert example_row(steps=200, agents=10, seconds=4.0).steps_per_second == 500.0


def test_reading_and_writing_rows_does_not_import_jax():
    code = (
        "import sys; import tsallax.paper.suites.suite_rows, tsallax.paper.suites.suite_tasks; "
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
