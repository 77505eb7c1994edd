"""A made-up sweep of everything, and its tables and figures."""

import pytest

from made_up_rows import REACHER, made_up_sweep
from tsallax.paper.tables.task_result import summarize_runs


@pytest.fixture(scope="session")
def whole():
    return made_up_sweep()


@pytest.fixture(scope="session")
def result(whole):
    return summarize_runs(REACHER, whole)
