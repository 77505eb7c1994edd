"""Locks on files and folders, held by one process at a time."""

from pathlib import Path

import pytest

from refusals import refused
from tsallax.files.locks import locked


@pytest.mark.parametrize("name", ["", "rows.jsonl"])
def test_what_is_locked_is_refused_until_it_is_let_go(tmp_path: Path, name: str) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / name
    if name:
        path.touch()
    other = locked(path, "is in use", tmp_path)
    with locked(path, "is in use", tmp_path), refused("is in use", source=tmp_path), other:
        pass
    with locked(path, "is in use", tmp_path):
        pass


def test_file_systems_without_locks_have_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError("not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with locked(tmp_path, "is in use", tmp_path), locked(tmp_path, "is in use", tmp_path):
        pass
