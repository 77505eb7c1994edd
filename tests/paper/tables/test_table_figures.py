"""Figures of returns, episodes and learning curves: what is drawn is what the runs say."""

import dataclasses

import numpy as np

from tsallax.paper.sweep.sweep_tasks import REACHER
from tsallax.paper.tables.cells import gather, ranking
from tsallax.paper.tables.table_figures import OWN, chosen_curves, curves_figure, returns_figure
from tsallax.plotting import paper_style


def test_the_top_five_are_drawn_with_their_means(data):
    order = ranking(data)
    left, right = returns_figure(data, order).figure.axes[:2]
    lines = {line.get_label(): line for line in left.get_lines()}
    for name in order.names[:5]:
        means = [data.greedy[name, n].mean() for n in data.actions]
        np.testing.assert_allclose(lines[name].get_ydata(), means)
    assert set(order.names[:5]) <= {line.get_label() for line in right.get_lines()}


def test_curves_are_those_of_the_best_of_each_exploration_and_of_the_papers_own(data):
    order = ranking(data)
    names = chosen_curves(data, order)
    assert names[:5] == list(order.names[:5])
    assert OWN in names
    assert {data.algorithms[name].explore for name in names} == {"sparse", "soft", "epsilon"}
    assert len(names) == len(set(names))
    with paper_style():
        figure = curves_figure(data, order).figure
    for axes in figure.axes:
        drawn = [line for line in axes.get_lines() if line.get_label() in names]
        assert len(drawn) == len(axes.collections) == len(names)


def test_one_run_is_drawn_without_a_band(whole):
    data = gather(REACHER, [dataclasses.replace(whole[0], reached=None)])
    figure = curves_figure(data, ranking(data)).figure
    assert not figure.axes[0].collections
