"""Options, versions and hardware of the runs of a sweep, and the runs that are missing."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tsallax.paper.suites.suite_rows import SuiteRow
from tsallax.paper.sweep.sweep_rows import SweepRow
from tsallax.paper.sweep.sweep_tasks import VARIANTS
from tsallax.paper.tables.cells import DDPG_CELL, SweepRuns
from tsallax.paper.tables.formatting import joined_words, span
from tsallax.wording import plural

HARDWARE = ("device", "machine")


def parameters(sweep: SweepRuns) -> dict[str, Any]:
    """Options, seeds, episodes, versions, hardware and time of all runs."""
    q_learning = [row for row in sweep.rows if row.actions is not None]
    ddpg = [row for row in sweep.rows if row.actions is None]
    same, differ = options_of(q_learning)
    dates = dates_of(sweep.rows)
    return {
        "environment": sweep.task.env,
        "threshold": sweep.threshold,
        "actions": list(sweep.actions),
        "runs": len(sweep.rows),
        "seeds": sorted({row.seed for row in sweep.rows}),
        "episodes": _range([row.episodes for row in sweep.rows]),
        "steps": _range([row.steps for row in sweep.rows]),
        "evaluation_episodes": _range([row.evaluated for row in sweep.rows]),
        "options_of_all_variants": same,
        "options_that_differ": differ,
        **({"options_of_ddpg": options_of(ddpg)[0]} if ddpg else {}),
        "versions": versions_of(sweep.rows),
        "hardware": hardware_of(sweep.rows),
        "hours_of_the_longest_fleet": round(max(row.seconds for row in sweep.rows) / 3600, 3),
        "dates": dates[:1] + dates[1:][-1:],
    }


def options_of(rows: Sequence[SweepRow]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Options with one value in all rows that use them, and the values of the others."""
    same: dict[str, Any] = {}
    differ: dict[str, list[Any]] = {}
    for key in dict.fromkeys(key for row in rows for key in row.config):
        having = [row for row in rows if key in row.config]
        users = [row for row in having if key != "epsilon" or row.explore == "epsilon"] or having
        texts = dict.fromkeys(json.dumps(row.config[key], sort_keys=True) for row in users)
        values = [json.loads(text) for text in texts]
        if len(values) == 1:
            same[key] = values[0]
        else:
            differ[key] = values
    return same, differ


def hardware_of(rows: Sequence[SweepRow | SuiteRow]) -> str | None:
    """The devices and machines that the rows name."""
    names = (
        ", ".join(row.provenance[key] for key in HARDWARE if row.provenance.get(key))
        for row in rows
    )
    return "; ".join(_distinct(names)) or None


def versions_of(rows: Sequence[SweepRow | SuiteRow]) -> dict[str, list[str]]:
    """The versions of programs that the rows name, by program."""
    programs = sorted({key for row in rows for key in row.provenance} - {*HARDWARE, "date"})
    return {key: _distinct(row.provenance.get(key, "") for row in rows) for key in programs}


def dates_of(rows: Sequence[SweepRow | SuiteRow]) -> list[str]:
    """The dates that the rows name, in order."""
    return sorted(_distinct(row.provenance.get("date", "") for row in rows))


def missing(sweep: SweepRuns) -> str:
    """The paper's runs that these rows lack, and options that differ, in sentences."""
    names = [variant.name for variant in VARIANTS]
    have = {cell for cell in sweep.named if cell[1] is not None}
    absent = [one for one in names if not any(cell[0] == one for cell in have)]
    without = [f"{n:,}" for n in sweep.task.actions if n not in sweep.actions]
    present = [(one, n) for one in names if one not in absent for n in sweep.actions]
    rest = sum(n in sweep.task.actions and (one, n) not in have for one, n in present)
    parts = (
        [f"{plural(len(without), 'number')} of actions ({joined_words(without)})"]
        if without
        else []
    )
    parts += [f"{plural(len(absent), 'algorithm')} ({joined_words(absent)})"] if absent else []
    parts += [plural(rest, "other cell")] if rest else []
    parts += ["DDPG"] if DDPG_CELL not in sweep.cells else []
    lacks = (
        f"Missing from the paper's 28 algorithms and 4 numbers of actions: {joined_words(parts)}."
    )
    text = lacks if parts else "Nothing of the paper's 28 algorithms is missing."
    if not have:
        return text
    differ = list(options_of([row for row in sweep.rows if row.actions is not None])[1])
    but = f" but {joined_words(differ, 9)}" if differ else ""
    return f"{text} Options are the same in all runs of Q-learning{but}."


def _range(values: Sequence[int]) -> int | str:
    return values[0] if len(set(values)) == 1 else span(values)


def _distinct(values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value]
