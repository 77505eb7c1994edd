"""The command `tsallax evaluate`."""

from __future__ import annotations

import json as json_format
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tsallax import checks
from tsallax.cli.model_source import search_current_folder
from tsallax.cli.output import training_length, warnings_as_notes
from tsallax.wording import aligned

if TYPE_CHECKING:
    from tsallax.deep.agent import Agent
    from tsallax.deep.evaluation_episodes import Episodes


def evaluate(
    source: Annotated[
        Path, typer.Argument(metavar="DIR_OR_FILE", help="The folder of a run, or a checkpoint.")
    ],
    episodes: Annotated[int, typer.Option(help="Episodes to play.")] = 100,
    sampled: Annotated[
        bool, typer.Option("--sampled", help="Draw actions from the policy, not the best ones.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the episodes.  [default: by the agent's seed]")
    ] = None,
    env: Annotated[
        str | None, typer.Option(metavar="ENV", help="Another environment of the same sizes.")
    ] = None,
    video: Annotated[
        Path | None, typer.Option(metavar="FILE.mp4", help="Record episodes to this file.")
    ] = None,
    video_episodes: Annotated[int, typer.Option(help="Episodes to record.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Play episodes with a trained agent, without learning, and print their returns.

    \b
    Examples:
      tsallax evaluate runs/reacher
      tsallax evaluate runs/reacher --episodes 1000 --sampled --json
      tsallax evaluate runs/reacher --video reacher.mp4 --video-episodes 3
      tsallax evaluate shared-agent.npz --episodes 10 --seed 7
    """
    checks.count("--episodes", episodes)
    checks.count("--video-episodes", video_episodes)
    if seed is not None:
        checks.seed(seed, "--seed")
    with warnings_as_notes():
        from tsallax.runs.training import checkpoint_of

        path = checkpoint_of(source)
        if video is not None:
            from tsallax.runs.video import check_video_file, record

            check_video_file(video)
        from tsallax.deep.learners import load_agent

        search_current_folder(env)
        agent = load_agent(path, env)
        if video is not None:  # before the evaluation, as drawing may fail
            record(agent, video, video_episodes, not sampled, agent.seed if seed is None else seed)
        played = agent.evaluate(episodes, deterministic=not sampled, seed=seed)
    typer.echo(_as_json(agent, played, sampled) if json else _as_text(agent, played, sampled))
    if video is not None and not json:
        typer.echo(f"\nThe video is in {video}")


def _as_text(agent: Agent, played: Episodes, sampled: bool) -> str:
    returns, error = played.returns, played.standard_error
    spread = "" if math.isnan(error) else f" (standard error {error:.3g})"
    policy = "drawn from the policy" if sampled else "greedy"
    return aligned(
        [
            ("agent", agent.description),
            ("trained", training_length(agent)),
            ("played", f"{len(returns):,} episodes, {policy}"),
            ("return", f"{played.mean:.6g}{spread}"),
            ("range", f"{returns.min():.6g} to {returns.max():.6g}"),
            ("length", f"{played.lengths.mean():.6g} steps"),
        ]
    )


def _as_json(agent: Agent, played: Episodes, sampled: bool) -> str:
    def number(x: float) -> float | None:
        return float(x) if math.isfinite(x) else None

    values = {
        "environment": agent.environment,
        "algorithm": agent.kind,
        "seed": agent.seed,
        "trained_episodes": agent.history.episodes,
        "trained_steps": agent.steps,
        "episodes": len(played.returns),
        "sampled": sampled,
        "mean_return": number(played.mean),
        "standard_error": number(played.standard_error),
        "mean_length": float(played.lengths.mean()),
        "returns": [number(x) for x in played.returns],
        "lengths": played.lengths.tolist(),
    }
    return json_format.dumps(values, indent=2, allow_nan=False)
