"""The command line, in the words of the Python API: to plan here, to learn in `cli_learn`, the
paper in `cli_paper`.

Results go to standard output, everything else to standard error. An error is one line; the exit
code is 2 for input that cannot be used, 1 for a tolerance that was not reached, 130 for Ctrl-C.
Whatever is slow to import is imported inside the command that needs it.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tsallax.cli import agent_commands, paper_commands
from tsallax.cli.shared import complain, key_values, one_line_errors, require_writable
from tsallax.errors import InvalidInput
from tsallax.files.atomic import PARTIAL

if TYPE_CHECKING:
    from tsallax.planning.mdp import MDP
    from tsallax.regularizer import Regularizer

DISCOUNT = 0.99
"""Of a Gymnasium environment, which has none of its own."""

app = typer.Typer(
    help="Planning and learning with sparse, multi-modal policies: Tsallis-regularised MDPs.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> NoReturn:
    """Run the command line and exit."""
    signal.signal(signal.SIGINT, _leave)
    sys.exit(run(sys.argv[1:]))


def _leave(*_: Any) -> NoReturn:
    """End at once on Ctrl-C: an exception could be lost in somebody's callback or import."""
    for partial in list(PARTIAL):
        partial.unlink(missing_ok=True)
    os._exit(complain("interrupted: files hold only what was finished", 130))


def run(arguments: list[str]) -> int:
    """Run the command line and give its exit code; every error of use is one line."""
    command = typer.main.get_command(app)
    try:
        return int(command.main(arguments, prog_name="tsallax", standalone_mode=False) or 0)
    except typer.Abort:
        return complain("interrupted", 130)
    except Exception as error:  # typer's own errors of use have no public common class
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "tsallax"
        message = error.format_message().rstrip(".")
        return complain(f"{message[:1].lower()}{message[1:]}: see {path} --help", 2)


@app.callback(invoke_without_command=True)
def overview(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from tsallax.provenance import __version__

        typer.echo(f"tsallax {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(short_help="Solve a finite MDP, with a proof of the error.")
def solve(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE_OR_ENV",
            help="An .npz file written by MDP.save, or the id of a Gymnasium toy-text environment.",
        ),
    ],
    regularizer: Annotated[str, typer.Option(help="hard, soft, sparse or tsallis.")] = "sparse",
    alpha: Annotated[
        float | None, typer.Option(help="The regulariser's coefficient; hard has none.")
    ] = None,
    q: Annotated[
        float | None, typer.Option(help="The entropic index, for tsallis: 1 is soft, 2 sparse.")
    ] = None,
    discount: Annotated[
        float | None,
        typer.Option(help=f"gamma. Default: that of the file; {DISCOUNT} for an environment."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="The largest error of the value in any state.")
    ] = 1e-6,
    method: Annotated[
        str,
        typer.Option(help="auto, value_iteration, policy_iteration or modified_policy_iteration."),
    ] = "auto",
    max_sweeps: Annotated[
        int | None, typer.Option(help="Give up after this many sweeps over the states.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the solution there, for Solution.load.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    env_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Passed to gymnasium.make; may be repeated."),
    ] = None,
) -> None:
    """Solve a finite MDP with a proof of the error, and print what was found.

    \b
    Examples:
      tsallax solve FrozenLake-v1 --regularizer sparse --alpha 0.1
      tsallax solve FrozenLake-v1 --alpha 0.1 --env-option is_slippery=False
      tsallax solve Taxi-v4 --regularizer hard --discount 0.999 --json
      tsallax solve mdp.npz --regularizer soft --alpha 0.5 --out solution.npz
      tsallax solve mdp.npz --regularizer tsallis --alpha 0.5 --q 1.5 --tolerance 1e-9

    The certificates bound how much return the regulariser costs: `performance bound` holds for
    every MDP of this size (Theorems 4 and 5), `gap certificate` for this one, from its start.
    If the tolerance cannot be reached, nothing is written and the exit code is 1.
    """
    with one_line_errors():
        if out is not None:
            require_writable(out)
        chosen = _regularizer(regularizer, alpha, q)
        mdp = _read(source, discount, env_option or [])
        from tsallax.planning import summary
        from tsallax.planning.solution import NotConverged
        from tsallax.planning.solver import solve as solve_mdp

        try:
            solution = solve_mdp(mdp, chosen, tolerance, method, max_sweeps=max_sweeps)
        except NotConverged as error:
            raise typer.Exit(complain(f"not converged: {error}; nothing was written", 1)) from None
        if out is not None:
            solution.save(out)
        report = summary.summarize(source, solution)
        typer.echo(summary.as_json(report) if json else summary.as_text(report))
        if out is not None and not json:
            typer.echo(f"\nThe solution is in {out}")


paper_commands.register(app)
agent_commands.register(app)


def _read(source: str, discount: float | None, options: list[str]) -> MDP:
    """The MDP of a file or of an environment, with the discount asked for."""
    from tsallax.planning.mdp import MDP

    if not (source.endswith(".npz") or os.path.isfile(source)):
        gamma = DISCOUNT if discount is None else discount
        with warnings.catch_warnings(action="ignore"):
            return MDP.from_gymnasium(source, gamma, **key_values("--env-option", options))
    if options:
        raise InvalidInput(f"{source}: a file takes no --env-option")
    mdp = MDP.load(source)
    return mdp if discount is None else mdp.with_discount(discount)


def _regularizer(name: str, alpha: float | None, q: float | None) -> Regularizer:
    from tsallax.regularizer import by_name

    try:
        return by_name(name, alpha, q)
    except InvalidInput as error:
        message = str(error)
        for option, example in (("alpha", "0.1"), ("q", "1.5")):
            if message.endswith(f"needs {option}"):
                message += f": add --{option}, such as --{option} {example}"
            elif message.endswith(f"takes no {option}"):
                message += f": leave --{option} out"
        raise InvalidInput(message) from None
