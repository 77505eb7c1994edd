"""The command line: the list of commands, their exit codes, and errors of one line.

Results go to standard output, everything else to standard error. The exit code is 2 for input that
cannot be used, 1 for a tolerance that was not reached, training that diverged or a process of a
distributed solve that was lost, 3 for training that a time limit ended, 130 for Ctrl-C or SIGTERM.
Whatever is slow to import is imported inside the command that needs it.
"""

import os
import sys
from functools import cache
from typing import Annotated, Any

import typer

from tsallax.cli import paper_commands
from tsallax.cli.arguments import spelling_of
from tsallax.cli.config_command import config
from tsallax.cli.evaluate_command import evaluate
from tsallax.cli.explore_command import explore
from tsallax.cli.output import print_line
from tsallax.cli.plot_command import plot
from tsallax.cli.presets_command import presets
from tsallax.cli.solve_command import solve
from tsallax.cli.train_command import train
from tsallax.errors import InvalidInput
from tsallax.interrupts import interruptible

app = typer.Typer(
    help="Planning and learning with sparse, multi-modal policies: Tsallis-regularised MDPs.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command(short_help="Solve a finite MDP, with a proven error bound.")(solve)
app.command(short_help="Make a page on which to explore the policies of an MDP.")(explore)
paper_commands.register(app)
app.command(short_help="Train an agent in an environment.")(train)
app.command(short_help="Play episodes with a trained agent, and record them.")(evaluate)
app.command(short_help="Draw learning curves of runs.")(plot)
app.command(short_help="Print or check every option of train, as YAML.")(config)
app.command(short_help="List the options that train has for known environments.")(presets)


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


@cache
def commands() -> Any:
    """The group of all commands, which Typer builds from their signatures."""
    return typer.main.get_command(app)


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; an error of use is one line."""
    group: Any = None
    context: Any = None
    try:
        with interruptible():
            group = commands()
            context = group.make_context("tsallax", [*arguments])
            with context:
                group.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except KeyboardInterrupt as error:
        print_line("interrupted", str(error) or "no file was left incomplete")
        return 130
    except InvalidInput as error:
        print_line("error", error.message(spelling_of(group.commands[context.invoked_subcommand])))
        return 2
    except MemoryError:
        print_line("error", "the problem does not fit into memory")
        return 2
    except BrokenPipeError:  # the program that reads the output, such as head, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # Typer's errors of use have no public base class
        if not hasattr(error, "format_message"):
            raise
        at = getattr(error, "ctx", None)
        message = error.format_message().rstrip(".")
        path = at.command_path if at else "tsallax"
        print_line("error", f"{message[:1].lower()}{message[1:]}: see {path} --help")
        return 2
    return 0
