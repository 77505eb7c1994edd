"""The commands for learning: `tsallax evaluate`, `plot` and `config`, and `cli_train`'s."""

from __future__ import annotations

import json as json_format
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsallax.cli.shared import (
    aligned,
    named,
    note,
    one_line_errors,
    require_writable,
    set_values,
    trained,
    warnings_as_notes,
)
from tsallax.cli.train_command import train
from tsallax.errors import InvalidInput

if TYPE_CHECKING:
    from tsallax.deep.agent import Agent
    from tsallax.deep.evaluation_episodes import Episodes

PICTURES = (".png", ".svg", ".pdf")


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command(short_help="Train an agent in an environment.")(train)
    app.command(short_help="Play episodes with a trained agent, and record them.")(evaluate)
    app.command(short_help="Draw learning curves of runs.")(plot)
    app.command(short_help="Print or check every option of train, as YAML.")(config)


def evaluate(
    source: Annotated[
        Path, typer.Argument(metavar="DIR_OR_FILE", help="The folder of a run, or a checkpoint.")
    ],
    episodes: Annotated[int, typer.Option(help="Episodes to play.")] = 100,
    sampled: Annotated[
        bool, typer.Option("--sampled", help="Draw actions from the policy, not the best ones.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Of the episodes.  [default: by the agent's seed]")
    ] = None,
    env: Annotated[
        str | None, typer.Option(metavar="ENV", help="Another environment of the same sizes.")
    ] = None,
    video: Annotated[
        Path | None, typer.Option(metavar="FILE.mp4", help="Record episodes there.")
    ] = None,
    video_episodes: Annotated[int, typer.Option(help="Episodes to record.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Play episodes with a trained agent, without learning, and print what they returned.

    \b
    Examples:
      tsallax evaluate runs/reacher
      tsallax evaluate runs/reacher --episodes 1000 --sampled --json
      tsallax evaluate runs/reacher --video reacher.mp4 --video-episodes 3
      tsallax evaluate shared-agent.npz --episodes 10 --seed 7
    """
    with one_line_errors(), warnings_as_notes():
        for name, value in (("--episodes", episodes), ("--video-episodes", video_episodes)):
            if value < 1:
                raise InvalidInput(f"{name} {value}: must be at least 1")
        if seed is not None and not 0 <= seed < 2**32:
            raise InvalidInput(f"--seed {seed}: must be from 0 to 2^32 - 1")
        from tsallax.runs.training import checkpoint_of

        path = checkpoint_of(source)
        if video is not None:
            from tsallax.runs.video import require_video

            require_writable(video, "--video")
            require_video(video)
        from tsallax.deep.load import load_agent

        agent = load_agent(path, env)
        if video is not None:  # first: what cannot be drawn is to be known soon
            from tsallax.runs.video import record

            record(agent, video, video_episodes, not sampled, agent.seed if seed is None else seed)
        found = agent.evaluate(episodes, deterministic=not sampled, seed=seed)
        typer.echo(_as_json(agent, found, sampled) if json else _as_text(agent, found, sampled))
        if video is not None and not json:
            typer.echo(f"\nThe video is in {video}")


def plot(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Folders of runs, or folders that hold such."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help=f"A {', '.join(PICTURES)} file.")
    ] = Path("curves.png"),
    by: Annotated[str, typer.Option("--x", help="episodes or steps.")] = "episodes",
    window: Annotated[
        int | None,
        typer.Option(help="Episodes in a mean.  [default: about a tenth, 100 at most]"),
    ] = None,
) -> None:
    """Draw learning curves: the mean return over seeds, with its interval.

    Runs that differ only in the seed make one curve; what else differs names the curves. The
    interval is a 95% bootstrap interval from six seeds on; with fewer it is the range of the
    runs, and labelled so. Circles are evaluations of the greedy policy. Each environment has a
    panel.

    \b
    Examples:
      tsallax plot runs/reacher
      tsallax plot runs/sparse-* runs/soft-* --out learning_curves.svg
      tsallax plot runs --x steps --window 50 --out learning_curves.pdf
    """
    with one_line_errors():
        require_writable(out)
        if out.suffix.lower() not in PICTURES:
            raise InvalidInput(f"--out {out}: give a name that ends in {', '.join(PICTURES)}")
        if by not in ("episodes", "steps"):
            raise InvalidInput(f"--x {by}: choose from episodes, steps")
        if window is not None and window < 1:
            raise InvalidInput(f"--window {window}: must be at least 1")
        from tsallax.runs import curve_figure, learning_curves

        groups = learning_curves.group(learning_curves.find(folders))
        for remark in learning_curves.remarks(groups):
            note(remark)
        curve_figure.save(curve_figure.draw(groups, window, by), out)
        typer.echo(aligned(learning_curves.table(groups, window)))
        typer.echo(f"\nThe curves are in {out}")


def config(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE.yaml", help="Options to check and complete.")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="Whose options.  [default: that of FILE, or deep_q]")
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Change an option; may be repeated."),
    ] = None,
) -> None:
    """Print every option of train with its default and what it does, as YAML; or check a file.

    \b
    Examples:
      tsallax config > my.yaml
      tsallax config my.yaml
      tsallax config my.yaml --set explore=soft --set alpha=0.01 > soft.yaml
      tsallax config --algorithm deep_q
    """
    with one_line_errors():
        from tsallax.deep.options import with_current_names
        from tsallax.files import yaml_text
        from tsallax.runs import settings

        typed = set_values(set or []) | ({} if algorithm is None else {"algorithm": algorithm})
        filed = {} if file is None else with_current_names(yaml_text.read(file))
        try:
            typer.echo(settings.to_yaml(settings.from_flat({**filed, **typed})), nl=False)
        except InvalidInput as error:
            raise InvalidInput(str(error) if file is None else f"{file}: {error}") from None


def _as_text(agent: Agent, found: Episodes, sampled: bool) -> str:
    returns, error = found.returns, found.standard_error
    spread = "" if math.isnan(error) else f" (standard error {error:.3g})"
    how = "drawn from the policy" if sampled else "greedy"
    return aligned(
        [
            ("agent", named(agent)),
            ("trained", trained(agent)),
            ("played", f"{len(returns):,} episodes, {how}"),
            ("return", f"{found.mean:.6g}{spread}"),
            ("range", f"{returns.min():.6g} to {returns.max():.6g}"),
            ("length", f"{found.lengths.mean():.6g} steps"),
        ]
    )


def _as_json(agent: Agent, found: Episodes, sampled: bool) -> str:
    def number(x: float) -> float | None:
        return float(x) if math.isfinite(x) else None

    about = {
        "environment": agent.environment,
        "algorithm": agent.kind,
        "seed": agent.seed,
        "trained_episodes": agent.history.episodes,
        "trained_steps": agent.steps,
        "episodes": len(found.returns),
        "sampled": sampled,
        "mean_return": number(found.mean),
        "standard_error": number(found.standard_error),
        "mean_length": float(found.lengths.mean()),
        "returns": [number(x) for x in found.returns],
        "lengths": found.lengths.tolist(),
    }
    return json_format.dumps(about, indent=2, allow_nan=False)
