"""The command `tsallax train`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsallax.cli.arguments import key_values
from tsallax.cli.model_source import search_current_folder
from tsallax.cli.output import print_line, training_length, warnings_as_notes
from tsallax.errors import InvalidInput
from tsallax.wording import aligned, plural

if TYPE_CHECKING:
    from tsallax.runs.training import TrainingRun


def train(
    env: Annotated[
        str | None,
        typer.Argument(
            metavar="ENV",
            help="The id of an environment, MODULE:ID or MODULE:FUNCTION; with --resume also DIR.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder of the run.")] = None,
    actions: Annotated[
        str | None,
        typer.Option(
            metavar="N[,M...]", help="Levels of a continuous action, for all dimensions or each."
        ),
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="deep_q or ddpg.  [default: deep_q]")
    ] = None,
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
    episodes: Annotated[
        int | None, typer.Option(help="Episodes in all, those before --resume included.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="Steps in all, those before --resume included.  [default: by preset]"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random numbers.  [default: 0]")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in DIR; start it if there is none.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Options in YAML; the command line overrides them."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Options of `tsallax presets`, or none.  [default: those of ENV, if any]",
        ),
    ] = None,
    set_options: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any option of `tsallax config`; may be repeated."
        ),
    ] = None,
    eval_every: Annotated[
        int | None,
        typer.Option(help="Evaluate every N episodes, or N steps where only --steps is given."),
    ] = None,
    eval_episodes: Annotated[
        int | None,
        typer.Option(help="Episodes of an evaluation, greedy, and as many sampled.  [default: 20]"),
    ] = None,
    stop_at_return: Annotated[
        float | None,
        typer.Option(
            metavar="RETURN",
            help="End at this greedy return of an evaluation; without --eval-every, at this mean "
            "of the last 100 episodes.",
        ),
    ] = None,
    save_every: Annotated[
        int | None, typer.Option(help="Steps between checkpoints.  [default: one a minute]")
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
    wandb: Annotated[
        str | None,
        typer.Option(metavar="PROJECT", help="Log to Weights & Biases as well as to CSV."),
    ] = None,
) -> None:
    """Train an agent in an environment; Ctrl-C saves it, --resume continues.

    \b
    Examples:
      tsallax train CartPole-v1 --out runs/cartpole
      tsallax train CartPole-v1 --preset none --episodes 300 --out runs/defaults
      tsallax train Reacher-v5 --actions 31 --alpha 0.1 --episodes 2000 --out runs/reacher
      tsallax train InvertedPendulum-v5 --actions 101 --steps 200000 --eval-every 10000 --out runs/p
      tsallax train Pendulum-v1 --actions 11 --explore soft --update soft --alpha 0.01
          --episodes 200 --seed 1 --set net_arch=64,64 --set learning_rate=3e-4 --out runs/soft
      tsallax train --config runs/reacher/config.yaml --seed 1 --out runs/reacher-1
      tsallax train --resume --out runs/reacher
      tsallax train --resume runs/reacher --episodes 5000
      tsallax train --resume runs/reacher --episodes 5000 --set learning_rate=1e-5
      tsallax train CartPole-v1 --eval-every 2000 --stop-at-return 500 --out runs/early
      tsallax train my_module:MyEnv --env-option size=5 --steps 20000 --out runs/mine

    \b
    DIR holds
      agent.npz         the checkpoint: networks, replay, random state, history
      best.npz          the agent of the best evaluation, without its replay
      config.yaml       every option; --config reads it
      episodes.csv      one row per finished episode: episode, step, return, length
      evaluations.csv   one row per evaluation: greedy return, its deviation, sampled return
      trace.csv         loss, target value and the policy's support ratio during training
      changes.csv       options that were changed by --resume, and the steps at which they were
    """
    flags: dict[str, Any] = {
        "env": env, "actions": actions, "algorithm": algorithm, "explore": explore,
        "update": update, "alpha": alpha, "episodes": episodes, "steps": steps, "seed": seed,
        "eval_every": eval_every, "eval_episodes": eval_episodes, "save_every": save_every,
        "env_options": key_values("--env-option", env_option) or None, "backend": backend,
        "stop_at_return": stop_at_return, "tensorboard": tensorboard or None, "wandb": wandb,
    }  # fmt: skip
    given = {name: value for name, value in flags.items() if value is not None}
    for name, value in key_values("--set", set_options).items():
        if name in given:
            raise InvalidInput(f"{name} is given twice: with --set and with its own option")
        given[name] = value
    with warnings_as_notes():
        from tsallax.deep.options import with_current_names
        from tsallax.files import yaml_text
        from tsallax.runs.run_opening import folder_to_resume, open_run

        if out is None and resume and env is not None:
            out = folder_to_resume(env)
            if out is not None:
                del given["env"]
        if out is None:
            raise InvalidInput("no folder for the run", add=("out", "runs/first"))
        search_current_folder(env)
        from_file = {} if config is None else with_current_names(yaml_text.read(config))
        _train(open_run(given, from_file, out, resume, preset))


def _train(training: TrainingRun) -> None:
    from tsallax.runs.training import AGENT_FILE
    from tsallax.runs.training import train as train_agent

    agent, first_step = training.agent, training.agent.steps
    was_finished = training.finished
    if training.preset is not None:
        name = training.preset
        how = f"tsallax presets {name} shows them, --preset none leaves them out"
        print_line("note", f"uses the options of the preset {name}: {how}")
    if training.resumed and not was_finished:
        saved = f"continues after {training_length(agent)}{_changed(training)}"
        print_line("note", saved if first_step else "nothing was saved yet: starts again")
    begin = time.monotonic()
    try:
        train_agent(training)
    except KeyboardInterrupt:
        saved = "all saved" if agent.saved_at == agent.steps else "not all saved"
        raise KeyboardInterrupt(
            f"{training_length(agent)}, {saved}; to continue: {training.resume_command}"
        ) from None
    except FloatingPointError as error:
        kept = (training.folder / AGENT_FILE).exists()
        print_line("error", f"{error}{f'; {training.folder} holds the last checkpoint' * kept}")
        raise typer.Exit(1) from None
    speed = (agent.steps - first_step) / (time.monotonic() - begin)
    typer.echo(_summary(training, None if was_finished else speed))
    typer.echo(f"\nThe run is in {training.folder}. To evaluate it: {training.evaluate_command}")
    if was_finished:
        typer.echo(f"It was already finished. To extend it: {training.resume_command}")


def _changed(training: TrainingRun) -> str:
    """The options that change from here on."""
    words = [f"{c.option} {c.after} (before: {c.before})" for c in training.new_changes]
    return f", with {', '.join(words)}" if words else ""


def _summary(training: TrainingRun, steps_per_second: float | None) -> str:
    """The agent, the length of its training and its last returns."""
    from tsallax.runs.training import BEST_FILE

    agent = training.agent
    speed = "" if steps_per_second is None else f", {steps_per_second:,.0f} steps/s"
    rows = [("agent", agent.description), ("trained", f"{training_length(agent)}{speed}")]
    history = agent.history
    if history.episodes:
        last = plural(min(100, history.episodes), "episode")
        rows.append(("return", f"{history.recent():.6g} (mean of the last {last})"))
    if len(history["evaluation_return"]):
        episode = f"after {plural(int(history['evaluation_episode'][-1]), 'episode')}"
        rows.append(("evaluation", f"{history['evaluation_return'][-1]:.6g} (greedy, {episode})"))
        best = training.folder / BEST_FILE
        if best.exists():
            rows.append(("best", f"{history['evaluation_return'].max():.6g} (greedy), in {best}"))
    if training.reached:
        rows.append(("ended", f"at a return of {training.settings.run.stop_at_return:g} or more"))
    return aligned(rows)
