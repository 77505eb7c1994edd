"""A finished run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from command_line import OLD_RUN


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A finished run of twelve episodes."""
    return Path(shutil.copytree(OLD_RUN, tmp_path / "old"))
