"""The commands for the paper: `tsallax reproduce` and `tsallax report`."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsallax.cli.arguments import key_values
from tsallax.errors import InvalidInput
from tsallax.paper.experiments import EXPERIMENTS, LEARNING, PLANNING, TABLES

if TYPE_CHECKING:
    from tsallax.paper.sweep.specification import Sweep


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
    for name in names:
        if name not in (*EXPERIMENTS, *TABLES, "all"):
            known = ", ".join((*EXPERIMENTS, *TABLES))
            raise InvalidInput(f"cannot reproduce {name!r}: choose from {known}, all")
    beyond = [name for name in TABLES if name in names]
    own = {"--tasks": tasks_, "--levels": levels, "--time-limit": time_limit}
    papers = {"--actions": actions, "--episodes": episodes, "--ray": ray}
    for option, asked in (papers if beyond else own).items():
        if asked is not None:
            users = " and ".join(LEARNING if beyond else TABLES)
            raise InvalidInput(f"{option} is for {users}: name one of them")
    if beyond:
        if set(names) - set(beyond):
            raise InvalidInput(f"reproduce {' and '.join(beyond)} by itself")
        from tsallax.cli.suite_command import reproduce_suites

        reproduce_suites(
            beyond, out, quick=quick, tasks=tasks_, variants=variants, alphas=alphas,
            levels=levels, seeds=seeds, steps=steps, set_=set_, device=device, at_once=at_once,
            processes=1 if processes is None else processes, time_limit=time_limit,
        )  # fmt: skip
        return
    figures = [name for name in PLANNING if name in names or "all" in names]
    tasks = [name for name in LEARNING if name in names]
    only = {
        "--actions": actions, "--variants": variants, "--alphas": alphas, "--seeds": seeds,
        "--episodes": episodes, "--steps": steps, "--set": set_, "--device": device,
        "--at-once": at_once, "--processes": processes, "--ray": ray,
    }  # fmt: skip
    for option, value in only.items():
        if value is not None and not tasks:
            raise InvalidInput(f"{option} is for {' and '.join(LEARNING)}: name one of them")
    sweeps = [
        _sweep(name, actions, variants, alphas, seeds, episodes, steps, set_, quick)
        for name in tasks
    ]
    count = 1 if processes is None else processes
    where = {"device": device, "ray": ray, "at_once": at_once, "processes": count}
    try:
        index = _reproduce(figures, sweeps, out, quick, where)
    except KeyboardInterrupt:
        finished = "finished figures" if not tasks else "finished runs and checkpoints"
        resumed = ": the same command resumes from there" if tasks else ""
        raise KeyboardInterrupt(f"{finished} are in {out}{resumed}") from None
    typer.echo(f"The report is in {index}")


def _reproduce(
    figures: list[str], sweeps: list[Sweep], out: Path, quick: bool, where: dict[str, Any]
) -> Path:
    """Compute figures, then train sweeps; the path of the page."""
    from tsallax.paper import report

    if sweeps:
        from tsallax.paper.sweep.execution import check_resources, train_sweeps

        check_resources(**where)
    if figures:
        index = report.reproduce(figures, out, quick=quick)
    if sweeps:
        report.write_tables(train_sweeps(sweeps, out, **where), out)
        index = report.write_page(out)
    return index


def _sweep(
    name: str, actions: str | None, variants: str | None, alphas: str | None, seeds: int | None,
    episodes: int | None, steps: int | None, set_: list[str] | None, quick: bool,
) -> Sweep:  # fmt: skip
    """What the options ask for."""
    from tsallax.paper.sweep.specification import changed_sweep, paper_sweep
    from tsallax.paper.sweep.tasks import TASKS, choose_variants

    task = TASKS[name]
    asked = paper_sweep(task, quick)
    given: dict[str, Any] = {"seeds": seeds, "episodes": episodes, "steps": steps}
    if actions is not None:
        given["actions"] = tuple(_numbers("--actions", actions, int, "9,121"))
    if set_:
        given["options"] = {**asked.options, **key_values("--set", set_)}
    if episodes is not None and steps is None:
        scaled = -(-asked.steps * max(episodes, 1) // asked.episodes)
        given["steps"] = max(scaled, task.length)
    if variants is not None or alphas is not None:
        words = None if variants is None else [word.strip() for word in variants.split(",")]
        numbers = None if alphas is None else _numbers("--alphas", alphas, float, "0.1,0.01")
        given["variants"] = tuple(choose_variants(words, numbers))
    return changed_sweep(asked, {k: v for k, v in given.items() if v is not None})


def _numbers(option: str, text: str, kind: type, example: str) -> list[Any]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{option} {text}: must be numbers, such as {example}") from None


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
