"""The tables of suites from their rows: tables, curves and a caption."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tsallax.paper.result import Line, Result, Table
from tsallax.paper.suites.agent_comparison import comparison_rows
from tsallax.paper.suites.alpha_comparison import alpha_rows
from tsallax.paper.suites.suite_cells import (
    SuiteCell,
    SuiteRuns,
    are_equal,
    decimals,
    gather_suite,
    label,
    shown_return,
)
from tsallax.paper.suites.suite_commands import commands_for_suite
from tsallax.paper.suites.suite_curves import curves_chart, curves_figure, curves_kind
from tsallax.paper.suites.suite_rows import SuiteRow
from tsallax.paper.suites.suite_tasks import OURS, published_returns
from tsallax.paper.tables.formatting import blank_or_number, joined_words, number, shown, span
from tsallax.paper.tables.run_options import dates_of, hardware_of, versions_of
from tsallax.plotting import paper_style
from tsallax.statistics import MIN_RUNS, Estimate, iqm
from tsallax.wording import plural

ABOVE, BELOW, LEVEL, TOO_FEW = "above", "below", "intervals overlap", "too few runs"
OTHER_STEPS = "different steps"


def summarize_suite(name: str, rows: Sequence[SuiteRow]) -> Result:
    """Tables and figures of the runs of a suite, next to the returns that others publish."""
    runs = gather_suite(name, rows)
    published = published_returns(runs.suite)
    with paper_style():
        pictures = [curves_figure(runs, curves_kind(runs))]
    main = (
        _against_peer(runs, published) if OURS in runs.suite.agents else _by_agent(runs, published)
    )
    tables = [
        Table(f"{name}-returns", "greedy return after training", main, "open"),
        Table(f"{name}-alpha", "alpha that follows the support", alpha_rows(runs), "open"),
        Table(f"{name}-agents", "agents over all tasks", comparison_rows(runs), "open"),
        Table(f"{name}-speed", "steps per second", _speeds(runs), "open"),
        Table(f"{name}-published", "published returns", tuple(published), "folded"),
        Table(f"{name}-cells", "every agent on every task", _cells(runs), "folded"),
        Table(f"{name}-runs", "every run", _runs(runs)),
    ]
    return Result(
        name=name,
        title=runs.suite.title,
        caption=_caption(runs),
        parameters=_parameters(runs),
        tables=tuple(table for table in tables if table.rows),
        comparison=(),
        pictures=tuple(pictures),
        charts=tuple(
            chart
            for kind in ("training", "evaluations")
            if (chart := curves_chart(runs, kind)).series
        ),
        hardware=hardware_of(runs.rows),
        quick=any(row.steps < runs.suite.tasks[row.task].steps for row in runs.rows),
    )


def _against_peer(runs: SuiteRuns, published: Sequence[Line]) -> tuple[Line, ...]:
    """A line for each task and milestone: our return, the peer's, and how they compare."""
    lines: list[Line] = []
    for place in runs.places:
        ours, peer = (runs.cell(place, agent) for agent in (OURS, runs.suite.peer))
        cells = [cell for cell in (ours, peer) if cell is not None]
        if not cells:
            continue
        steps = [cell.rows[0].steps for cell in cells]
        few = min(len(cell.rows) for cell in cells) < MIN_RUNS
        for step in (*runs.suite.tasks[place[0]].milestones, None):
            means = [None if cell is None else _mean(cell, step) for cell in (ours, peer)]
            if means == [None, None]:
                continue
            last, compared = step is None, compare(*means)
            if compared:
                longer = last and not are_equal(steps)
                compared = OTHER_STEPS if longer else TOO_FEW if few else compared
            others = [
                str(_published(one, steps, _source(one)))
                for one in published
                if last and one["task"] == place[0]
            ]
            lines.append(
                {
                    "task": place[0],
                    "steps": _steps(steps) if step is None else step,
                    OURS: shown_return(means[0]),
                    runs.suite.peer: shown_return(means[1]),
                    "compared": compared,
                    "runs": " and ".join(str(len(cell.rows)) for cell in cells),
                    "published": joined_words(others),
                }
            )
    return tuple(lines)


def _mean(cell: SuiteCell, step: int | None) -> Estimate | None:
    return cell.mean if step is None else cell.mean_at(step)


def compare(ours: Estimate | None, peer: Estimate | None) -> str:
    """Whether our interval is above the peer's, below it, or overlaps with it.

    >>> compare(Estimate(5.0, 4.0, 6.0), Estimate(3.0, 2.0, 3.5))
    'above'
    """
    if ours is None or peer is None:
        return ""
    if None in (ours.low, ours.high, peer.low, peer.high):
        return "no interval"
    ends = [float(end) for end in (ours.low, ours.high, peer.low, peer.high) if end is not None]
    return ABOVE if ends[0] > ends[3] else BELOW if ends[1] < ends[2] else LEVEL


def _by_agent(runs: SuiteRuns, published: Sequence[Line]) -> tuple[Line, ...]:
    """A line for each task and number of levels: our agents, then what others publish."""
    sources = dict.fromkeys(map(_source, published), "")
    lines: list[Line] = []
    for place in runs.places:
        cells = {agent: runs.cell(place, agent) for agent in runs.agents}
        known = [cell for cell in cells.values() if cell is not None]
        steps = [cell.rows[0].steps for cell in known]
        line: dict[str, str | int | float] = {
            "task": place[0],
            "levels": "" if place[1] is None else place[1],
            "steps": _steps(steps),
            "runs": span([len(cell.rows) for cell in known]),
        }
        line |= {a: shown_return(None if cell is None else cell.mean) for a, cell in cells.items()}
        mine = [one for one in published if one["task"] == place[0]]
        line |= sources | {_source(one): _published(one, steps) for one in mine}
        lines.append(line)
    return tuple(lines)


def _speeds(runs: SuiteRuns) -> tuple[Line, ...]:
    """A line for each task: steps per second of each agent.

    Rows do not tell machines apart, so that no ratios are made of them.
    """
    lines: list[Line] = []
    for place in runs.places:
        mine = {agent: runs.cell(place, agent) for agent in runs.agents}
        line: dict[str, str | int | float] = {"task": label(place)}
        for agent, cell in mine.items():
            line[agent] = "" if cell is None else shown(cell.speed, 0)
        lines.append(line)
    return tuple(lines)


def _cells(runs: SuiteRuns) -> tuple[Line, ...]:
    """A line for each agent on each task, in numbers alone."""
    lines: list[Line] = []
    for (place, agent), cell in runs.cells.items():
        mean, speed = cell.mean, cell.speed
        last = [row.training[-1][1] for row in cell.rows if row.training]
        lines.append(
            {
                "task": place[0],
                "levels": "" if place[1] is None else place[1],
                "agent": agent,
                "runs": len(cell.rows),
                "steps": cell.rows[0].steps,
                "greedy": blank_or_number(mean.value),
                "greedy_low": blank_or_number(mean.low),
                "greedy_high": blank_or_number(mean.high),
                "greedy_iqm": blank_or_number(float(iqm(cell.greedy))),
                "worst": blank_or_number(float(cell.greedy.min())),
                "best": blank_or_number(float(cell.greedy.max())),
                "best_evaluation": blank_or_number(_best_evaluation(cell)),
                "last_training_return": blank_or_number(float(np.mean(last)) if last else None),
                "steps_per_second": blank_or_number(speed.value),
                "agents_at_once": span([row.agents for row in cell.rows]),
            }
        )
    return tuple(lines)


def _best_evaluation(cell: SuiteCell) -> float | None:
    """The largest mean over the runs of an evaluation, as some libraries publish it."""
    steps = set.intersection(*({at for at, *_ in row.evaluations} for row in cell.rows))
    means = [float(found.mean()) for at in steps if (found := cell.greedy_at(at)) is not None]
    return max(means, default=None)


def _runs(runs: SuiteRuns) -> tuple[Line, ...]:
    return tuple(
        {
            "task": row.task,
            "levels": "" if row.levels is None else row.levels,
            "agent": row.agent,
            "seed": row.seed,
            "steps": row.steps,
            "episodes": row.episodes,
            "greedy": blank_or_number(row.greedy),
            "greedy_error": blank_or_number(row.greedy_error),
            "seconds": row.seconds,
            "agents_at_once": row.agents,
        }
        for row in runs.rows
    )


def _caption(runs: SuiteRuns) -> tuple[str, ...]:
    counts = sorted({len(cell.rows) for cell in runs.cells.values()})
    evaluated = [row.evaluated for row in runs.rows]
    first = (
        f"{plural(len(runs.rows), 'run')} of {plural(len(runs.places), 'task')}, "
        f"{span(counts)} for each agent. The return is that of the greedy policy after training, "
        f"the mean of {span(evaluated)} episodes of each run; a run is never stopped early, and "
        "its last network counts, not its best."
    )
    full = [runs.suite.tasks[place[0]].steps for place in runs.places]
    short = (
        f"Runs have {span([row.steps for row in runs.rows])} steps, those of the full table "
        f"{span(full)}: returns are those after as many steps as stand beside them."
        if any(row.steps < runs.suite.tasks[row.task].steps for row in runs.rows)
        else ""
    )
    ends = (
        "Brackets hold 95 % intervals by a bootstrap over runs."
        if counts[0] >= MIN_RUNS
        else "Brackets hold 95 % intervals by a bootstrap over runs, from six runs on; around "
        "means of fewer runs they hold their range, which is not a 95 % interval."
    )
    speed = (
        "Steps per second are those of all agents of a program together, compilation included, "
        "evaluations not: compare them only between runs on the same hardware, with as many "
        "processes at a time."
    )
    rest = (
        "Published returns are of other versions of the environments and of other protocols, "
        "which the table of published returns names; the best average over time that some of them "
        "report is higher than a return after training. The column best_evaluation of the table "
        "of all agents has ours."
        if published_returns(runs.suite)
        else ""
    )
    alike = (
        f"{runs.suite.peer} is {runs.suite.peer_description}."
        if runs.suite.peer in runs.agents
        else ""
    )
    return tuple(part for part in (first, short, ends, alike, speed, rest) if part)


def _parameters(runs: SuiteRuns) -> dict[str, Any]:
    """Options of every agent, seeds, steps, versions and time."""
    return {
        "runs": len(runs.rows),
        "seeds": sorted({row.seed for row in runs.rows}),
        "evaluation_episodes": sorted({row.evaluated for row in runs.rows}),
        "options": {
            f"{label(place)}, {agent}": cell.rows[0].config
            for (place, agent), cell in runs.cells.items()
        },
        "versions": versions_of(runs.rows),
        "dates": dates_of(runs.rows),
        "commands": commands_for_suite(runs),
    }


def _steps(steps: Sequence[int]) -> int | str:
    """The steps of runs, as a range where they are not equally long."""
    return steps[0] if are_equal(steps) else span(steps)


def _source(one: Line) -> str:
    return f"{one['source']} {one['agent']}"


def _published(one: Line, ours: Sequence[int], source: str = "") -> str | float:
    """A published return with its source, and with its steps where ours are others.

    >>> _published({"return": 3542.0, "steps": 1_000_000}, [300_000])
    '3542 (1,000,000 steps)'
    """
    value, steps = float(one["return"]), int(one["steps"])
    other = "" if are_equal([steps, *ours]) else f"{steps:,} steps"
    notes = ", ".join(note for note in (source, other) if note)
    return f"{number(value, decimals(value))} ({notes})" if notes else value
