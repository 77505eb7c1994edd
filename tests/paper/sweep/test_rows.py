"""Rows: whole lines, each run once, parsed once; damaged ones are refused."""

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import refused
from small_sweeps import finished_folder, finished_row
from tsallax.paper.sweep import rows
from tsallax.paper.sweep.rows import RowFolder, append_row, first_episode_at, read_file, read_rows

ROOT = Path(__file__).parents[3]


@given(st.lists(st.integers(-5, 5).map(float), max_size=12), st.integers(1, 4))
def test_first_episode_at_the_threshold_is_the_first_mean_over_the_window(returns, window):
    ends = range(window, len(returns) + 1)
    expected = [n for n in ends if sum(returns[n - window : n]) / window >= 1]
    assert first_episode_at(returns, 1.0, window) == (expected[0] if expected else None)


@pytest.mark.parametrize("cut", [1, 40, 10_000])
def test_a_row_is_appended_to_whole_lines(cut, tmp_path):
    path = finished_folder(tmp_path)
    one, two = read_file(path)
    text = path.read_bytes()
    path.write_bytes(text[: max(text.index(b"\n") + 1, len(text) - cut)])
    assert read_file(path) == [one]
    append_row(two, path)
    assert path.read_bytes() == text


def test_two_different_rows_of_a_run_are_refused(tmp_path):
    path = finished_folder(tmp_path)
    other = path.with_name("other.jsonl")
    other.write_text(path.read_text())
    assert len(read_rows(tmp_path)) == 2
    other.write_text(path.read_text().replace('"seconds": ', '"seconds": 1'))
    assert len(read_rows(tmp_path)) == 2, "the same run, made twice"
    other.write_text(path.read_text().replace('"greedy": -', '"greedy": -1'))
    with refused("9 actions, seed 0"):
        read_rows(tmp_path)


def test_a_process_parses_every_file_once_unless_another_writes_to_it(tmp_path, monkeypatch):
    path = finished_folder(tmp_path)
    parsed = []
    monkeypatch.setattr(rows, "read_file", lambda file: parsed.append(file.name) or read_file(file))
    folder = RowFolder(tmp_path)
    assert folder.read() == folder.read() == read_file(path)
    folder.append(finished_row(2), path)
    assert [row.seed for row in folder.read()] == [0, 1, 2]
    assert parsed == [path.name]
    append_row(finished_row(3), path.with_name("other.jsonl"))
    append_row(finished_row(4), path)
    assert sorted(row.seed for row in folder.read()) == [0, 1, 2, 3, 4]
    assert sorted(parsed) == sorted([path.name, path.name, "other.jsonl"])
    folder.append(finished_row(5), path.with_name("new.jsonl"))
    path.unlink()
    assert sorted(row.seed for row in folder.read()) == [3, 5]
    assert RowFolder(tmp_path / "none").read() == []


def test_a_line_that_is_no_row_is_refused_with_its_number(tmp_path):
    path = finished_folder(tmp_path)
    first, second, _ = path.read_text().split("\n")
    row = json.loads(first)
    without_seed = {name: value for name, value in row.items() if name != "seed"}
    for line in ("", first[:-1], "[]", json.dumps({**row, "format": 0}), json.dumps(without_seed)):
        path.write_text("\n".join([second, line, first, ""]))
        with refused(source=f"{path}, line 2"):
            read_rows(tmp_path)
    path.write_bytes(b"\xff\xfe")
    with refused("not text"):
        read_rows(tmp_path)


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
def test_impossible_values_are_refused_with_their_field(change, tmp_path):
    row = {"format": 1, **dataclasses.asdict(finished_row(0)), **change}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with refused(" cannot be ", source=f"{path}, line 1"):
        read_rows(tmp_path)


def test_rows_of_earlier_versions_have_the_current_names_of_options(tmp_path):
    with (ROOT / "results" / "reacher.jsonl").open() as file:
        (tmp_path / "a.jsonl").write_text(file.readline())
    (row,) = read_rows(tmp_path)
    assert {"batch_size", "buffer_size", "gamma", "net_arch"} <= row.config.keys()
    assert not {"batch", "capacity", "discount", "hidden"} & row.config.keys()
