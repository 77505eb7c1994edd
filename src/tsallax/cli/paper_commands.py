"""The commands for the paper: `tsallax reproduce` and `tsallax report`."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsallax.cli.arguments import key_values, separated
from tsallax.cli.suite_command import reproduce_suites
from tsallax.errors import InvalidInput
from tsallax.paper.experiments import EXPERIMENTS, LEARNING, PLANNING, TABLES

if TYPE_CHECKING:
    from tsallax.paper.sweep.specification import Sweep

USERS = {
    **dict.fromkeys(("actions", "episodes", "ray"), LEARNING),
    **dict.fromkeys(("tasks", "levels", "time_limit"), tuple(TABLES)),
}
"""The experiments that have an option of `reproduce`, where not all that train agents have it."""


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    lines = [f"{one.name:<10} {one.help}" for one in (*EXPERIMENTS.values(), *TABLES.values())]
    app.command(
        short_help="Compute figures and tables of the paper again.",
        help=cleandoc(reproduce.__doc__ or "").replace("EXPERIMENTS", "\n".join(lines)),
    )(reproduce)
    app.command("report", short_help="Make one page of results.")(make_page)


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help=f"{', '.join(PLANNING)}, all (these four, the default), "
            f"{', '.join((*LEARNING, *TABLES))}.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the report.")] = Path("out/paper"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small grids, few cases and short runs, to try it out.")
    ] = False,
    actions: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Numbers of actions.  [default: paper's]")
    ] = None,
    variants: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Such as Sparse+SparseBellman-0.1, EpsGrdy+Bellman, DDPG.  [default: all 28]",
        ),
    ] = None,
    alphas: Annotated[
        str | None, typer.Option(metavar="X,X,...", help="Coefficients.  [default: 1,0.1,0.01]")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs of each variant.  [default: 3]")] = None,
    episodes: Annotated[
        int | None, typer.Option(help="Of a run.  [default: paper's, 10000 and 3000]")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="The most of a run.  [default: 500000 and 400000]")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="For all variants; may be repeated."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu or gpu.  [default: gpu if there is one]")
    ] = None,
    at_once: Annotated[
        int | None, typer.Option(help="Agents of a fleet.  [default: 81 on a gpu, 1 on a cpu]")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Fleets to train side by side.  [default: 1]")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Train on a Ray cluster: an address, auto or local."),
    ] = None,
    tasks_: Annotated[
        str | None,
        typer.Option("--tasks", metavar="NAME,...", help="Of classic, control.  [default: all]"),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Of each action dimension of control.  [default: 3]"),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds after which classic, control save and end, with exit code 3."),
    ] = None,
) -> None:
    """Compute figures and tables of the paper again, next to its values, as one HTML report.

    \b
    Examples:
      tsallax reproduce figure1 --quick
      tsallax reproduce figure2a figure2b --out out/unicycle
      tsallax reproduce reacher --quick
      tsallax reproduce reacher pendulum --device gpu --seeds 3
      tsallax reproduce reacher --actions 121 --variants Sparse+SparseBellman-0.1,DDPG
      tsallax reproduce reacher --quick --processes 4
      tsallax reproduce pendulum --ray auto --out /shared/folder
      tsallax reproduce classic --processes 4 --out out/classic
      tsallax reproduce control --tasks Hopper --levels 3,7 --time-limit 540 --out out/control

    \b
    EXPERIMENTS

    The last four train agents: reacher and pendulum take minutes on a large GPU and weeks on
    a CPU, control hours on a large GPU. classic and control are not in the paper. Every run
    becomes a row in the folder when it is finished. The same command resumes an interrupted
    one, on another machine too, and trains nothing twice.
    """
    names = what or ["all"]
    known = (*EXPERIMENTS, *TABLES)
    for name in names:
        if name not in (*known, "all"):
            raise InvalidInput(f"cannot reproduce {name!r}: choose from {', '.join(known)}, all")
    suites = [name for name in TABLES if name in names]
    if suites and set(names) - set(suites):
        raise InvalidInput(f"reproduce {' and '.join(suites)} by itself")
    options = {
        "actions": actions, "variants": variants, "alphas": alphas, "seeds": seeds,
        "episodes": episodes, "steps": steps, "set": set_, "device": device, "at_once": at_once,
        "processes": processes, "ray": ray, "tasks": tasks_, "levels": levels,
        "time_limit": time_limit,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    for option in given:
        users = USERS.get(option, (*LEARNING, *TABLES))
        if not set(users) & set(names):
            flag = f"--{option.replace('_', '-')}"
            raise InvalidInput(f"{flag} is for {', '.join(users)}: name one of them")
    figures = [name for name in PLANNING if name in names or "all" in names]
    tasks = [name for name in LEARNING if name in names]
    try:
        if suites:
            reproduce_suites(suites, out, quick, given)
        else:
            typer.echo(f"The report is in {_reproduce(figures, tasks, out, quick, given)}")
    except KeyboardInterrupt:
        left = "finished runs and checkpoints" if tasks or suites else "finished figures"
        resumed = ": the same command resumes from there" if tasks or suites else ""
        raise KeyboardInterrupt(f"{left} are in {out}{resumed}") from None


def _reproduce(
    figures: list[str], tasks: list[str], out: Path, quick: bool, given: dict[str, Any]
) -> Path:
    """Compute figures, then train sweeps; the path of the page."""
    from tsallax.paper import report

    if tasks:
        from tsallax.paper.sweep.execution import check_resources, train_sweeps

        sweeps = [_sweep(name, quick, given) for name in tasks]
        where: dict[str, Any] = {name: given.get(name) for name in ("device", "ray", "at_once")}
        where["processes"] = given.get("processes", 1)
        check_resources(**where)
    if figures:
        index = report.reproduce(figures, out, quick=quick)
    if tasks:
        report.write_tables(train_sweeps(sweeps, out, **where), out)
        index = report.write_page(out)
    return index


def _sweep(name: str, quick: bool, given: dict[str, Any]) -> Sweep:
    """What the options ask for."""
    from tsallax.paper.sweep.specification import changed_sweep, paper_sweep
    from tsallax.paper.sweep.tasks import TASKS, choose_variants

    task = TASKS[name]
    usual = paper_sweep(task, quick)
    changes: dict[str, Any] = {
        key: given[key] for key in ("seeds", "episodes", "steps") if key in given
    }
    if "episodes" in given and "steps" not in given:
        scaled = -(-usual.steps * max(given["episodes"], 1) // usual.episodes)
        changes["steps"] = max(scaled, task.length)
    if "actions" in given:
        changes["actions"] = tuple(separated("--actions", given["actions"], int, "9,121"))
    if "set" in given:
        changes["options"] = {**usual.options, **key_values("--set", given["set"])}
    words, alphas = given.get("variants"), given.get("alphas")
    if words is not None or alphas is not None:
        names = None if words is None else separated("--variants", words)
        numbers = None if alphas is None else separated("--alphas", alphas, float, "0.1,0.01")
        changes["variants"] = tuple(choose_variants(names, numbers))
    return changed_sweep(usual, changes)


def make_page(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="Folders of reproduce, or of rows.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The folder to write to.  [default: the first DIR]")
    ] = None,
) -> None:
    """Make one page, index.html, of all results in some folders: tables, curves and figures.

    \b
    Examples:
      tsallax report out/paper
      tsallax report results --out out/results
      tsallax report out/figures results --out out/all

    Rows of several folders are put together. The page needs no other file and no network.
    """
    from tsallax.paper.report import write_report

    typer.echo(f"The report is in {write_report(folders, out)}")
