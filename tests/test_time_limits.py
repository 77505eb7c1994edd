"""Deadlines hold inside their block, and the innermost one counts."""

import math
import time

import pytest

from tsallax.time_limits import DeadlineReached, check_deadline, deadline


def test_without_a_deadline_work_goes_on():
    check_deadline()
    with deadline(math.inf):
        check_deadline()


def test_a_deadline_that_has_passed_ends_work_inside_its_block_alone():
    with deadline(time.monotonic() + 1000.0):
        with deadline(time.monotonic()), pytest.raises(DeadlineReached):
            check_deadline()
        check_deadline()
    with pytest.raises(DeadlineReached), deadline(-math.inf):
        check_deadline()
    check_deadline()
