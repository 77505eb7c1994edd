"""Agents over all tasks: the probability that a run of one returns more than one of another."""

from typing import Any

from small_suites import example_rows
from tsallax.paper.suites.agent_comparison import comparison_rows
from tsallax.paper.suites.suite_cells import gather_suite

TASKS = ("Hopper", "Swimmer")


def rows(agent: str, returns: list[float], tasks: tuple[str, ...] = TASKS, **more: Any):
    shared: dict[str, Any] = {"suite": "control", "levels": 3, **more}
    return [row for task in tasks for row in example_rows(agent, returns, task=task, **shared)]


def test_an_agent_whose_runs_are_all_better_returns_more():
    runs = gather_suite("control", rows("sparse-auto", [5.0, 6, 7]) + rows("epsilon", [1.0, 2, 3]))
    (line,) = comparison_rows(runs)
    assert (line["agent"], line["against"], line["over"]) == ("sparse-auto", "epsilon", "2 tasks")
    assert line["probability to return more"] == "1.00 [1.00, 1.00]"
    assert line["verdict"] == "returns more"


def test_equal_runs_are_inconclusive():
    runs = gather_suite("control", rows("sparse-auto", [1.0, 2, 3]) + rows("epsilon", [1.0, 2, 3]))
    (line,) = comparison_rows(runs)
    assert line["probability to return more"].startswith("0.50 [")
    assert line["verdict"] == "inconclusive"


def test_agents_are_compared_where_both_have_runs_of_the_same_steps():
    whole = rows("sparse-auto", [1.0, 2, 3])
    some = rows("epsilon", [1.0, 2, 3], ("Hopper",), steps=201)
    longer = rows("epsilon", [1.0, 2, 3], steps=400)
    (line,) = comparison_rows(gather_suite("control", whole + some))
    assert line["over"] == "1 task"
    assert comparison_rows(gather_suite("control", whole + longer)) == ()


def test_the_peer_is_compared_on_the_tasks_that_it_has():
    peer = rows("sb3-td3", [7.0, 8, 9, 10, 11, 12], ("Swimmer",), levels=None)
    ours = rows("epsilon", [1.0, 2, 3, 4, 5, 6])
    (line,) = comparison_rows(gather_suite("control", ours + peer))
    assert (line["agent"], line["against"], line["over"]) == ("epsilon", "sb3-td3", "1 task")
    assert line["verdict"] == "returns less"
