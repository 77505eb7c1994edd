"""The command `tsallax presets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tsallax.wording import aligned

if TYPE_CHECKING:
    from tsallax.runs.preset_catalogue import Preset

HEAD = ("environment", "steps", "result")


def presets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Print the file of one preset.")
    ] = None,
) -> None:
    """List the presets: options that `tsallax train ENV` uses for known environments.

    `general` is for the others, and is used with --preset general alone: it is better than the
    defaults on some and worse on others.

    With NAME, print the options of one preset and the command that measured its result. The result
    is the mean greedy return over seeds, with its 95% interval, or with the range of fewer than six
    seeds; steps are named where they are fewer than those of the preset.

    \b
    Examples:
      tsallax presets
      tsallax presets CartPole-v1
      tsallax train CartPole-v1 --out runs/cartpole
      tsallax train CartPole-v1 --preset none --steps 50000 --out runs/cartpole-defaults
      tsallax train Pendulum-v1 --actions 11 --preset general --out runs/general
    """
    from tsallax.runs.preset_catalogue import FOLDER, all_presets, preset_named

    if name is not None:
        file = FOLDER / f"{preset_named(name).name}.yaml"
        typer.echo(file.read_text(encoding="utf-8"), nl=False)
        return
    typer.echo(aligned([HEAD, *map(_row, all_presets())]))
    typer.echo("\nOptions and the command of a result: tsallax presets NAME")


def _row(preset: Preset) -> tuple[str, ...]:
    found = preset.result
    if found is None:
        return preset.name, f"{preset.steps:,}", preset.purpose or "not measured"
    low, high = found.interval
    result = f"{found.mean:.5g} [{low:.5g}, {high:.5g}], {found.seeds} seeds"
    result += "" if found.steps == preset.steps else f", {found.steps:,} steps"
    return preset.name, f"{preset.steps:,}", result
