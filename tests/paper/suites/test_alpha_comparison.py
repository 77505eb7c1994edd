"""The automatic alpha next to the best fixed one."""

import pytest

from small_suites import example_rows
from tsallax.paper.suites.alpha_comparison import alpha_rows
from tsallax.paper.suites.suite_cells import gather_suite


def rows(agent: str, alpha: object, returns: list[float]):
    return example_rows(agent, returns, config={"explore": "sparse", "alpha": alpha})


SPREAD = [-2.0, -1.0, -1.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("automatic", "verdict"),
    [(11.0, "best"), (10.0, "best"), (9.5, "within the interval"), (1.0, "below")],
)
def test_the_automatic_alpha_is_compared_with_the_best_fixed_one(automatic, verdict):
    runs = rows("sparse-0.1", 0.1, [10.0 + x for x in SPREAD]) + rows("sparse-1", 1.0, [5.0] * 6)
    runs += rows("tsallax", "auto", [automatic] * 6)
    (one,) = alpha_rows(gather_suite("classic", runs))
    assert (one["explore"], one["fixed alphas"], one["its alpha"]) == ("sparse", "0.1 and 1", 0.1)
    assert one["automatic is"] == verdict


def test_few_runs_and_other_ways_to_explore_are_not_compared():
    few = rows("sparse-0.1", 0.1, [1.0] * 5) + rows("sparse-auto", "auto", [2.0] * 6)
    (one,) = alpha_rows(gather_suite("classic", few))
    assert one["automatic is"] == "too few runs"
    other = rows("sparse-0.1", 0.1, [1.0] * 6) + rows("soft-auto", "auto", [2.0] * 6)
    assert alpha_rows(gather_suite("classic", other)) == ()


def test_agents_that_differ_in_other_options_are_not_compared():
    runs = rows("sparse-0.1", 0.1, [10.0] * 6) + rows("sparse-auto", "auto", [9.0] * 6)
    other = {"explore": "sparse", "alpha": "auto", "learning_rate": 1.0}
    runs += example_rows("tsallax", [99.0] * 6, config=other)
    runs += example_rows("sparse-1", [99.0] * 6, config={**other, "alpha": 1.0})
    (one,) = alpha_rows(gather_suite("classic", runs))
    assert (one["automatic"], one["fixed alphas"]) == ("9.00 [9.00, 9.00]", "0.1")
