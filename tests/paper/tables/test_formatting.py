"""Numbers, intervals and lists as text."""

import numpy as np
import pytest

from tsallax.paper.sweep.tasks import PENDULUM, REACHER
from tsallax.paper.tables.formatting import digits, episodes, listed, number, plural, shown
from tsallax.statistics import Estimate


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [(-4.126, 2, "−4.13"), (12345.6, 0, "12,346"), (-0.001, 2, "0.00"), (9999.4, 0, "9999")],
)
def test_numbers_have_a_true_minus_and_no_negative_zero(value, decimals, text):
    assert number(value, decimals) == text


def test_an_interval_stands_in_brackets_where_there_is_one():
    assert shown(Estimate(-4.0, -4.2, -3.9), digits(REACHER)) == "−4.00 [−4.20, −3.90]"
    assert shown(Estimate(-4.0), digits(PENDULUM)) == "−4.0"


def test_a_mean_over_runs_that_did_not_all_reach_the_threshold_is_a_lower_bound():
    mean = Estimate(200.0, 100.0, 300.0)
    assert episodes(np.array([[100.0, 1.0], [300.0, 1.0]]), mean) == "200 [100, 300]"
    assert episodes(np.array([[100.0, 1.0], [300.0, 0.0]]), mean) == "200 (≥, 1 of 2)"


def test_lists_and_counts():
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")
    assert listed(list("abcdefgh"), most=3) == "a, b, c and 5 more"
    assert (plural(1, "run"), plural(1200, "run")) == ("1 run", "1,200 runs")
