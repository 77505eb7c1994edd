"""Numbers, intervals and lists as text: the ends of what the examples of the functions show."""

import numpy as np

from tsallax.paper.tables.formatting import episodes, joined_words, number
from tsallax.statistics import Estimate


def test_four_digits_have_no_separator_and_a_mean_over_all_runs_has_an_interval():
    assert number(9999.4, 0) == "9999"
    reached = np.array([True, True])
    assert episodes(reached, Estimate(200.0, 100.0, 300.0)) == "200 [100, 300]"
    assert (joined_words([]), joined_words(["a"])) == ("", "a")
