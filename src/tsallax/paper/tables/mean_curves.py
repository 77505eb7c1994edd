"""Training returns by episode, averaged over runs: the lines of the page's charts."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tsallax.paper.result import Chart, Series, tidy
from tsallax.paper.sweep.sweep_rows import SweepRow
from tsallax.paper.tables.cells import PLAIN_EPSILON_GREEDY, SweepRuns
from tsallax.statistics import Array, mean_curve

POINTS = 80
DRAWS = 1000
"""The number of bootstrap draws at every point."""


def training_returns(rows: Sequence[SweepRow]) -> tuple[Array, Array]:
    """Episodes (points,) and every run's mean training return up to them, (runs, points).

    A run that ended before the longest is extended by the mean of its last 100 episodes.
    """
    longest = max(row.episodes for row in rows)
    count = min(POINTS, max(1, longest // rows[0].every))
    ends = np.round(np.linspace(0, longest, count + 1))
    return ends[1:], np.stack([np.diff(_total(row, ends)) / np.diff(ends) for row in rows])


def _total(row: SweepRow, ends: Array) -> Array:
    """The sum of a run's returns up to each of `ends`."""
    edges = np.minimum(np.arange(len(row.returns) + 1) * row.every, row.episodes)
    total = np.concatenate([[0.0], np.cumsum(np.diff(edges) * np.asarray(row.returns))])
    after = row.final * np.maximum(ends - row.episodes, 0)
    return np.asarray(np.interp(ends, edges, total) + after)


def learning_curves_chart(sweep: SweepRuns, shown: Collection[str]) -> Chart:
    """The learning curves of all algorithms, a panel for each number of actions."""
    series = []
    for cell, rows in sorted(sweep.cells.items(), key=lambda item: item[0][1] or math.inf):
        (x, runs), row = training_returns(rows), rows[0]
        groups = {
            "exploration": row.explore or "DDPG",
            "update": row.update or "DDPG",
            "alpha": "none" if cell[0] in (PLAIN_EPSILON_GREEDY, "DDPG") else f"{row.alpha:g}",
        }
        panel = f"{row.actions:,} actions" if row.actions else "continuous actions"
        curve = mean_curve(runs, sweep.weights[cell][:DRAWS])
        series.append(chart_series(panel, cell[0], groups, x, curve, cell[0] in shown))
    name = f"{sweep.task.name}-curves"
    title = f"{sweep.task.title}: learning curves of all algorithms"
    return Chart(name, title, "episodes", "mean training return", tuple(series))


def chart_series(
    panel: str, label: str, groups: Mapping[str, str], x: Array, curve: Sequence[Array], shown: bool
) -> Series:
    """A line of a chart, in four digits, from a mean and both ends of its interval.

    Where there is no interval, as of one run, the ends are NaN.
    """

    def numbers(line: Array) -> tuple[Any, ...]:
        return tuple(None if math.isnan(value) else tidy(value, 4) for value in line)

    mean, low, high = map(numbers, curve)
    return Series(panel, label, groups, numbers(x), mean, low, high, shown)
