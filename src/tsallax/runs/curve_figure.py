"""The picture of learning curves: a panel for each environment, a curve for each configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tsallax.errors import InvalidInput
from tsallax.runs.learning_curves import Group, evaluation_curve, training_curve, window_of
from tsallax.statistics import MIN_RUNS, interval_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHES: Any = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)))


def draw(groups: Sequence[Group], window: int | None = None, by: str = "episodes") -> Figure:
    """Draw a panel for each environment, a curve for each group."""
    from matplotlib.figure import Figure

    from tsallax.plotting import paper_style

    names = list(dict.fromkeys(g.environment for g in groups))
    columns = min(len(names), 2)
    rows = -(-len(names) // columns)
    most = max(sum(g.environment == name for g in groups) for name in names)
    size = (5.6 if columns == 1 else 8.6, rows * (3.1 + 0.17 * min(most + 1, 10)))
    with paper_style():
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, name in zip(panels, names, strict=False):
            near = [g for g in groups if g.environment == name]
            _draw_panel(axes, near, window_of(near[0], near, window), by)
            axes.set_title(name, loc="left")
        for axes in panels[len(names) :]:
            axes.set_visible(False)
    return figure


def _draw_panel(axes: Axes, groups: Sequence[Group], window: int, by: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    from tsallax.plotting import GREY, OKABE_ITO

    colours = list(OKABE_ITO.values())
    handles, evaluated = [], False
    for i, g in enumerate(groups):
        colour, dash = colours[i % len(colours)], DASHES[i // len(colours) % len(DASHES)]
        n = len(g.runs)
        curve = training_curve(g, window, by)
        if n == 1:
            run = g.runs[0].episodes
            axes.plot(
                run["step" if by == "steps" else "episode"], run["return"], ".", color=colour,
                markersize=2.4, alpha=0.4, markeredgewidth=0, zorder=1, rasterized=True,
            )  # fmt: skip
        else:
            axes.fill_between(
                curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0, zorder=2
            )
        axes.plot(curve.x, curve.mean, color=colour, linestyle=dash, zorder=3)
        points = evaluation_curve(g, by)
        evaluated = evaluated or len(points.x) > 0
        error = np.abs([points.mean - points.low, points.high - points.mean]) if n > 1 else None
        axes.errorbar(
            points.x, points.mean, yerr=error, fmt="o", color=colour, markerfacecolor="white",
            markersize=4 if len(points.x) <= 25 else 2.5, markeredgewidth=0.9, elinewidth=0.8,
            zorder=4,
        )  # fmt: skip
        label = f"{g.label} ({_shown(n)})"
        handles.append(Line2D([], [], color=colour, linestyle=dash, label=label))
    if evaluated:
        circle = Line2D(
            [], [], color=GREY, marker="o", linestyle="none", markerfacecolor="white",
            markersize=4, label="evaluation of the greedy policy",
        )  # fmt: skip
        handles.append(circle)
    mean = f"mean of {window} episodes" if window > 1 else "each episode"
    axes.set_ylabel(f"return ({mean})")
    axes.set_xlabel(by)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.0f}"))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.tick_params(colors=GREY)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.margins(x=0.02)
    narrow = len(handles) > 5 and max(len(str(handle.get_label())) for handle in handles) < 36
    axes.legend(
        handles=handles, ncols=1 + narrow, loc="upper left", bbox_to_anchor=(0.0, -0.16),
        borderaxespad=0.0, handlelength=2.2,
    )  # fmt: skip


def _shown(seeds: int) -> str:
    """What a curve and its band are.

    >>> _shown(10), _shown(3), _shown(1)
    ('mean of 10 seeds, 95% interval', 'mean and range of 3 runs', '1 seed')
    """
    if seeds == 1:
        return "1 seed"
    label = interval_label(seeds)
    return f"mean of {seeds} seeds, {label}" if seeds >= MIN_RUNS else f"mean and {label}"


def save(figure: Figure, path: Path) -> None:
    """Write a figure, in the format of the file's suffix."""
    from tsallax.plotting import paper_style

    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    try:
        with paper_style():
            figure.savefig(path, metadata=metadata)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror or error}", source=path) from None
