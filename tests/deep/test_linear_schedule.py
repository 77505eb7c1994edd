"""Linear schedules: read from numbers and text without loss, and exact at their ends."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import refused
from tsallax.deep import linear_schedule
from tsallax.deep.linear_schedule import Linear

SCHEDULES = [
    0.1, "0.1", 1, [1.0, 0.1, 5000], "1:0.1:5000", "1e-3:2e-2:1e5", Linear(1, 2, 3),
]  # fmt: skip


@pytest.mark.parametrize("value", SCHEDULES, ids=str)
def test_a_schedule_is_a_number_or_three(value):
    schedule = linear_schedule.linear("alpha", value)
    assert isinstance(schedule.start, float)
    assert linear_schedule.linear("alpha", linear_schedule.text(schedule)) == schedule


positive = st.floats(1e-30, 1e30)


@given(positive, positive, st.integers(0, 2**31))
def test_a_written_schedule_is_read_without_loss(start, end, steps):
    schedule = linear_schedule.linear("alpha", (start, end, steps))
    written = json.dumps(linear_schedule.text(schedule))
    assert linear_schedule.linear("alpha", json.loads(written)) == schedule


@pytest.mark.parametrize(("start", "end"), [(1.0, 1e-9), (1e-9, 1.0), (0.3, 0.7), (0.1, 0.1)])
def test_a_schedule_stays_between_its_ends_and_reaches_them(start, end):
    """With alpha from 1 to 1e-9, one rounding the wrong way would make it zero."""
    schedule = Linear(*(np.float32(x) for x in (start, end, 1000)))
    found = np.array([linear_schedule.at(schedule, step) for step in (0, 1, 500, 999, 1000, 2000)])
    low, high = np.float32(min(start, end)), np.float32(max(start, end))
    assert np.all((found >= low * (1 - 1e-6)) & (found <= high * (1 + 1e-6)))
    assert found[0] == np.float32(start)
    assert found[-1] == found[-2] == np.float32(end)
    middle = (1 - 0.5) * start + 0.5 * end
    assert found[2] == pytest.approx(middle, rel=1e-6)


@pytest.mark.parametrize("value", ["warm", "1:0.1", "1:0.1:-5", "1:nan:5", None, True, ()])
def test_other_values_are_refused(value):
    with refused("alpha must be a number or start:end:steps, got"):
        linear_schedule.linear("alpha", value)


@pytest.mark.parametrize("value", [1.5, "1.5:0:10", "0:1.5:10", -0.1])
def test_both_ends_must_be_within_the_limits(value):
    with refused("epsilon must be a number of at least 0 and up to 1"):
        linear_schedule.linear("epsilon", value, at_least=0, at_most=1)
