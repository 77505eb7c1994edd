"""Learning curves of the tables `classic` and `control`: a chart of the page and a figure."""

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tsallax.paper.result import Chart, Picture, Series
from tsallax.paper.suites.suite_cells import Place, SuiteRuns
from tsallax.paper.tables.formatting import listed
from tsallax.paper.tables.mean_curves import short_line
from tsallax.plotting import GREY, legend_below

LABELS = {"training": "training return", "evaluations": "greedy return"}
COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#009E73", "#CC79A7", "#000000")
COLUMNS = 3


def curves_chart(runs: SuiteRuns, kind: str) -> Chart:
    """The curves of all agents, a panel for each task and number of levels."""
    series = []
    for (place, agent), cell in runs.cells.items():
        found = cell.curve(kind)
        if found is None:
            continue
        x, mean, low, high = found
        none = (None,) * len(x) if len(cell.rows) < 2 else None
        line = (short_line(x), short_line(mean), none or short_line(low), none or short_line(high))
        way, _, alpha = agent.partition("-")
        groups = {"exploration": way, "alpha": alpha} if place[1] is not None else {"agent": agent}
        series.append(Series(panel(place), agent, groups, *line, shown=True))
    title = f"{runs.suite.title}: {LABELS[kind]} while learning"
    return Chart(f"{runs.suite.name}-{kind}", title, "steps", f"mean {LABELS[kind]}", tuple(series))


def curves_figure(runs: SuiteRuns, kind: str) -> Picture:
    """The curves of all agents, a panel for each task and number of levels."""
    count = len(runs.places)
    columns = min(COLUMNS, count)
    lines = -(-count // columns)
    figure = Figure(figsize=(max(3.4, 2.5 * columns), 2.0 * lines + 0.6), layout="constrained")
    panels = list(figure.subplots(lines, columns, squeeze=False).ravel())
    for axes, place in zip(panels, runs.places):
        for i, agent in enumerate(runs.agents):
            cell = runs.cells.get((place, agent))
            found = None if cell is None else cell.curve(kind)
            if cell is None or found is None:
                continue
            x, mean, low, high = found
            colour = COLOURS[i % len(COLOURS)]
            marker = "o" if len(x) == 1 else ""
            axes.plot(x, mean, color=colour, linewidth=1.1, label=agent, zorder=3, marker=marker)
            if len(cell.rows) > 1:
                axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0, zorder=2)
        axes.set_title(panel(place), loc="left")
        axes.grid(axis="y")
        axes.tick_params(colors=GREY)
        axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
    for axes in panels[count:]:
        axes.set_visible(False)
    for axes in panels[::columns]:
        axes.set_ylabel(LABELS[kind])
    legend_below(figure, panels, 1.5)
    alt = (
        f"{count} panels, one for each task: mean {LABELS[kind]} against steps of "
        f"{listed(runs.agents, 9)}, with bands for their intervals, or for the range of fewer "
        "than six runs."
    )
    return Picture(f"{runs.suite.name}-{kind}-curves", figure, alt)


def panel(place: Place) -> str:
    """The name of a panel.

    >>> panel(("Hopper", 3)), panel(("CartPole-v1", None))
    ('Hopper, 3 levels', 'CartPole-v1')
    """
    return place[0] if place[1] is None else f"{place[0]}, {place[1]} levels"


def _thousands(value: float, place: object = None) -> str:
    """Steps in thousands.

    >>> _thousands(50_000.0), _thousands(300.0)
    ('50k', '300')
    """
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
