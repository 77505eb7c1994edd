"""The tables from rows: numbers of the rows, comparisons with intervals, published returns."""

from typing import Any

import pytest

from small_suites import example_rows
from tsallax.paper.suites.suite_result import compare, summarize_suite
from tsallax.statistics import Estimate


def table(result, name: str):
    return next(table.rows for table in result.tables if table.name == name)


def test_our_returns_stand_beside_those_of_the_peer():
    ours = [100.0 + i for i in range(6)]
    peer = [50.0 + i for i in range(6)]
    rows = example_rows("tsallax", ours, seconds=1.0) + example_rows("sb3-dqn", peer, seconds=4.0)
    result = summarize_suite("classic", rows)
    (line,) = table(result, "classic-returns")
    assert line["task"] == "CartPole-v1"
    assert line["tsallax"].startswith("102.5 [")
    assert line["sb3-dqn"].startswith("52.5 [")
    assert (line["compared"], line["runs"]) == ("above", "6 and 6")
    (speed,) = table(result, "classic-speed")
    assert (speed["tsallax"], speed["sb3-dqn"]) == ("200 [200, 200]", "50 [50, 50]")
    assert "95 % intervals" in " ".join(result.caption)
    assert result.hardware == "cpu: test"


def test_ranges_of_few_runs_are_not_compared():
    rows = example_rows("tsallax", [9.0] * 5) + example_rows("sb3-dqn", [1.0] * 6)
    (line,) = table(summarize_suite("classic", rows), "classic-returns")
    assert line["compared"] == "too few runs"


def test_a_milestone_has_a_line_of_its_own():
    points = ((40_000, -80.0, 100), (100_000, -70.0, 100))
    rows = example_rows("tsallax", [-70.0, -71.0], task="Acrobot-v1", steps=100_000,
                        evaluations=points, training=())  # fmt: skip
    at, end = table(summarize_suite("classic", rows), "classic-returns")
    assert (at["steps"], at["tsallax"]) == (40_000, "−80.0 [−80.0, −80.0]")
    assert (end["steps"], end["tsallax"]) == (100_000, "−70.5 [−71.0, −70.0]")
    assert (at["published"], end["published"]) == ("", "−76.6 (SB3 zoo DQN)")


@pytest.mark.parametrize(
    ("steps", "published", "quick"),
    [((1_000_000, 1_000_000), 3472.0, False), ((300_000, 300_000), "3472 (1,000,000 steps)", True),
     ((150_000, 1_000_000), "3472 (1,000,000 steps)", True)],
)  # fmt: skip
def test_returns_after_fewer_steps_are_not_taken_for_those_of_the_full_table(
    steps, published, quick
):
    shared: dict[str, Any] = {
        "suite": "control", "task": "Hopper", "levels": 3, "training": (), "evaluations": (),
        "config": {"alpha": "auto", "explore": "sparse"},
    }  # fmt: skip
    rows = example_rows("sparse-auto", [9.0], steps=steps[0], **shared)
    fixed = {**shared, "config": {"alpha": 0.1, "explore": "sparse"}}
    rows += example_rows("sparse-0.1", [8.0], steps=steps[1], **fixed)
    result = summarize_suite("control", rows)
    (line,) = table(result, "control-returns")
    same = steps[0] == steps[1]
    assert line["steps"] == (steps[0] if same else "150,000 to 1,000,000")
    assert line["Tianshou TD3"] == published
    assert result.quick == quick
    assert ("1,000,000" in " ".join(result.caption)) == quick
    assert ("control-alpha" in [one.name for one in result.tables]) == same


def test_returns_after_different_steps_are_not_compared_with_the_peer():
    rows = example_rows("tsallax", [9.0] * 6)
    rows += example_rows("sb3-dqn", [1.0] * 6, steps=400)
    (line,) = table(summarize_suite("classic", rows), "classic-returns")
    assert (line["steps"], line["compared"]) == ("200 to 400", "different steps")
    assert line["published"] == "500.0 (SB3 zoo DQN, 50,000 steps)"


@pytest.mark.parametrize(
    ("ours", "peer", "words"),
    [
        (Estimate(5, 4, 6), Estimate(3, 2, 3.5), "above"),
        (Estimate(5, 4, 6), Estimate(7, 6.5, 8), "below"),
        (Estimate(5, 4, 6), Estimate(7, 6, 8), "intervals overlap"),
        (Estimate(5), Estimate(7, 6, 8), "no interval"),
        (None, Estimate(7, 6, 8), ""),
    ],
)
def test_intervals_are_compared(ours, peer, words):
    assert compare(ours, peer) == words


def test_control_has_a_column_for_each_agent_and_each_published_one():
    shared = {"suite": "control", "task": "Hopper", "levels": 3}
    rows = example_rows("sparse-auto", [3000.0, 1000.0], **shared)
    rows += example_rows("epsilon", [500.0], **shared)
    result = summarize_suite("control", rows)
    (line,) = table(result, "control-returns")
    assert list(line)[:6] == ["task", "levels", "steps", "runs", "sparse-auto", "epsilon"]
    assert (line["sparse-auto"], line["epsilon"]) == ("2000 [1000, 3000]", "500.0")
    assert "their range" in " ".join(result.caption)
    cells = table(result, "control-cells")
    assert [cell["greedy"] for cell in cells] == [2000.0, 500.0]
    assert cells[0]["best_evaluation"] == 20.0
