"""Matplotlib style of all figures, with a colour-blind-safe palette."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

OKABE_ITO = {
    "blue": "#0072B2", "vermilion": "#D55E00", "green": "#009E73", "purple": "#CC79A7",
    "orange": "#E69F00", "sky blue": "#56B4E9", "black": "#000000",
}  # fmt: skip
"""The palette of Okabe and Ito, without its yellow, which is too light on white."""
SPARSE = OKABE_ITO["blue"]
SOFT = OKABE_ITO["vermilion"]
GREY = "#595959"
COLOUR = {"sparse": SPARSE, "soft": SOFT}
MARKER = {"sparse": "o", "soft": "s"}
MAP = "viridis"

SETTINGS: Any = {
    "font.family": "DejaVu Sans", "font.size": 8.0, "mathtext.fontset": "dejavusans",
    "axes.titlesize": 8.5, "axes.labelsize": 8.0, "axes.linewidth": 0.7,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": False, "grid.color": "#d9d9d9", "grid.linewidth": 0.5,
    "xtick.labelsize": 7.5, "xtick.major.width": 0.7,
    "ytick.labelsize": 7.5, "ytick.major.width": 0.7,
    "legend.fontsize": 7.5, "legend.frameon": False,
    "lines.linewidth": 1.6, "lines.markersize": 4.5,
    "figure.dpi": 100, "savefig.dpi": 200, "svg.hashsalt": "tsallax",
}  # fmt: skip


def paper_style() -> Any:
    """A context in which figures are made and written in the common look."""
    return rc_context(SETTINGS)


def panel_grid(
    count: int, columns: int, width: float, height: float, below: float, share: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, their size in inches, and room below them for a legend."""
    columns = min(columns, count)
    lines = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * lines + below), layout="constrained")
    panels: list[Axes] = list(
        figure.subplots(lines, columns, sharex=share, sharey=share, squeeze=False).ravel()
    )
    for axes in panels[:count]:
        axes.grid(axis="y")
        axes.tick_params(colors=GREY)
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels


def draw_curve(axes: Axes, x: Any, curve: Any, colour: str, **style: Any) -> None:
    """Draw a mean with a band between the ends of its interval, where these are not NaN."""
    mean, low, high = curve
    axes.plot(x, mean, color=colour, linewidth=1.1, zorder=3, **style)
    if not isnan(low[0]):
        axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0, zorder=2)


def legend_below(figure: Figure, panels: Iterable[Axes], inches: float) -> None:
    """One legend below all panels, each label once, with columns as wide as given."""
    handles: dict[str, Any] = {}
    for axes in panels:
        for line, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, line)
    if handles:
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center",
            ncols=max(1, int(figure.get_figwidth() / inches)), columnspacing=1.4,
        )  # fmt: skip


def letter(axes: Axes, text: str, x: float) -> None:
    """Put a panel's letter, bold, above the upper left corner of its axes."""
    axes.text(
        x, 1.04, text, transform=axes.transAxes, fontsize=10, fontweight="bold", ha="right",
        va="bottom",
    )  # fmt: skip
