"""The commands for learning: `tsallax train`, `evaluate`, `plot` and `config`."""

from __future__ import annotations

import json as json_format
import math
import re
import shlex
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsallax.cli_common import (
    aligned,
    complain,
    key_values,
    note,
    one_line_errors,
    require_writable,
    split_pair,
)
from tsallax.errors import InvalidInput

if TYPE_CHECKING:
    from tsallax.learn.agent import Agent, Episodes
    from tsallax.learn.run import Job

PICTURES = (".png", ".svg", ".pdf")


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command(short_help="Train an agent in an environment.")(train)
    app.command(short_help="Play episodes with a trained agent, and record them.")(evaluate)
    app.command(short_help="Draw learning curves of runs.")(plot)
    app.command(short_help="Print or check every option of train, as YAML.")(config)


def train(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the run.")],
    env: Annotated[
        str | None,
        typer.Argument(metavar="ENV", help="The id of a Gymnasium environment or one in JAX."),
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(
            metavar="N[,M...]", help="Levels of a continuous action, for all dimensions or each."
        ),
    ] = None,
    algorithm: Annotated[str | None, typer.Option(help="Who learns.  [default: deep_q]")] = None,
    explore: Annotated[
        str | None, typer.Option(help="sparse, soft, epsilon or tsallis.  [default: sparse]")
    ] = None,
    update: Annotated[
        str | None, typer.Option(help="sparse, soft, hard or tsallis.  [default: sparse]")
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(help="The entropy's coefficient, or START:END:STEPS.  [default: 0.1]"),
    ] = None,
    episodes: Annotated[int | None, typer.Option(help="Episodes to finish in all.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps to make in all.")] = None,
    seed: Annotated[int | None, typer.Option(help="Fixes everything.  [default: 0]")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the run in DIR; start it if there is none."),
    ] = False,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Options in YAML; others go before.")
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Any option of `tsallax config`; may be repeated."),
    ] = None,
    eval_every: Annotated[
        int | None,
        typer.Option(help="Evaluate after so many episodes, or steps where only --steps is given."),
    ] = None,
    eval_episodes: Annotated[
        int | None, typer.Option(help="Episodes of an evaluation.  [default: 20]")
    ] = None,
    save_every: Annotated[
        int | None, typer.Option(help="Steps between checkpoints.  [default: a minute]")
    ] = None,
    env_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Passed to gymnasium.make; may be repeated."),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(help="jax or gymnasium.  [default: jax where the environment is in JAX]"),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard files as well as CSV.")
    ] = False,
) -> None:
    """Train an agent in an environment; Ctrl-C saves it, --resume goes on.

    \b
    Examples:
      tsallax train CartPole-v1 --episodes 300 --out runs/cartpole
      tsallax train Reacher-v5 --actions 31 --alpha 0.1 --episodes 2000 --out runs/reacher
      tsallax train InvertedPendulum-v5 --actions 101 --steps 200000 --eval-every 10000 --out runs/p
      tsallax train Pendulum-v1 --actions 11 --explore soft --update soft --alpha 0.01
          --episodes 200 --seed 1 --set hidden=64,64 --set learning_rate=3e-4 --out runs/soft
      tsallax train --config runs/reacher/config.yaml --seed 1 --out runs/reacher-1
      tsallax train --resume --out runs/reacher
      tsallax train --resume --out runs/reacher --episodes 5000

    \b
    DIR holds
      agent.npz         the checkpoint: networks, replay, random state, history
      config.yaml       every option; --config reads it
      episodes.csv      one row per finished episode: episode, step, return, length
      evaluations.csv   one row per evaluation: greedy return, its deviation, sampled return
      trace.csv         loss, target value and the policy's support ratio along the way
    """
    with one_line_errors(), _flags(), _notes():
        from tsallax import plain_yaml

        typed: dict[str, Any] = {
            "env": env, "actions": actions, "algorithm": algorithm, "explore": explore,
            "update": update, "alpha": alpha, "episodes": episodes, "steps": steps, "seed": seed,
            "eval_every": eval_every, "eval_episodes": eval_episodes, "save_every": save_every,
            "env_options": _plain(env_option), "backend": backend,
            "tensorboard": tensorboard or None,
        }  # fmt: skip
        typed = {name: value for name, value in typed.items() if value is not None}
        for name, value in _settings(set or []).items():
            if name in typed:
                raise InvalidInput(f"{name} is given twice: with --set, and by itself")
            typed[name] = value
        filed = {} if config is None else plain_yaml.read(config)
        from tsallax.learn import run

        job = run.prepare(typed, filed, out, resume)
        _train(job)


def _train(job: Job) -> None:
    from tsallax.learn.run import train as run

    agent, first = job.agent, job.agent.steps
    if job.resumed and not job.finished:
        note(f"goes on after {_count(agent)}" if first else "nothing was saved yet: starts again")
    begin = time.monotonic()
    try:
        run(job)
    except KeyboardInterrupt:
        line = f"interrupted after {_count(agent)}, which are saved; to go on: {job.command}"
        raise typer.Exit(complain(line, 130)) from None
    except FloatingPointError as error:
        raise typer.Exit(complain(f"{error}; {job.folder} holds the last checkpoint", 1)) from None
    seconds = time.monotonic() - begin
    rows = [("agent", _words(agent)), ("trained", _count(agent))]
    if agent.steps > first:
        rows[-1] = ("trained", f"{_count(agent)}, {(agent.steps - first) / seconds:,.0f} steps/s")
    if agent.history.episodes:
        n = min(100, agent.history.episodes)
        rows.append(("return", f"{agent.history.recent():.6g} (mean of the last {n} episodes)"))
    if len(agent.history["evaluation_return"]):
        rows.append(("evaluation", _last_evaluation(agent)))
    typer.echo(aligned(rows))
    more = " It was finished before: a larger --episodes or --steps goes on." * job.finished
    more = more if agent.steps == first else ""
    name = shlex.quote(str(job.folder))
    typer.echo(f"\nThe run is in {job.folder}.{more} Next: tsallax evaluate {name}")


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
    with one_line_errors(), _notes():
        for name, value in (("--episodes", episodes), ("--video-episodes", video_episodes)):
            if value < 1:
                raise InvalidInput(f"{name} {value}: must be at least 1")
        if seed is not None and not 0 <= seed < 2**32:
            raise InvalidInput(f"--seed {seed}: must be from 0 to 2^32 - 1")
        from tsallax.learn.run import checkpoint_of

        path = checkpoint_of(source)
        if video is not None:
            from tsallax.learn.video import require_video

            require_writable(video, "--video")
            require_video(video)
        from tsallax.learn.agents import load

        agent = load(path, env)
        found = agent.evaluate(episodes, deterministic=not sampled, seed=seed)
        if video is not None:
            from tsallax.learn.video import record

            record(agent, video, video_episodes, not sampled, agent.seed if seed is None else seed)
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
        typer.Option(help="Episodes in a mean.  [default: a tenth of the run, 100 at most]"),
    ] = None,
) -> None:
    """Draw learning curves: mean return and its 95% bootstrap interval over seeds.

    Runs that differ only in the seed make one curve; what else differs names the curves. Circles
    are evaluations of the greedy policy. Each environment has a panel.

    \b
    Examples:
      tsallax plot runs/reacher
      tsallax plot runs/sparse-* runs/soft-* --out curves.svg
      tsallax plot runs --x steps --window 50 --out curves.pdf
    """
    with one_line_errors():
        require_writable(out)
        if out.suffix.lower() not in PICTURES:
            raise InvalidInput(f"--out {out}: give a name that ends in {', '.join(PICTURES)}")
        if by not in ("episodes", "steps"):
            raise InvalidInput(f"--x {by}: choose from episodes, steps")
        if window is not None and window < 1:
            raise InvalidInput(f"--window {window}: must be at least 1")
        from tsallax.learn import curves

        groups = curves.group(curves.find(folders))
        for remark in curves.remarks(groups):
            note(remark)
        curves.save(curves.draw(groups, window, by), out)
        typer.echo(aligned(curves.table(groups, window)))
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
        from tsallax import plain_yaml
        from tsallax.learn import settings

        typed = _settings(set or []) | ({} if algorithm is None else {"algorithm": algorithm})
        filed = {} if file is None else plain_yaml.read(file)
        try:
            typer.echo(settings.to_yaml(settings.from_flat({**filed, **typed})), nl=False)
        except InvalidInput as error:
            raise InvalidInput(str(error) if file is None else f"{file}: {error}") from None


def _settings(pairs: list[str]) -> dict[str, Any]:
    """What --set sets."""
    from tsallax.learn.settings import option

    values: dict[str, Any] = {}
    for pair in pairs:
        key, text = split_pair("--set", pair)
        if key in values:
            raise InvalidInput(f"--set {pair}: {key} is set twice")
        try:
            values[key] = option(text)
        except InvalidInput as error:
            raise InvalidInput(f"--set {pair}: {error}") from None
    return values


def _plain(pairs: list[str] | None) -> dict[str, Any] | None:
    """Options of an environment, as plain data that a file can hold."""
    if not pairs:
        return None
    options = key_values("--env-option", pairs)
    try:
        plain: dict[str, Any] = json_format.loads(json_format.dumps(options))
    except (TypeError, ValueError):
        raise InvalidInput("--env-option: only numbers, words, lists and dicts") from None
    return plain


@contextmanager
def _flags() -> Iterator[None]:
    """Name the options of the command line where an error names those of Python."""
    try:
        yield
    except InvalidInput as error:
        line = re.sub(
            r"`?\bactions`?, such as actions=", "--actions, such as --actions ", str(error)
        )
        line = re.sub(r"\bactions=[\[(]?(\d[\d, ]*\d|\d)[\])]?", _flag, line)
        line = re.sub(r"\bleave backend out", "leave --backend out", line)
        line = re.sub(r"needs (\w+_q), such as ", r"needs \1: add --set \1=", line)
        raise InvalidInput(line) from None


def _flag(found: re.Match[str]) -> str:
    return f"--actions {found[1].replace(' ', '')}"


@contextmanager
def _notes() -> Iterator[None]:
    """Print warnings as remarks, each once."""
    seen = set[str]()

    def show(message: Any, category: Any, *_: Any, **__: Any) -> None:
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(message))
        if issubclass(category, UserWarning) and text not in seen:
            seen.add(text)
            note(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def _count(agent: Agent) -> str:
    n = agent.history.episodes
    return f"{n:,} episode{'s' * (n != 1)}, {agent.steps:,} steps"


def _words(agent: Agent) -> str:
    return repr(agent).rsplit(": ", 1)[0].replace("(", ", ", 1).replace("'", "")


def _last_evaluation(agent: Agent) -> str:
    h = agent.history
    after = f"after {h['evaluation_episode'][-1]:,} episodes"
    return f"{h['evaluation_return'][-1]:.6g} (greedy, {after})"


def _as_text(agent: Agent, found: Episodes, sampled: bool) -> str:
    returns, error = found.returns, found.standard_error
    spread = "" if math.isnan(error) else f" (standard error {error:.3g})"
    how = "drawn from the policy" if sampled else "greedy"
    return aligned(
        [
            ("agent", _words(agent)),
            ("trained", _count(agent)),
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
