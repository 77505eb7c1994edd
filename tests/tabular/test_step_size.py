"""Step sizes satisfy the condition of convergence: sum eta = infinity, sum eta^2 < infinity."""

import math

import numpy as np
import pytest

from tsallax.errors import InvalidInput
from tsallax.tabular.step_size import SCHEDULES, StepSize, read_step_size


def condensed(eta) -> tuple[bool, bool]:
    """Whether sum eta = infinity and sum eta^2 < infinity, by Cauchy's condensation test.

    For falling eta the sums behave as those of 2^k eta(2^k) and 2^k eta(2^k)^2: here the first
    never falls, or falls geometrically, and so does the second.
    """
    n = 2.0 ** np.arange(400)
    steps = np.array([float(eta(x)) for x in n])
    assert np.all(np.diff(steps) < 0)
    first, second = n * steps, n * steps**2
    diverges = bool(np.all(first[1:] >= first[:-1]))
    return diverges, bool(np.all(second[301:] < 0.999 * second[300:-1]))


@pytest.mark.parametrize(
    "schedule", [*SCHEDULES.values(), StepSize(0.501, scale=2.0), StepSize(1.0, scale=1.0)], ids=str
)
def test_schedules_satisfy_the_papers_condition(schedule):
    for discount in (0.0, 0.5, 0.999):
        eta = schedule.rescaled(discount)
        assert eta(0) == 1.0
        assert condensed(eta) == (True, True)


def test_schedules_that_are_refused_do_not_satisfy_the_condition():
    assert condensed(lambda n: (1 + n) ** -0.5) == (True, False)
    assert condensed(lambda n: (1 + n) ** -1.01) == (False, True)


@pytest.mark.parametrize(
    ("omega", "why"), [(0.5, r"eta\^2"), (0.0, r"eta\^2"), (1.01, "sum eta would be finite")]
)
def test_schedules_that_violate_the_condition_are_refused(omega, why):
    with pytest.raises(InvalidInput, match=why):
        StepSize(omega)


@pytest.mark.parametrize(
    ("omega", "scale"),
    [(math.nan, 1.0), ("1", 1.0), (True, 1.0), (1.0, 0.0), (1.0, math.inf), (1.0, -1)],
)
def test_impossible_schedules_are_refused(omega, scale):
    with pytest.raises(InvalidInput):
        StepSize(omega, scale)


def test_a_schedule_without_a_scale_needs_a_discount():
    with pytest.raises(InvalidInput, match="rescaled"):
        StepSize()(3)


def test_schedules_have_names():
    assert read_step_size("polynomial") == StepSize(0.8, scale=1)
    assert read_step_size(StepSize(0.7)) == StepSize(0.7)
    with pytest.raises(InvalidInput, match="does not converge"):
        read_step_size(0.1)
