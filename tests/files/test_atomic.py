"""A file appears complete or not at all."""

import errno
import os
from pathlib import Path

import pytest

from refusals import refused
from tsallax.files.atomic import atomic_path, remove_leftovers


def test_a_file_is_replaced_after_success_and_left_alone_after_an_exception(tmp_path: Path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def write(text: str, error: type[BaseException] | None) -> None:
        with atomic_path(target) as temporary:
            temporary.write_text(text)
            assert temporary.parent == tmp_path
            assert target.read_text() == "old"
            if error is not None:
                raise error

    with pytest.raises(KeyboardInterrupt):
        write("half", KeyboardInterrupt)
    assert target.read_text() == "old"
    write("new", None)
    assert target.read_text() == "new"
    assert [*tmp_path.iterdir()] == [target]


def test_a_file_that_cannot_be_written_is_refused_by_its_name(tmp_path: Path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    for target, problem in (("no/a", "No such file or directory"), ("file/a", "Not a directory")):
        with refused(f"{tmp_path / target}: cannot be written: {problem}"):  # noqa: SIM117
            with atomic_path(tmp_path / target) as temporary:
                temporary.write_text("text")

    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left")

    monkeypatch.setattr(os, "replace", fail)
    with refused("--out a: cannot be written: No space left"):  # noqa: SIM117
        with atomic_path(tmp_path / "a", source="--out a") as temporary:
            temporary.write_text("text")
    assert [file.name for file in tmp_path.iterdir()] == ["file"], "nothing half-written is left"


def test_an_error_that_names_another_file_is_raised_as_it_is(tmp_path: Path):
    """As of a file that an environment reads while a video of it is written."""
    with pytest.raises(FileNotFoundError, match=r"level2\.map"):  # noqa: SIM117
        with atomic_path(tmp_path / "a"):
            (tmp_path / "level2.map").read_text()
    both = OSError(errno.ENOSPC, "No space left", "b", None, str(tmp_path / "a"))
    with refused(f"{tmp_path / 'a'}: cannot be written: No space left"):  # noqa: SIM117
        with atomic_path(tmp_path / "a"):
            raise both
    assert not [*tmp_path.iterdir()]


def test_leftovers_of_a_file_are_removed_and_no_others(tmp_path: Path):
    others = {".b[1].txt.0123abcd.partial", "a.txt", ".ab.txt.0123abcd.partial"}
    for name in (*others, ".a.txt.0123abcd.partial", ".b1.txt.0123abcd.partial"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path / "a.txt")
    assert {file.name for file in tmp_path.iterdir()} == {*others, ".b1.txt.0123abcd.partial"}
    remove_leftovers(tmp_path / "b[1].txt")
    assert (tmp_path / ".b1.txt.0123abcd.partial").exists()
    assert not (tmp_path / ".b[1].txt.0123abcd.partial").exists()
