"""Files of records: whole lines, read back as they were, and nothing else."""

from pathlib import Path

import pytest

from refusals import refused
from tsallax.files.json_lines import append_line, read_lines


def test_records_are_read_back_in_order_with_their_places(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    for seed in range(3):
        append_line(path, {"seed": seed, "value": 0.1})
    expected = [(f"{path}, line {seed + 1}", {"seed": seed, "value": 0.1}) for seed in range(3)]
    assert read_lines(path) == expected


def test_a_line_cut_off_by_a_crash_is_ignored_and_replaced(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    append_line(path, {"seed": 0})
    with path.open("ab") as file:
        file.write(b'{"seed": 1, "val')
    assert [record for _, record in read_lines(path)] == [{"seed": 0}]
    append_line(path, {"seed": 2})
    assert path.read_text() == '{"seed": 0}\n{"seed": 2}\n'


def test_other_files_are_refused(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"seed": 0}\n{"seed": \n')
    with refused("not JSON", source=f"{path}, line 2"):
        read_lines(path)
    path.write_bytes(b"\xff\xfe\n")
    with refused("not text", source=path):
        read_lines(path)


def test_nan_is_not_written(tmp_path: Path):
    with pytest.raises(ValueError, match="JSON"):
        append_line(tmp_path / "a.jsonl", {"value": float("nan")})
    assert not (tmp_path / "a.jsonl").exists()
