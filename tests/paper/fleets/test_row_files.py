"""Rows in files: whole lines, read back as they were, each run once; other lines are refused."""

import dataclasses
import json

import pytest

from refusals import refused
from small_suites import example_row
from small_sweeps import finished_row
from tsallax.paper.fleets.row_files import RowFolder, RowFormat
from tsallax.paper.suites.suite_rows import SUITE_ROWS
from tsallax.paper.sweep.sweep_rows import SWEEP_ROWS

KINDS = [(SWEEP_ROWS, finished_row), (SUITE_ROWS, lambda seed: example_row(seed=seed))]
both_kinds = pytest.mark.parametrize(("kind", "make"), KINDS, ids=["sweep", "suite"])


def written(kind, folder, *rows, name="a"):
    """A file of rows; gives its path."""
    path = folder / f"{name}{kind.suffix}"
    for row in rows:
        kind.append(row, path)
    return path


@both_kinds
def test_rows_are_read_back_each_once_and_not_as_those_of_the_other_kind(kind, make, tmp_path):
    rows = [make(0), make(1)]
    written(kind, tmp_path, *rows)
    written(kind, tmp_path, *rows[:1], name="same")
    assert kind.read(tmp_path) == kind.read(tmp_path, tmp_path) == rows
    (other,) = (each for each, _ in KINDS if each is not kind)
    assert other.read(tmp_path) == []


@both_kinds
def test_two_different_rows_of_a_run_are_refused_unless_in_time_and_place(kind, make, tmp_path):
    one = written(kind, tmp_path, make(0), make(1))
    again = dataclasses.replace(make(0), seconds=77.0, agents=9, provenance={"device": "another"})
    other = written(kind, tmp_path, again, name="other")
    assert len(kind.read(tmp_path)) == 2, "the same run, made twice"
    other.unlink()
    written(kind, tmp_path, dataclasses.replace(make(0), greedy=99.0), name="other")
    with refused(one.name, other.name, make(0).label, "seed 0", "remove one"):
        kind.read(tmp_path)


@both_kinds
def test_a_line_that_is_no_row_is_refused_with_its_number(kind, make, tmp_path):
    path = written(kind, tmp_path, make(0), make(1))
    first, second, _ = path.read_text().split("\n")
    row = json.loads(first)
    without_seed = {name: value for name, value in row.items() if name != "seed"}
    wrong = [[], None, {**row, "format": 0}, without_seed, {**row, "colour": "red"}]
    for line in ("", first[:-1], *map(json.dumps, wrong)):
        path.write_text("\n".join([second, line, first, ""]))
        with refused(source=f"{path}, line 2"):
            kind.read(tmp_path)
    path.write_bytes(b"\xff\xfe")
    with refused("not text"):
        kind.read(tmp_path)


@both_kinds
def test_a_process_parses_every_file_once_unless_another_writes_to_it(
    kind, make, tmp_path, monkeypatch
):
    path = written(kind, tmp_path, make(0), make(1))
    parsed, read_file = [], RowFormat.read_file

    def parse(form, file):
        parsed.append(file)
        return read_file(form, file)

    monkeypatch.setattr(RowFormat, "read_file", parse)
    folder = RowFolder(tmp_path, kind)
    assert folder.read() == folder.read() == [make(0), make(1)]
    folder.append(make(2), path)
    assert [row.seed for row in folder.read()] == [0, 1, 2]
    assert parsed == [path]
    other = written(kind, tmp_path, make(3), name="other")
    kind.append(make(4), path)
    assert sorted(row.seed for row in folder.read()) == [0, 1, 2, 3, 4]
    assert sorted(parsed) == sorted([path, path, other])
    folder.append(make(5), path.with_name(f"new{kind.suffix}"))
    path.unlink()
    assert sorted(row.seed for row in folder.read()) == [3, 5]
    assert RowFolder(tmp_path / "none", kind).read() == []
