"""Curves of suites: one line for each agent, one panel for each task."""

import pytest

from small_suites import example_rows
from tsallax.paper.suites.suite_cells import gather_suite
from tsallax.paper.suites.suite_curves import curves_chart, curves_figure


@pytest.fixture
def runs():
    rows = example_rows("tsallax", [1.0, 3.0]) + example_rows("sb3-dqn", [1.0])
    return gather_suite("classic", rows + example_rows("tsallax", [1.0], task="Acrobot-v1"))


def test_a_chart_has_the_points_of_the_rows(runs):
    chart = curves_chart(runs, "training")
    assert [(s.panel, s.label) for s in chart.series] == [
        ("CartPole-v1", "tsallax"),
        ("CartPole-v1", "sb3-dqn"),
        ("Acrobot-v1", "tsallax"),
    ]
    first, second = chart.series[:2]
    assert (first.x, first.y) == ((100.0, 200.0), (15.0, 25.0))
    assert (first.low, second.low) == ((15.0, 25.0), (None, None))


def test_panels_of_different_tasks_have_scales_of_their_own(runs):
    assert not curves_chart(runs, "training").same_scale


def test_a_figure_has_a_panel_for_each_task_and_a_line_for_each_agent(runs):
    picture = curves_figure(runs, "evaluations")
    axes = [panel for panel in picture.figure.axes if panel.get_visible()]
    assert [panel.get_title(loc="left") for panel in axes] == ["CartPole-v1", "Acrobot-v1"]
    assert [len(panel.lines) for panel in axes] == [2, 1]
    assert axes[0].lines[0].get_ydata().tolist() == [10.0, 20.0]
    assert "tsallax and sb3-dqn" in picture.alt
