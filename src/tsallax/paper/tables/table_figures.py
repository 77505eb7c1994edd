"""Figures 3 and 4 of the paper: return and episodes against the number of actions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from tsallax.paper.result import Picture
from tsallax.paper.sweep.sweep_tasks import EXPLORE, paper_results
from tsallax.paper.tables.cells import DDPG_CELL, TOP, Ranking, SweepRuns
from tsallax.paper.tables.formatting import digits, joined_words, number
from tsallax.paper.tables.mean_curves import DRAWS, training_returns
from tsallax.plotting import GREY, OKABE_ITO, draw_curve, legend_below, letter, panel_grid
from tsallax.statistics import Array, mean_curve, mean_of

COLOURS = tuple(OKABE_ITO.values())[:5]
EXTRA = ((0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.2, 1.2, 1.2)), (0, (9, 2)))
MARKERS: Mapping[str | None, str] = {"sparse": "o", "soft": "s", "epsilon": "^"}
OWN = "Sparse+SparseBellman-0.1"
"""The paper's own algorithm, with the alpha at which it does best on Reacher."""
THIN = 0.9
DDPG_LINE: Any = {
    "color": "black", "linewidth": THIN, "linestyle": (0, (4, 2)), "label": "DDPG"
}  # fmt: skip


def returns_figure(sweep: SweepRuns, order: Ranking) -> Picture:
    """(a) The expected return and (b) the episodes to the threshold of the top five."""
    figure, (left, right) = panel_grid(2, 2, 3.5, 2.8, 0.8)
    best = order.names[:TOP]
    for axes, kind in ((left, "return"), (right, "episodes")):
        for i, one in enumerate(best):
            _line(axes, sweep, one, i, len(best), kind)
        _paper(axes, sweep, kind)
        axes.set_xticks(range(len(sweep.actions)), [f"{n:,}" for n in sweep.actions])
        axes.set_xlim(-0.4, max(len(sweep.actions) - 0.6, 0.4))
        axes.set_xlabel("number of actions")
        axes.yaxis.set_major_formatter(FuncFormatter(_tick))
    low, high = left.get_ylim()
    if high - low < (span := 0.05 * abs(sweep.threshold)):
        left.set_ylim((low + high - span) / 2, (low + high + span) / 2)
    _ddpg(left, sweep)
    if DDPG_CELL in sweep.cells and sweep.times[DDPG_CELL].reached.all():
        right.axhline(float(sweep.times[DDPG_CELL].episodes.mean()), **DDPG_LINE)
    if any(not t.reached.all() for (one, _), t in sweep.times.items() if one in best):
        right.plot(
            [], [], linestyle="none", marker="o", markerfacecolor="white", color=GREY,
            label="lower bound, not all runs reached it",
        )  # fmt: skip
    left.set_ylabel("expected return, greedy")
    right.set_ylabel(f"episodes to a return of {number(sweep.threshold, 0)}")
    letter(left, "a", x=-0.12)
    letter(right, "b", x=-0.12)
    legend_below(figure, (left, right), 2.3)
    return Picture(sweep.task.name, figure, _alt(sweep, best))


def _tick(value: float, place: int) -> str:
    return number(value, 0 if float(value).is_integer() else 1)


def _line(axes: Axes, sweep: SweepRuns, one: str, i: int, count: int, kind: str) -> None:
    """An algorithm's points; open where some run never reached the threshold."""
    places = [k for k, n in enumerate(sweep.actions) if (one, n) in sweep.cells]
    cells = [(one, sweep.actions[k]) for k in places]
    values = sweep.greedy if kind == "return" else {c: t.episodes for c, t in sweep.times.items()}
    found = [mean_of(values[cell], sweep.weights[cell]) for cell in cells]
    bound = [kind == "episodes" and not sweep.times[cell].reached.all() for cell in cells]
    x = np.array(places) + 0.09 * (i - (count - 1) / 2)
    y = np.array([e.value for e in found])
    colour = COLOURS[i % len(COLOURS)]
    marker = MARKERS[sweep.algorithms[one].explore]
    axes.plot(x, y, color=colour, marker=marker, label=one, zorder=3, linewidth=1.2)
    for k, e in enumerate(found):
        if bound[k]:
            axes.annotate(
                "", (x[k], y[k]), (0, 13), textcoords="offset points", zorder=2,
                arrowprops={"arrowstyle": "<-", "color": colour, "linewidth": THIN},
            )  # fmt: skip
        elif e.low is not None and e.high is not None:
            axes.vlines(x[k], e.low, e.high, color=colour, linewidth=THIN, zorder=2)
    if any(bound):
        axes.plot(
            x[bound], y[bound], linestyle="none", marker=marker, color=colour, zorder=4,
            markerfacecolor="white",
        )  # fmt: skip


def _paper(axes: Axes, sweep: SweepRuns, kind: str) -> None:
    """The best of the paper's algorithms at each number of actions."""
    table = paper_results(sweep.task)
    places, values = [], []
    for k, n in enumerate(sweep.actions):
        cells = [cell for (_, actions), cell in table.items() if actions == n]
        returns = [cell.expected_return for cell in cells]
        times = [cell.episodes for cell in cells if cell.episodes is not None]
        if times:
            places.append(k)
            values.append(max(returns) if kind == "return" else min(times))
    if places:
        axes.plot(
            places, values, color="#8c8c8c", linewidth=THIN, marker="_", markersize=9, zorder=1,
            label="the paper's best at each number",
        )  # fmt: skip


def _ddpg(axes: Axes, sweep: SweepRuns) -> None:
    """DDPG's return as a line, or as text where it is off the scale."""
    if DDPG_CELL not in sweep.cells:
        return
    own = mean_of(sweep.greedy[DDPG_CELL], sweep.weights[DDPG_CELL])
    low, high = axes.get_ylim()
    if low - (high - low) <= own.value <= high + (high - low):
        axes.axhline(own.value, **DDPG_LINE)
        if own.low is not None and own.high is not None:
            axes.axhspan(own.low, own.high, color="black", alpha=0.07, linewidth=0)
    else:
        side = "below" if own.value < low else "above"
        axes.text(
            1.0, 1.02, f"DDPG: {number(own.value, digits(sweep.task))}, {side} the scale",
            transform=axes.transAxes, ha="right", va="bottom", color=GREY, fontsize=7.5,
        )  # fmt: skip


def chosen_curves(sweep: SweepRuns, order: Ranking) -> list[str]:
    """The top five, the paper's own algorithm, and the best of each way to explore."""
    best = list(order.names[:TOP])
    for explore in EXPLORE:
        mine = [one for one in order.names if sweep.algorithms[one].explore == explore]
        best += [one for one in mine[:1] if one not in best]
    return best + [OWN for one in sweep.algorithms if one == OWN and one not in best]


def curves_figure(sweep: SweepRuns, order: Ranking) -> Picture:
    """Learning curves, one panel for each number of actions."""
    names = chosen_curves(sweep, order)
    count = max(1, len(sweep.actions))
    columns = min(2, count)
    figure, panels = panel_grid(count, columns, 3.5, 2.3, 0.8, share=True)
    for axes, n in zip(panels, sweep.actions):
        for i, one in enumerate(names):
            if (one, n) in sweep.cells:
                _curve(axes, sweep, one, n, i)
        axes.axhline(sweep.threshold, color=GREY, linewidth=0.6, linestyle=(0, (1, 2)), zorder=1)
        axes.set_title(f"{n:,} actions", loc="left")
    for k, axes in enumerate(panels):
        if k % columns == 0:
            axes.set_ylabel("training return")
        if k + columns >= len(sweep.actions):
            axes.set_xlabel("episodes")
            axes.tick_params(labelbottom=True)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, place: f"{v:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(_tick))
    if all(panel.dataLim.y1 < 0 for panel in panels[: len(sweep.actions)]):
        _logarithmic(panels)
    legend_below(figure, panels, 2.3)
    alt = (
        f"Learning curves in {len(sweep.actions)} panels, one for each number of actions: mean "
        f"training return against episodes for {joined_words(names, 9)}, with bands for their "
        "intervals, or for the range of fewer than six runs."
    )
    return Picture(f"{sweep.task.name}-learning", figure, alt)


def _logarithmic(panels: Sequence[Axes]) -> None:
    """Returns that are all negative, as costs on a logarithmic scale."""
    low = min(panel.dataLim.y0 for panel in panels)
    high = max(panel.dataLim.y1 for panel in panels if panel.dataLim.y1 < 0)
    for axes in panels:
        axes.set_yscale("function", functions=(_minus_log, _minus_exp))
        axes.set_ylim(low * 1.1, high / 1.1)
        ticks = [-t for t in (1, 2, 3, 4, 6, 10, 20, 40, 60, 100, 200, 400) if low <= -t <= high]
        axes.set_yticks(ticks)
        axes.minorticks_off()
        if axes.get_ylabel():
            axes.set_ylabel("training return, log scale")


def _minus_log(value: Array) -> Array:
    return np.asarray(-np.log(np.maximum(-np.asarray(value), 1e-9)))


def _minus_exp(value: Array) -> Array:
    return np.asarray(-np.exp(-np.asarray(value)))


def _curve(axes: Axes, sweep: SweepRuns, one: str, actions: int, i: int) -> None:
    x, runs = training_returns(sweep.cells[one, actions])
    curve = mean_curve(runs, sweep.weights[one, actions][:DRAWS])
    extra = i >= len(COLOURS)
    colour = ("#000000", "#6a51a3", "#7f4f24", "#56B4E9")[i - len(COLOURS)] if extra else COLOURS[i]
    style = EXTRA[i - len(COLOURS)] if extra else "-"
    draw_curve(axes, x, curve, colour, label=one, linestyle=style)


def _alt(sweep: SweepRuns, best: Sequence[str]) -> str:
    parts = []
    for one in best:
        cells = [(one, n) for n in sweep.actions if (one, n) in sweep.cells]
        values = [number(sweep.greedy[cell].mean(), digits(sweep.task)) for cell in cells]
        parts.append(f"{one} {', '.join(values)}")
    counts = ", ".join(f"{n:,}" for n in sweep.actions) or "none"
    words = "; ".join(parts) or "no algorithm"
    return (
        "Two line charts against the number of actions "
        f"({counts}): the greedy return of our top five algorithms, and their episodes to the "
        f"threshold. Returns: {words}."
    )
