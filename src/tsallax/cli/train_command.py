"""The command `tsallax train`."""

from __future__ import annotations

import json as json_format
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsallax.cli.shared import (
    aligned,
    complain,
    key_values,
    named,
    note,
    one_line_errors,
    set_values,
    trained,
    warnings_as_notes,
)
from tsallax.errors import InvalidInput

if TYPE_CHECKING:
    from tsallax.deep.agent import Agent
    from tsallax.runs.training import Job


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
          --episodes 200 --seed 1 --set net_arch=64,64 --set learning_rate=3e-4 --out runs/soft
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
    with one_line_errors(), _flags(), warnings_as_notes():
        from tsallax.deep.options import with_current_names
        from tsallax.files import yaml_text

        typed: dict[str, Any] = {
            "env": env, "actions": actions, "algorithm": algorithm, "explore": explore,
            "update": update, "alpha": alpha, "episodes": episodes, "steps": steps, "seed": seed,
            "eval_every": eval_every, "eval_episodes": eval_episodes, "save_every": save_every,
            "env_options": _plain(env_option), "backend": backend,
            "tensorboard": tensorboard or None,
        }  # fmt: skip
        typed = {name: value for name, value in typed.items() if value is not None}
        for name, value in set_values(set or []).items():
            if name in typed:
                raise InvalidInput(f"{name} is given twice: with --set, and by itself")
            typed[name] = value
        filed = {} if config is None else with_current_names(yaml_text.read(config))
        from tsallax.runs import training

        job = training.prepare(typed, filed, out, resume)
        _train(job)


def _train(job: Job) -> None:
    from tsallax.runs.training import AGENT
    from tsallax.runs.training import train as run

    agent, first = job.agent, job.agent.steps
    if job.resumed and not job.finished:
        note(f"goes on after {trained(agent)}" if first else "nothing was saved yet: starts again")
    begin = time.monotonic()
    try:
        run(job)
    except KeyboardInterrupt:
        saved = "which are saved" if agent.saved_at == agent.steps else "not all of them saved"
        line = f"interrupted after {trained(agent)}, {saved}; to go on: {job.command}"
        raise typer.Exit(complain(line, 130)) from None
    except FloatingPointError as error:
        last = f"; {job.folder} holds the last checkpoint" * (job.folder / AGENT).exists()
        raise typer.Exit(complain(f"{error}{last}", 1)) from None
    seconds = time.monotonic() - begin
    rows = [("agent", named(agent)), ("trained", trained(agent))]
    if agent.steps > first:
        rows[-1] = ("trained", f"{trained(agent)}, {(agent.steps - first) / seconds:,.0f} steps/s")
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


def _last_evaluation(agent: Agent) -> str:
    h = agent.history
    after = f"after {h['evaluation_episode'][-1]:,} episodes"
    return f"{h['evaluation_return'][-1]:.6g} (greedy, {after})"
