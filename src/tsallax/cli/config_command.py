"""The command `tsallax config`."""

from pathlib import Path
from typing import Annotated

import typer

from tsallax.cli.arguments import key_values
from tsallax.errors import InvalidInput


def config(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE.yaml", help="Options to check and complete.")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="Whose options.  [default: that of FILE, or deep_q]")
    ] = None,
    set_options: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change an option; may be repeated."),
    ] = None,
) -> None:
    """Print every option of train with its default and what it does, as YAML; or check a file.

    \b
    Examples:
      tsallax config > my.yaml
      tsallax config my.yaml
      tsallax config my.yaml --set explore=soft --set alpha=0.01 > soft.yaml
      tsallax config --algorithm ddpg
    """
    from tsallax.deep.options import with_current_names
    from tsallax.files import yaml_text
    from tsallax.runs import settings

    given = key_values("--set", set_options)
    if algorithm is not None:
        given["algorithm"] = algorithm
    stored = {} if file is None else with_current_names(yaml_text.read(file))
    try:
        typer.echo(settings.to_yaml(settings.from_flat({**stored, **given})), nl=False)
    except InvalidInput as error:
        raise (error if file is None else error.of(file)) from None
