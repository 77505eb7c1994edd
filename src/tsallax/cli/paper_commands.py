"""The commands for the paper: `tsallax reproduce` and `tsallax report`."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsallax.cli.output import print_line
from tsallax.cli.table_requests import suite_request, sweep_request
from tsallax.errors import InvalidInput
from tsallax.paper.experiments import EXPERIMENTS, FIGURE, SUITE, SWEEP, names_of

if TYPE_CHECKING:
    from tsallax.paper.fleets.execution import Plan
    from tsallax.paper.fleets.row_files import RowFolder

FIGURES, TRAINED = names_of(FIGURE), names_of(SWEEP, SUITE)
USERS = {
    **dict.fromkeys(("actions", "episodes"), names_of(SWEEP)),
    **dict.fromkeys(("tasks", "levels"), names_of(SUITE)),
}
"""The experiments that have an option of `reproduce`, where not all that train agents have it."""
RESOURCES = ("device", "ray", "at_once", "processes", "time_limit")
"""Options that say where and how long agents are trained."""
UNFINISHED = 3
"""The exit code where the time limit came before the end of training."""


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    lines = [f"{one.name:<10} {one.help}" for one in EXPERIMENTS.values()]
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
            help=f"{', '.join(FIGURES)}, all (these four, the default), {', '.join(TRAINED)}.",
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
            help="Such as Sparse+SparseBellman-0.1, EpsGrdy+Bellman, DDPG; of classic, control "
            "and minatar sparse-0.1, epsilon.  [default: all]",
        ),
    ] = None,
    alphas: Annotated[
        str | None,
        typer.Option(
            metavar="X,X,...", help="Coefficients.  [default: 1,0.1,0.01; of control 0.1,auto]"
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="Runs of each variant.  [default: 3; classic and minatar 10, control 5]"),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(help="The most of a run.  [default: paper's, 10000 and 3000]")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="The most of a run.  [default: 500000 and 400000, or the task's]"),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="For all variants; may be repeated."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu or gpu.  [default: gpu if there is one]")
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option(help="Agents trained as one program.  [default: 81 on a gpu, 1 on a cpu]"),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Programs to train side by side.  [default: 1]")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Train on a Ray cluster: an address, auto or local."),
    ] = None,
    tasks_: Annotated[
        str | None,
        typer.Option(
            "--tasks",
            metavar="NAME,...",
            help="Tasks of classic, control or minatar.  [default: all]",
        ),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Levels of each dimension of an action, for control.  [default: 3]",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds after which training is saved and ends, with exit code 3."),
    ] = None,
) -> None:
    """Compute figures and tables of the paper again, next to its values, as one HTML page.

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

    The last five train agents: reacher and pendulum take minutes on a large GPU and weeks on
    a CPU, control hours on a large GPU. classic, control and minatar are not in the paper.
    Every run becomes a row in the folder when it is finished. The same command resumes an
    interrupted one, on another machine too, and trains nothing twice.
    """
    names = what or ["all"]
    for name in names:
        if name not in (*EXPERIMENTS, "all"):
            known = ", ".join(EXPERIMENTS)
            raise InvalidInput(f"cannot reproduce {name!r}: choose from {known}, all")
    suites = [name for name in names_of(SUITE) if name in names]
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
        users = USERS.get(option, TRAINED)
        if not set(users) & set(names):
            flag = f"--{option.replace('_', '-')}"
            raise InvalidInput(f"{flag} is for {', '.join(users)}: name one of them")
    figures = [name for name in FIGURES if name in names or "all" in names]
    trained = [name for name in TRAINED if name in names]
    try:
        _reproduce(figures, trained, out, quick, given)
    except KeyboardInterrupt:
        left = "finished runs and checkpoints" if trained else "finished figures"
        resumed = ": the same command resumes from there" if trained else ""
        raise KeyboardInterrupt(f"{left} are in {out}{resumed}") from None


def _reproduce(
    figures: list[str], trained: list[str], out: Path, quick: bool, given: dict[str, Any]
) -> None:
    """Compute figures, then train what the folder does not hold, and make the page.

    The page is made also where the time limit came first, if there is a finished run.
    """
    from tsallax.paper import report

    if trained:
        from tsallax.paper.fleets.execution import check_resources, train_missing

        requests, plan, rows = _requests(trained, out, quick, given)
        where = {name: given[name] for name in RESOURCES if name in given}
        check_resources(**{name: where[name] for name in where if name != "time_limit"})
    index = report.reproduce(figures, out, quick=quick) if figures else None
    finished = not trained or train_missing(requests, plan, rows, **where)
    if trained and (found := rows.read()):
        report.write_tables(found, out)
        index = report.write_page(out)
    if index is not None:
        typer.echo(f"The report is in {index}")
    if not finished:
        problem = f"not all runs are finished after {given['time_limit']:g} s"
        print_line("unfinished", f"{problem}: the same command continues them")
        raise typer.Exit(UNFINISHED)


def _requests(
    names: list[str], out: Path, quick: bool, given: dict[str, Any]
) -> tuple[list[Any], Plan, RowFolder[Any]]:
    """What the options ask to train of the named tables, how it is planned, and the rows."""
    from tsallax.paper.fleets.row_files import RowFolder

    if EXPERIMENTS[names[0]].kind == SUITE:
        from tsallax.paper.suites.suite_jobs import plan_suite
        from tsallax.paper.suites.suite_rows import SUITE_ROWS

        requests = [suite_request(name, quick, given) for name in names]
        return requests, plan_suite, RowFolder(out, SUITE_ROWS)
    from tsallax.paper.sweep.sweep_jobs import plan_sweep
    from tsallax.paper.sweep.sweep_rows import SWEEP_ROWS

    sweeps = [sweep_request(name, quick, given) for name in names]
    return sweeps, plan_sweep, RowFolder(out, SWEEP_ROWS)


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
