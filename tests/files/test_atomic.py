"""A file appears complete or not at all."""

from pathlib import Path

import pytest

from tsallax.files.atomic import PARTIAL, whole


def test_a_file_is_replaced_only_after_success(tmp_path: Path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with whole(target) as draft:
        draft.write_text("new")
        assert draft.parent == tmp_path
        assert draft in PARTIAL
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_an_exception_leaves_the_old_file_and_no_other(tmp_path: Path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def interrupted():
        with whole(target) as draft:
            draft.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
    assert not PARTIAL
