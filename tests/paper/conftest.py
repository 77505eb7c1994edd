"""A small sweep that was trained without interruption, for tests of sweeps and fleets."""

from pathlib import Path

import pytest

from small_sweeps import small, train

TRAINED: list[Path] = []


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two seeds in one fleet, trained once.

    It has the scope of a module because that of the compiler's settings in conftest.py has.
    """
    if not TRAINED:
        folder = tmp_path_factory.mktemp("whole")
        rows = train(small(), folder, at_once=2)
        assert [row.seed for row in rows] == [0, 1]
        TRAINED.append(folder)
    return TRAINED[0]
