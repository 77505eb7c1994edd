"""Learning curves of the page: means over runs at few points."""

import dataclasses

import numpy as np

from tsallax.paper.tables.mean_curves import POINTS, learning_curves_chart, training_returns


def test_chart_has_all_algorithms_in_few_points(data):
    top = {"Sparse+Bellman-1", "Soft+SoftBellman-0.1"}
    chart = learning_curves_chart(data, top)
    assert {s.label for s in chart.series if s.shown} == top
    assert len(chart.series) == 25 * 4 + 1
    for s in chart.series:
        assert len(s.x) == len(s.y) == len(s.low) == len(s.high) <= POINTS
        assert all(low <= y <= high for low, y, high in zip(s.low, s.y, s.high))
        assert all(float(f"{v:.4g}") == v for v in (*s.y, *s.low))
    assert [s.panel for s in chart.series][:1] == ["9 actions"]
    assert {s.groups["exploration"] for s in chart.series} == {"sparse", "soft", "epsilon", "DDPG"}


def test_a_run_that_ended_is_extended_by_its_last_mean(whole):
    long, short = (
        dataclasses.replace(whole[0], episodes=n, returns=tuple(given), every=20, final=7.0)
        for n, given in ((100, [1.0, 2.0, 3.0, 4.0, 5.0]), (50, [1.0, 2.0, 6.0]))
    )
    x, runs = training_returns([long, short])
    assert x.tolist() == [20, 40, 60, 80, 100]
    np.testing.assert_allclose(runs[0], [1, 2, 3, 4, 5])
    np.testing.assert_allclose(runs[1], [1, 2, (10 * 6 + 10 * 7) / 20, 7, 7])
