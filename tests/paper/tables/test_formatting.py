"""Numbers, intervals and lists as text."""

import numpy as np

from tsallax.paper.tables.formatting import episodes, listed, number, shown
from tsallax.statistics import Estimate


def test_numbers_have_a_true_minus_and_no_negative_zero():
    given = [(-4.126, 2), (12345.6, 0), (-0.001, 2), (9999.4, 0)]
    assert [number(*one) for one in given] == ["−4.13", "12,346", "0.00", "9999"]
    assert shown(Estimate(-4.0, -4.2, -3.9), 2) == "−4.00 [−4.20, −3.90]"


def test_a_mean_over_runs_that_did_not_all_reach_the_threshold_is_a_lower_bound():
    mean = Estimate(200.0, 100.0, 300.0)
    assert episodes(np.array([[100.0, 1.0], [300.0, 1.0]]), mean) == "200 [100, 300]"
    assert episodes(np.array([[100.0, 1.0], [300.0, 0.0]]), mean) == "200 (≥, 1 of 2)"


def test_lists_of_none_one_and_many():
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")
    assert listed(list("abcdefgh"), most=3) == "a, b, c and 5 more"
