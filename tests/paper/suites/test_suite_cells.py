"""Cells of suites: the runs of an agent on a task, with means, intervals and curves."""

import numpy as np
import pytest

from refusals import refused
from small_suites import example_row, example_rows
from tsallax.paper.suites.suite_cells import gather_suite
from tsallax.statistics import Estimate


def test_cells_are_in_the_order_of_the_suite_and_ours_first():
    rows = [
        *example_rows("sb3-dqn", [1.0, 2.0]),
        *example_rows("tsallax", [3.0], task="Acrobot-v1"),
        *example_rows("tsallax", [4.0, 6.0]),
    ]
    runs = gather_suite("classic", rows)
    assert runs.places == (("CartPole-v1", None), ("Acrobot-v1", None))
    assert runs.agents == ("tsallax", "sb3-dqn")
    assert runs.cells[("CartPole-v1", None), "tsallax"].mean == Estimate(5.0, 4.0, 6.0)
    assert runs.cells[("Acrobot-v1", None), "tsallax"].mean == Estimate(3.0)


def test_runs_of_a_peer_count_at_all_levels_of_their_task():
    rows = [
        *example_rows("sb3-td3", [7.0], suite="control", task="Hopper"),
        *example_rows("epsilon", [1.0], suite="control", task="Hopper", levels=3),
        *example_rows("epsilon", [2.0], suite="control", task="Hopper", levels=7),
    ]
    runs = gather_suite("control", rows)
    assert runs.places == (("Hopper", 3), ("Hopper", 7))
    assert [runs.cell(place, "sb3-td3").mean.value for place in runs.places] == [7.0, 7.0]
    assert [runs.cell(place, "epsilon").mean.value for place in runs.places] == [1.0, 2.0]


def test_few_runs_have_their_range_and_many_an_interval_that_shrinks():
    few = gather_suite("classic", example_rows("tsallax", [1.0, 2.0, 9.0, 3.0, 5.0]))
    (cell,) = few.cells.values()
    assert cell.mean == Estimate(4.0, 1.0, 9.0)
    many = gather_suite("classic", example_rows("tsallax", [*range(10)]))
    (cell,) = many.cells.values()
    half = 1.96 * np.std(range(10), ddof=1) / np.sqrt(10)
    assert cell.mean.low == pytest.approx(4.5 - half, abs=0.4)
    assert cell.mean.high == pytest.approx(4.5 + half, abs=0.4)


def test_the_return_at_a_milestone_is_that_of_its_evaluation():
    (cell,) = gather_suite("classic", example_rows("tsallax", [1.0, 2.0])).cells.values()
    assert cell.mean_at(100) == Estimate(10.0, 10.0, 10.0)
    assert cell.mean_at(150) is None


def test_curves_are_means_over_runs_between_their_points():
    rows = [
        example_row(training=((100, 0.0, 1), (200, 10.0, 1))),
        example_row(seed=1, training=((50, 4.0, 1), (100, 4.0, 1), (150, 6.0, 2))),
    ]
    (cell,) = gather_suite("classic", rows).cells.values()
    x, mean, low, high = cell.curve("training")
    assert x.tolist() == [100, 150]
    assert mean.tolist() == [2.0, 5.5]
    assert (low.tolist(), high.tolist()) == ([0.0, 5.0], [4.0, 6.0])
    (empty,) = gather_suite("classic", [example_row(training=())]).cells.values()
    assert empty.curve("training") is None


def test_runs_that_do_not_belong_together_are_refused():
    with refused("no runs of control"):
        gather_suite("control", [example_row()])
    with refused("has no task 'Pong'", "CartPole-v1"):
        gather_suite("classic", [example_row(task="Pong")])
    with refused("different steps"):
        gather_suite("classic", [example_row(), example_row(seed=1, steps=300)])
