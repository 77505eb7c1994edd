"""`tsallax reproduce classic` and `control`: tables of learning beyond the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tsallax.cli.arguments import key_values, separated
from tsallax.cli.output import print_line
from tsallax.errors import InvalidInput

if TYPE_CHECKING:
    from tsallax.paper.suites.suite_jobs import Request

UNFINISHED = 3
"""The exit code where the time limit came before the end of training."""


def reproduce_suites(names: Sequence[str], out: Path, quick: bool, given: dict[str, Any]) -> None:
    """Train the runs that the folder does not hold, and make its page.

    `given` are the options of the command line. The page is made also where the time limit came
    first, if there is a finished run.
    """
    from tsallax.paper.report import write_page, write_tables
    from tsallax.paper.suites.suite_execution import train_suites
    from tsallax.paper.suites.suite_rows import read_suite_rows

    where = ("device", "at_once", "processes", "time_limit")
    finished = train_suites(
        [suite_request(name, quick, given) for name in names],
        out,
        **{name: given[name] for name in where if name in given},
    )
    rows = read_suite_rows(out)
    if rows:
        write_tables(rows, out)
        typer.echo(f"The report is in {write_page(out)}")
    if not finished:
        problem = f"not all runs are finished after {given['time_limit']:g} s"
        print_line("unfinished", f"{problem}: the same command continues them")
        raise typer.Exit(UNFINISHED)


def suite_request(name: str, quick: bool, given: dict[str, Any]) -> Request:
    """What the options ask for."""
    import dataclasses

    from tsallax.paper.suites.suite_jobs import default_request
    from tsallax.paper.suites.suite_tasks import (
        CLASSIC,
        DEFAULT_ALPHAS,
        OURS,
        SUITES,
        choose,
        suite_agents,
    )

    suite = SUITES[name]
    words = {
        option: separated(f"--{option}", given[option])
        for option in ("tasks", "variants", "alphas", "levels")
        if option in given
    }
    usual = default_request(suite, quick)
    changes: dict[str, Any] = {key: given[key] for key in ("seeds", "steps") if key in given}
    changes["tasks"] = choose("task", words.get("tasks"), list(suite.tasks))
    options = {**usual.options, **key_values("--set", given.get("set"))}
    if suite is not CLASSIC or "variants" in words or "alphas" in words:
        ours: dict[str, dict[str, Any]] = {OURS: {}} if suite is CLASSIC else {}
        agents = {**ours, **suite_agents(words.get("alphas", DEFAULT_ALPHAS))}
        chosen = choose("variant", words.get("variants"), list(agents))
        changes["agents"] = {agent: agents[agent] for agent in chosen}
        for option in options:
            if option in ("explore", "update", "alpha"):
                raise InvalidInput(f"--set {option}: not an option that all variants share")
    if "levels" in words:
        if suite is CLASSIC:
            raise InvalidInput("--levels is for control: the actions of classic are discrete")
        changes["levels"] = tuple(_level(word) for word in words["levels"])
    return dataclasses.replace(usual, **changes, options=options)


def _level(word: str) -> int:
    if not word.isdecimal() or int(word) < 2:
        raise InvalidInput(f"--levels {word}: must be integers of 2 or more, such as 3,7")
    return int(word)
