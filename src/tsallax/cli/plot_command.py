"""The command `tsallax plot`."""

from pathlib import Path
from typing import Annotated

import typer

from tsallax import checks
from tsallax.cli.output import print_line
from tsallax.errors import InvalidInput
from tsallax.wording import aligned

PICTURE_FORMATS = (".png", ".svg", ".pdf")


def plot(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Folders of runs, or folders of such folders."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help=f"A {', '.join(PICTURE_FORMATS)} file.")
    ] = Path("curves.png"),
    by: Annotated[str, typer.Option("--x", help="episodes or steps.")] = "episodes",
    window: Annotated[
        int | None, typer.Option(help="Episodes in a mean.  [default: about a tenth, 100 at most]")
    ] = None,
) -> None:
    """Draw learning curves: the mean return over seeds, with its interval.

    Runs that differ only in the seed are one curve, labelled by the other options that differ, or
    by their folders if these are more than four. The interval is a 95% bootstrap interval from six
    seeds on; with fewer it is the range of the runs, and labelled so. Circles are evaluations of
    the greedy policy. Each environment has a panel.

    \b
    Examples:
      tsallax plot runs/reacher
      tsallax plot runs/sparse-* runs/soft-* --out learning_curves.svg
      tsallax plot runs --x steps --window 50 --out learning_curves.pdf
    """
    checks.output_file("--out", out)
    if out.suffix.lower() not in PICTURE_FORMATS:
        raise InvalidInput(f"--out {out}: give a name that ends in {', '.join(PICTURE_FORMATS)}")
    checks.one_of("--x", by, ("episodes", "steps"))
    if window is not None:
        checks.count("--window", window)
    from tsallax.runs import curve_figure, learning_curves

    groups = learning_curves.group(learning_curves.find(folders))
    for remark in learning_curves.remarks(groups):
        print_line("note", remark)
    curve_figure.save(curve_figure.draw(groups, window, by), out)
    typer.echo(aligned(learning_curves.table(groups, window)))
    typer.echo(f"\nThe curves are in {out}")
