"""`tsallax reproduce classic` and `control`: tables of learning beyond the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tsallax.cli.arguments import key_values
from tsallax.cli.output import print_line
from tsallax.errors import InvalidInput

if TYPE_CHECKING:
    from tsallax.paper.suites.suite_jobs import Request

UNFINISHED = 3
"""The exit code where the time limit came before the end of training."""
QUICK: dict[str, Any] = {
    "seeds": 2, "steps": 1_000, "eval_every": 500, "eval_episodes": 2, "final_episodes": 5,
}  # fmt: skip
QUICK_OPTIONS: dict[str, Any] = {
    "net_arch": [32, 32], "buffer_size": 2_000, "learning_starts": 200, "batch_size": 32,
    "tau": None,
    "target_update_interval": 250,
}  # fmt: skip


def reproduce_suites(
    names: Sequence[str], out: Path, *, quick: bool, tasks: str | None, variants: str | None,
    alphas: str | None, levels: str | None, seeds: int | None, steps: int | None,
    set_: list[str] | None, device: str | None, at_once: int | None, processes: int,
    time_limit: float | None,
) -> None:  # fmt: skip
    """Train the runs that the folder does not hold, and make its page.

    The page is made also where the time limit came first, if there is a finished run.
    """
    from tsallax.paper.report import write_page, write_suite_tables
    from tsallax.paper.suites.suite_execution import train_suites
    from tsallax.paper.suites.suite_rows import read_suite_rows

    chosen = [
        suite_request(name, quick, tasks, variants, alphas, levels, seeds, steps, set_)
        for name in names
    ]
    try:
        finished = train_suites(
            chosen, out, device=device, at_once=at_once, processes=processes, time_limit=time_limit
        )
    except KeyboardInterrupt:
        where = f"finished runs and checkpoints are in {out}: the same command resumes from there"
        raise KeyboardInterrupt(where) from None
    rows = read_suite_rows(out)
    if rows:
        write_suite_tables(rows, out)
        typer.echo(f"The report is in {write_page(out)}")
    if not finished:
        problem = f"not all runs are finished after {time_limit:g} s"
        print_line("unfinished", f"{problem}: the same command continues them")
        raise typer.Exit(UNFINISHED)


def suite_request(
    name: str, quick: bool, tasks: str | None, variants: str | None, alphas: str | None,
    levels: str | None, seeds: int | None, steps: int | None, set_: list[str] | None,
) -> Request:  # fmt: skip
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
    asked = default_request(suite)
    changes: dict[str, Any] = dict(QUICK) if quick else {}
    options = {**(QUICK_OPTIONS if quick else {}), **key_values("--set", set_)}
    if suite is CLASSIC and levels is not None:
        raise InvalidInput("--levels is for control: the actions of classic are discrete")
    if variants is not None or alphas is not None or suite is not CLASSIC:
        ours: dict[str, dict[str, Any]] = {OURS: {}} if suite is CLASSIC else {}
        agents = {**ours, **suite_agents(_words(alphas) or DEFAULT_ALPHAS)}
        names = choose("variant", _words(variants), list(agents))
        changes["agents"] = {agent: agents[agent] for agent in names}
        for option in options:
            if option in ("explore", "update", "alpha"):
                raise InvalidInput(f"--set {option}: not an option that all variants share")
    if levels is not None:
        changes["levels"] = tuple(_level(word) for word in _words(levels) or ())
    changes["tasks"] = choose("task", _words(tasks), list(suite.tasks))
    given_counts = {"seeds": seeds, "steps": steps}
    changes |= {key: value for key, value in given_counts.items() if value is not None}
    return dataclasses.replace(asked, **changes, options=options)


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",")]


def _level(word: str) -> int:
    if not word.isdecimal() or int(word) < 2:
        raise InvalidInput(f"--levels {word}: must be integers of 2 or more, such as 3,7")
    return int(word)
