"""Learning curves of the tables of suites: a chart of the page and a figure."""

from itertools import product

from matplotlib.ticker import FuncFormatter

from tsallax.paper.result import Chart, Picture
from tsallax.paper.suites.suite_cells import SuiteRuns, label
from tsallax.paper.tables.formatting import joined_words
from tsallax.paper.tables.mean_curves import chart_series
from tsallax.plotting import OKABE_ITO, draw_curve, legend_below, panel_grid

LABELS = {"training": "training return", "evaluations": "greedy return"}
COLOURS = tuple(
    OKABE_ITO[name]
    for name in ("blue", "sky blue", "vermilion", "orange", "green", "purple", "black")
)
COLUMNS = 3
MIN_EVALUATIONS = 4
"""The least number of evaluations of each run for a curve of them."""


def curves_kind(runs: SuiteRuns) -> str:
    """The curves to draw: of evaluations, or of training where there are few evaluations."""
    fewest = min(len(row.evaluations) for row in runs.rows)
    trained = all(row.training for row in runs.rows)
    return "training" if trained and fewest < MIN_EVALUATIONS else "evaluations"


def curves_chart(runs: SuiteRuns, kind: str) -> Chart:
    """The curves of all agents, a panel for each task and number of levels."""
    series = []
    for place, agent in product(runs.places, runs.agents):
        cell = runs.cell(place, agent)
        found = None if cell is None else cell.curve(kind)
        if found is None:
            continue
        x, *curve = found
        way, _, alpha = agent.partition("-")
        groups = {"exploration": way, "alpha": alpha} if place[1] is not None else {"agent": agent}
        series.append(chart_series(label(place), agent, groups, x, curve, True))
    title = f"{runs.suite.title}: {LABELS[kind]} while learning"
    axes = "steps", f"mean {LABELS[kind]}"
    return Chart(f"{runs.suite.name}-{kind}", title, *axes, tuple(series), same_scale=False)


def curves_figure(runs: SuiteRuns, kind: str) -> Picture:
    """The curves of all agents, a panel for each task and number of levels."""
    count = len(runs.places)
    columns = min(COLUMNS, count)
    figure, panels = panel_grid(count, columns, max(3.4 / columns, 2.5), 2.0, 0.6)
    for axes, place in zip(panels, runs.places):
        for i, agent in enumerate(runs.agents):
            cell = runs.cell(place, agent)
            found = None if cell is None else cell.curve(kind)
            if found is None:
                continue
            x, *curve = found
            marker = "o" if len(x) == 1 else ""
            draw_curve(axes, x, curve, COLOURS[i % len(COLOURS)], label=agent, marker=marker)
        axes.set_title(label(place), loc="left")
        axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
    for axes in panels[::columns]:
        axes.set_ylabel(LABELS[kind])
    legend_below(figure, panels, 1.5)
    alt = (
        f"{count} panels, one for each task: mean {LABELS[kind]} against steps of "
        f"{joined_words(runs.agents, 9)}, with bands for their intervals, or for the range of "
        "fewer than six runs."
    )
    return Picture(f"{runs.suite.name}-{kind}-curves", figure, alt)


def _thousands(value: float, place: object = None) -> str:
    """Steps in thousands.

    >>> _thousands(50_000.0), _thousands(300.0)
    ('50k', '300')
    """
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
