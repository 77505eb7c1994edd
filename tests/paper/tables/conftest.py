"""A made-up sweep of everything, and its tables and figures."""

from contextlib import contextmanager
from functools import partial

import pytest

from made_up_rows import REACHER, made_up_sweep
from tsallax.paper.tables import cells
from tsallax.paper.tables.task_result import summarize_runs
from tsallax.statistics import resample


@contextmanager
def fewer_draws():
    """A quarter of the bootstrap's draws, which take most of the time of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "resample", partial(resample, draws=500))
        yield


@pytest.fixture(autouse=True)
def _fewer_draws():
    with fewer_draws():
        yield


@pytest.fixture(scope="session")
def whole():
    return made_up_sweep()


@pytest.fixture(scope="session")
def data(whole):
    return cells.gather(REACHER, whole)


@pytest.fixture(scope="session")
def result(whole):
    with fewer_draws():
        return summarize_runs(REACHER, whole)
