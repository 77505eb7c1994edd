"""Rows of sweeps: impossible values are refused, and options have their current names."""

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import refused
from small_sweeps import finished_row
from tsallax.paper.sweep.sweep_rows import SWEEP_ROWS, first_episode_at

ROOT = Path(__file__).parents[3]


@given(st.lists(st.integers(-5, 5).map(float), max_size=12), st.integers(1, 4))
def test_first_episode_at_the_threshold_is_the_first_mean_over_the_window(returns, window):
    ends = range(window, len(returns) + 1)
    expected = [n for n in ends if sum(returns[n - window : n]) / window >= 1]
    assert first_episode_at(returns, 1.0, window) == (expected[0] if expected else None)


@pytest.mark.parametrize(
    "change",
    [{"explore": "foo"}, {"update": None}, {"alpha": "x"}, {"alpha": 0.5}, {"reached": 0},
     {"reached": 10**6}, {"every": 0}, {"every": 3}, {"episodes": -5}, {"evaluated": "x"},
     {"agents": "x"}, {"provenance": []}, {"final": 10**400}, {"final": "high"},
     {"greedy": True}, {"greedy": None}, {"greedy_error": -1.0}, {"actions": -3},
     {"actions": [9]}, {"seed": None}, {"task": "dance"}, {"returns": [[]]}, {"returns": ["x"]},
     {"returns": []}, {"task": []}, {"explore": {}}],
    ids=str,
)  # fmt: skip
def test_impossible_values_are_refused_with_their_field(change):
    row = {"format": 1, **dataclasses.asdict(finished_row(0)), **change}
    with refused(" cannot be ", source="here"):
        SWEEP_ROWS.parsed(json.loads(json.dumps(row)), "here")


def test_rows_of_earlier_versions_have_the_current_names_of_options(tmp_path):
    with (ROOT / "results" / "reacher.jsonl").open() as file:
        (tmp_path / "a.jsonl").write_text(file.readline())
    (row,) = SWEEP_ROWS.read(tmp_path)
    assert {"batch_size", "buffer_size", "gamma", "net_arch"} <= row.config.keys()
    assert not {"batch", "capacity", "discount", "hidden"} & row.config.keys()
