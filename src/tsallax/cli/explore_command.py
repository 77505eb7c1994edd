"""The command `tsallax explore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tsallax import checks
from tsallax.cli.arguments import separated
from tsallax.cli.model_source import SOURCES, DiscountOption, EnvOptions, RewardsOption, read_model
from tsallax.cli.output import print_line
from tsallax.errors import InvalidInput

TITLES = {"multigoal": "Four goals on a plane", "unicycle": "Unicycle", "gridworld": "Grid world"}
"""Names of problems on the page, where they have others there."""


def explore(
    source: Annotated[
        str,
        typer.Argument(metavar="MODEL", help=f"{SOURCES}."),
    ] = "multigoal",
    out: Annotated[Path, typer.Option(help="The .html file to write.")] = Path("explorer.html"),
    alphas: Annotated[
        str | None,
        typer.Option(metavar="X,X,...", help="Coefficients.  [default: 12 that suit the model]"),
    ] = None,
    qs: Annotated[
        str, typer.Option("--q", metavar="X,X,...", help="Entropic indices: 1 is soft, 2 sparse.")
    ] = "1,1.5,2,3",
    discount: DiscountOption = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="The largest error of a value.  [default: 1e-7 of the largest]"),
    ] = None,
    positions: Annotated[
        Path | None,
        typer.Option(
            help="Where the states lie on the map: lines x,y or x,y,layer, or a file .npy. "
            "Default: their names, where these are coordinates."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="A page of tsallax report to link to.")
    ] = None,
    env_option: EnvOptions = None,
    rewards: RewardsOption = None,
) -> None:
    """Make a page on which to explore the policies of an MDP: one HTML file, without a network.

    \b
    Examples:
      tsallax explore --out page.html
      tsallax explore FrozenLake-v1 --out lake.html
      tsallax explore maze --env-option rows=12 --alphas 0.01,0.1,1 --q 1,2
      tsallax explore mdp.npz --positions places.csv --out page.html
      tsallax explore models.py:warehouse --discount 0.95

    Solutions are computed beforehand for all alphas and q; on the page sliders move through them.
    A page shows up to 10,000 states. A model from functions is stored first.
    """
    checks.output_file("--out", out, source, positions, report, ending=".html")
    if tolerance is not None:
        checks.number("--tolerance", tolerance, above=0)
    if report is not None and (report.is_dir() or not report.parent.is_dir()):
        checks.input_file(report)
    from tsallax.explorer.explorer_page import explore as write_explorer
    from tsallax.explorer.state_layout import load_positions
    from tsallax.planning.solution import NotConverged

    model = read_model(source, discount, env_option, rewards)
    try:
        page = write_explorer(
            model,
            out,
            alphas=None if alphas is None else separated("--alphas", alphas, float, "0.1,1"),
            qs=separated("--q", qs, float, "0.1,1"),
            tolerance=tolerance,
            positions=None if positions is None else load_positions(positions),
            name=TITLES.get(source, source),
            report=report,
        )
    except NotConverged as error:
        print_line("error", f"not converged: {error}; nothing was written")
        raise typer.Exit(1) from None
    except InvalidInput as error:
        raise error.of(source) from None
    typer.echo(f"The explorer is in {page}")
    if report is not None and not report.exists():
        print_line("note", f"the page links to {report}, which is not there yet")
