"""The paper's deep experiments from the rows of a sweep: its Figures 3 and 4 and four tables."""

from collections.abc import Sequence

import numpy as np

from tsallax.deep.linear_schedule import linear
from tsallax.paper.experiments import EXPERIMENTS
from tsallax.paper.result import Line, Result, Table
from tsallax.paper.sweep.sweep_rows import SweepRow
from tsallax.paper.sweep.sweep_tasks import VARIANTS, PaperResult, SweepTask, paper_results
from tsallax.paper.tables.cells import (
    DDPG_CELL,
    RULE,
    TOP,
    Cell,
    Ranking,
    SweepRuns,
    gather,
    ranking,
    times_of,
)
from tsallax.paper.tables.commands import commands_for
from tsallax.paper.tables.formatting import (
    blank_or_number,
    digits,
    episodes,
    joined_words,
    number,
    shown,
    span,
)
from tsallax.paper.tables.improvement import all_improvements, group_rows, improvement_rows
from tsallax.paper.tables.improvement_figure import draw_improvements
from tsallax.paper.tables.mean_curves import learning_curves_chart
from tsallax.paper.tables.paper_comparison import best_rows, comparison
from tsallax.paper.tables.run_options import hardware_of, missing, parameters
from tsallax.paper.tables.table_figures import curves_figure, returns_figure
from tsallax.paper.tables.verdicts import claims, rows_of, tally, updates
from tsallax.plotting import paper_style
from tsallax.statistics import MIN_RUNS, Array, iqm, mean_of, resample
from tsallax.wording import plural


def summarize_runs(task: SweepTask, rows: Sequence[SweepRow]) -> Result:
    """Tables, figures and verdicts of the runs of a task, next to the paper's.

    Rows of other tasks are left out; runs of the task may be missing, but not all of them.
    """
    sweep = gather(task, rows)
    order = ranking(sweep)
    found = all_improvements(sweep)
    statements = claims(sweep, order)
    weights = resample({cell: len(runs) for cell, runs in sweep.named.items()})
    with paper_style():
        pictures = [draw(sweep, order) for draw in (returns_figure, curves_figure) if order.names]
        pictures += [draw_improvements(sweep, found)] if found else []
    made = [
        Table(
            f"{task.name}-claims", "claims of the paper, and verdicts from these runs",
            rows_of(statements), "open",
        ),
        Table(
            f"{task.name}-returns", "expected return of the greedy policy, with the paper's beside "
            "it", _wide(sweep, weights, "expected_return"), "open",
        ),
        Table(
            f"{task.name}-episodes", f"episodes to a return of {number(sweep.threshold, 0)}, with "
            "the paper's beside them", _wide(sweep, weights, "episodes"), "open",
        ),
        Table(
            f"{task.name}-best", "the best algorithm of each way to explore, whatever its alpha",
            best_rows(sweep), "open",
        ),
        Table(
            f"{task.name}-groups", "ways to explore and to update, all alphas",
            group_rows(sweep), "folded",
        ),
        Table(
            f"{task.name}-updates", "ways to update, of which the paper draws no conclusion",
            rows_of(updates(sweep)), "folded",
        ),
        Table(
            f"{task.name}-improvement", "probability that one way does better than another",
            improvement_rows(found), "folded",
        ),
        Table(f"{task.name}-cells", "every algorithm at every number", _cells(sweep, weights)),
        Table(f"{task.name}-runs", "every run", _runs(sweep)),
    ]  # fmt: skip
    names = {row.algorithm for row in sweep.rows if row.actions is not None}
    learners = f"{plural(len(names), 'variant')} of deep Q-learning" if names else "DDPG"
    return Result(
        name=task.name,
        title=f"{EXPERIMENTS[task.name].title}, {learners}",
        caption=_caption(sweep, order, tally(statements)),
        parameters={**parameters(sweep), "commands": commands_for(task, sweep.rows)},
        tables=tuple(table for table in made if table.rows),
        comparison=comparison(sweep),
        pictures=tuple(pictures),
        charts=(learning_curves_chart(sweep, order.names[:TOP]),),
        hardware=hardware_of(sweep.rows),
        quick=any(r.episodes < task.episodes and r.steps < task.steps for r in sweep.rows),
    )


def _caption(sweep: SweepRuns, order: Ranking, judged: str) -> tuple[str, ...]:
    """The caption: what is shown, what is missing, and how the numbers were computed."""
    counts = sorted({len(runs) for runs in sweep.named.values()})
    best = joined_words(order.names[:TOP])
    size = span([row.evaluated for row in sweep.rows])
    first = (
        f"{plural(len(sweep.rows), 'run')} of {sweep.task.title}, {span(counts)} for each "
        "algorithm and number of actions. The expected return is that of the final policy without "
        f"exploration, over {size} episodes of each run. A run has reached the threshold of "
        f"{number(sweep.threshold, 0)} when the mean of 100 training episodes in a row has. "
        f"{missing(sweep)}"
    )
    ways = (
        "Brackets hold 95 % intervals by a bootstrap over runs, stratified by algorithm and number "
        f"of actions{_ranges(counts)}. One run has no interval; nor has a probability where a side "
        "has fewer than six runs, or where it is the same in every draw. A run that never reached "
        "the threshold counts with its episodes, so that such means are lower bounds, marked ≥ "
        "with the runs that reached it; a match in which none did is left out, and otherwise "
        "a pair of runs of which it is unknown which was first counts half. Epsilon-greedy "
        "with the plain update has no alpha: the runs of its three names are pooled wherever "
        "algorithms are compared. Matched runs have the same alpha, which does not mean the same "
        "to different ways to explore: a table has the best of each. A verdict needs an interval "
        "that excludes chance, or that all runs of one side do better than all of the other; of "
        "twenty such intervals one is expected to err."
    )
    equal = int(((order.top > 0) & (order.top < 1)).sum())
    shared = f" The last are among {equal} that are tied." if equal else ""
    count = "five" if len(order.names) >= TOP else str(len(order.names))
    top = f"Our top {count}, ordered by {RULE}: {best}.{shared}" if order.names else ""
    return tuple(part for part in (first, judged, top, _schedule(sweep), ways) if part)


def _ranges(counts: Sequence[int]) -> str:
    """The meaning of brackets around the mean of few runs.

    >>> _ranges([3, 10])
    '; but brackets around means of fewer than six runs, here 3, are their range, ...'
    >>> _ranges([10])
    ''
    """
    few = [count for count in counts if 1 < count < MIN_RUNS]
    if not few:
        return ""
    here = joined_words([str(count) for count in few])
    return (
        f"; but brackets around means of fewer than six runs, here {here}, are their range, which "
        f"holds the median of all such runs with a probability of {1 - 0.5 ** (few[0] - 1):.0%}"
        f"{' or more' if len(few) > 1 else ''}"
    ).replace("%", " %")


def _schedule(sweep: SweepRuns) -> str:
    """A caution where epsilon-greedy runs reach the threshold when epsilon stops falling."""
    reached = [row for row in sweep.rows if row.explore == "epsilon" and row.reached is not None]
    lengths = {row.steps / row.episodes for row in sweep.rows if row.episodes}
    if not reached or len(lengths) > 1 or any("epsilon" not in row.config for row in reached):
        return ""
    ends = {linear("epsilon", row.config["epsilon"]).steps for row in reached}
    end, middle = max(ends) / lengths.pop(), float(np.median([row.reached or 0 for row in reached]))
    if len(ends) > 1 or not 0.95 * end <= middle <= 1.25 * end:
        return ""
    return (
        f"Epsilon falls until episode {end:,.0f}, and half of the epsilon-greedy runs that "
        f"reached the threshold had done so by episode {middle:,.0f}: their number of episodes "
        "depends more on this schedule than on the method."
    )


def _names(sweep: SweepRuns) -> list[str]:
    """The paper's 27, others of which there are runs, and DDPG."""
    names = dict.fromkeys(variant.name for variant in VARIANTS)
    names |= dict.fromkeys(one for one, actions in sweep.named if actions is not None)
    return [*names, *(["DDPG"] if DDPG_CELL in sweep.named else [])]


def _wide(sweep: SweepRuns, weights: dict[Cell, Array], measure: str) -> tuple[Line, ...]:
    """A line for each algorithm, with our cell and the paper's for each number of actions."""

    def ours(cell: Cell, runs: Sequence[SweepRow]) -> str:
        if measure == "expected_return":
            greedy = np.array([row.greedy for row in runs])
            return shown(mean_of(greedy, weights[cell]), digits(sweep.task))
        known = times_of(runs)
        return episodes(known.reached, mean_of(known.episodes, weights[cell]))

    paper = paper_results(sweep.task)
    rows: list[Line] = []
    for one in _names(sweep):
        line: dict[str, str | int | float] = {"algorithm": one}
        for n in sorted({*sweep.task.actions, *sweep.actions}):
            cell = DDPG_CELL if one == "DDPG" else (one, n)
            runs = sweep.named.get(cell)
            line[f"{n:,} actions"] = ours(cell, runs) if runs else "not run"
            line[f"paper, {n:,}"] = _said(paper.get(cell), measure)
        rows.append(line)
    return tuple(rows)


def _said(cell: PaperResult | None, measure: str) -> float | str:
    """The paper's number, or nothing where it has none."""
    value: float | None = getattr(cell, measure, None)
    return "" if value is None else value


def _cells(sweep: SweepRuns, weights: dict[Cell, Array]) -> tuple[Line, ...]:
    """One line for each algorithm and number of actions, in numbers alone."""
    paper = paper_results(sweep.task)
    lines: list[Line] = []
    for cell, runs in sweep.named.items():
        first, known = runs[0], times_of(runs)
        line: dict[str, str | int | float] = {
            "algorithm": cell[0],
            "exploration": first.explore or "",
            "update": first.update or "",
            "alpha": "" if first.alpha is None else first.alpha,
            "actions": "continuous" if cell[1] is None else cell[1],
            "runs": len(runs),
        }
        measured = {
            "greedy": [row.greedy for row in runs],
            "sampled": [row.sampled for row in runs],
            "last_100": [row.final for row in runs],
            "episodes": list(known.episodes),
        }
        for name, values in measured.items():
            mean = mean_of(np.array(values), weights[cell])
            line |= {name: blank_or_number(mean.value), f"{name}_low": blank_or_number(mean.low)}
            line |= {
                f"{name}_high": blank_or_number(mean.high),
                f"{name}_iqm": blank_or_number(float(iqm(values))),
            }
        line["runs_that_reached"] = int(known.reached.sum())
        line["paper_return"] = _said(paper.get(cell), "expected_return")
        line["paper_episodes"] = _said(paper.get(cell), "episodes")
        lines.append(line)
    return tuple(lines)


def _runs(sweep: SweepRuns) -> tuple[Line, ...]:
    return tuple(
        {
            "algorithm": row.algorithm,
            "actions": "continuous" if row.actions is None else row.actions,
            "seed": row.seed,
            "episodes": row.episodes,
            "steps": row.steps,
            "reached": "" if row.reached is None else row.reached,
            "greedy": blank_or_number(row.greedy),
            "sampled": blank_or_number(row.sampled),
            "last_100": blank_or_number(row.final),
        }
        for row in sweep.rows
    )
