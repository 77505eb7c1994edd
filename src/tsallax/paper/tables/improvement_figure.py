"""Probabilities of improvement as small matrices, one for each number of actions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from tsallax.paper.result import Picture
from tsallax.paper.tables.cells import SweepRuns
from tsallax.paper.tables.improvement import FACTOR_NAMES, FACTORS, MEASURES, Improvement
from tsallax.plotting import GREY, SOFT, SPARSE
from tsallax.statistics import INCONCLUSIVE, Estimate

MAP = LinearSegmentedColormap.from_list("improvement", [SOFT, "#ffffff", SPARSE])
LIGHT_INK, DARK_INK = "#fefefe", "#010101"
"""The colours of labels on coloured cells: not white and black, which a dark page exchanges."""
LETTERS = "abcd"


def draw_improvements(sweep: SweepRuns, found: Sequence[Improvement]) -> Picture:
    """Probabilities that the way in a row does better than the way in a column."""
    kinds = [(factor, measure) for factor in FACTORS for measure in MEASURES]
    columns = max(1, len(sweep.actions))
    figure = Figure(figsize=(1.72 * columns + 0.9, 6.7), layout="constrained")
    grid = figure.subplots(len(kinds), columns, squeeze=False)
    drawn = None
    for line, (factor, measure) in enumerate(kinds):
        ways = list(FACTORS[factor])
        for column, n in enumerate(sweep.actions):
            mine = [d for d in found if (d.factor, d.measure, d.actions[0]) == (factor, measure, n)]
            drawn = _matrix(grid[line, column], ways, mine)
        for column, axes in enumerate(grid[line]):
            axes.set_xticks(range(3), ways)
            axes.set_yticks(range(3), ways if column == 0 else [""] * 3)
            if line == 0 and sweep.actions:
                axes.set_title(f"{sweep.actions[column]:,} actions", pad=5)
        better = "higher return" if measure == "return" else "fewer episodes"
        grid[line, 0].set_ylabel(f"{FACTOR_NAMES[factor]}\n{better}", fontsize=8.5)
        grid[line, 0].text(
            -0.62, 1.06, LETTERS[line], transform=grid[line, 0].transAxes, fontsize=10,
            fontweight="bold", ha="left", va="bottom",
        )  # fmt: skip
    if drawn is not None:
        bar = figure.colorbar(drawn, ax=grid, shrink=0.4, aspect=28, pad=0.015)
        bar.set_label("probability that the row does better than the column")
        bar.outline.set_visible(False)
    return Picture(f"{sweep.task.name}-improvement", figure, _alt(found))


def _matrix(axes: Axes, ways: Sequence[str], found: Sequence[Improvement]) -> AxesImage:
    values = np.full((3, 3), np.nan)
    for one in found:
        i, j = ways.index(one.x), ways.index(one.y)
        values[i, j], values[j, i] = one.chance.value, 1 - one.chance.value
        sure, e = one.verdict != INCONCLUSIVE, one.chance
        _cell(axes, i, j, e, sure)
        low, high = (None, None) if e.low is None or e.high is None else (1 - e.high, 1 - e.low)
        _cell(axes, j, i, Estimate(1 - e.value, low, high), sure)
    axes.set_facecolor("#f0f0f0")
    axes.tick_params(length=0, colors=GREY, labelsize=7)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(2) + 0.5, minor=True)
    axes.set_yticks(np.arange(2) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    return axes.imshow(np.ma.masked_invalid(values), cmap=MAP, vmin=0, vmax=1)


def _cell(axes: Axes, i: int, j: int, one: Estimate, sure: bool) -> None:
    """The value, bold where its interval excludes a half, above the interval."""
    ink = LIGHT_INK if abs(one.value - 0.5) > 0.38 else DARK_INK
    style: Any = {"ha": "center", "va": "center", "color": ink}
    y = i - 0.15 * (one.low is not None)
    weight = "bold" if sure else "normal"
    axes.text(j, y, _short(one.value), fontsize=7.5, fontweight=weight, **style)
    if one.low is not None and one.high is not None:
        axes.text(j, i + 0.22, f"{_short(one.low)}–{_short(one.high)}", fontsize=5.8, **style)


def _short(value: float) -> str:
    """Two decimals without the leading zero.

    >>> _short(0.734), _short(1.0), _short(0.0)
    ('.73', '1', '0')
    """
    text = f"{value:.2f}"
    return {"1.00": "1", "0.00": "0"}.get(text, text.removeprefix("0"))


def _alt(found: Sequence[Improvement]) -> str:
    conclusive = sum(one.verdict != INCONCLUSIVE for one in found)
    return (
        "Matrices of probabilities that one way to explore, or to update, does better than another "
        f"in matched runs, for each number of actions: {len(found)} comparisons, of which "
        f"{conclusive} differ conclusively from one half."
    )
