"""Training in a folder: settings, checkpoint and logs side by side, to be interrupted at will.

`config.yaml` holds all that was asked for, `agent.npz` all that the agent is, so that a run goes on
from its folder alone. The logs are derived from the agent, and made anew whenever it is loaded.
"""

from __future__ import annotations

import difflib
import inspect
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tsallax.deep.environment_spec import EnvironmentSpec
from tsallax.deep.options import to_mapping, with_current_names
from tsallax.envs.jax.catalogue import jax_environment
from tsallax.errors import InvalidInput
from tsallax.files import yaml_text
from tsallax.files.atomic import whole
from tsallax.interrupts import termination_as_interrupt
from tsallax.runs.logs import Logs, require_tensorboard
from tsallax.runs.settings import Run, Settings, from_flat, to_flat, to_yaml

AGENT, CONFIG = "agent.npz", "config.yaml"
FREE = ("episodes", "steps", "save_every", "tensorboard")
"""What may change when a run goes on."""


@dataclass(frozen=True)
class Job:
    """A run that is ready to go, or to go on."""

    settings: Settings
    agent: Any
    folder: Path
    resumed: bool

    @property
    def remaining(self) -> dict[str, int]:
        """How many episodes and steps are left, of those that are limited."""
        run, agent = self.settings.run, self.agent
        limits = {
            "episodes": (run.episodes, agent.history.episodes),
            "steps": (run.steps, agent.steps),
        }
        return {name: total - done for name, (total, done) in limits.items() if total is not None}

    @property
    def finished(self) -> bool:
        """Whether nothing is left."""
        return min(self.remaining.values()) <= 0

    @property
    def command(self) -> str:
        """The command that goes on with it."""
        env = self.settings.run.env or ""
        words = ["tsallax", "train", *([env] if ":" in env else []), "--resume", "--out"]
        return shlex.join([*words, str(self.folder)])


def prepare(typed: Mapping[str, Any], filed: Mapping[str, Any], out: Path, resume: bool) -> Job:
    """Make or load the agent that `typed` options, then those of a file, ask for.

    Whatever cannot work is refused here, before anything is written.
    """
    given = {**filed, **typed}
    stored = _stored(out, resume)
    if stored is None:
        settings = from_flat(given)
        _require_usable(settings, typed)
        return Job(settings, _new_agent(settings), out, False)
    settings = _merged(out, stored, given)
    _require_usable(settings, typed)
    if not (out / AGENT).exists():
        return Job(settings, _new_agent(settings), out, True)
    env = settings.run.env
    agent = settings.agent.load(out / AGENT, env if env is not None and ":" in env else None)
    _require_same(out, settings, agent)
    return Job(settings, agent, out, True)


def train(job: Job) -> None:
    """Learn what is left; on Ctrl-C or SIGTERM save, then raise KeyboardInterrupt."""
    run, agent, folder = job.settings.run, job.agent, job.folder
    for half in folder.glob(f".{AGENT}.*.partial"):  # of a process that was killed
        half.unlink(missing_ok=True)
    if not job.finished:
        _write_config(folder, job.settings)
    with Logs(folder, agent.history, run.tensorboard) as logs, termination_as_interrupt():
        if not job.finished:
            agent.learn(
                **job.remaining,
                eval_every=run.eval_every,
                eval_episodes=run.eval_episodes,
                save_to=folder / AGENT,
                save_every=run.save_every,
                callback=lambda agent: logs.add(agent.history),
            )
        logs.add(agent.history)


def _write_config(folder: Path, settings: Settings) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole(folder / CONFIG) as draft:
            draft.write_text(to_yaml(settings), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"--out {folder}: cannot be written: {error.strerror}") from None


def checkpoint_of(path: Path) -> Path:
    """The checkpoint in the folder of a run, or the file itself."""
    if path.is_dir():
        if not (path / AGENT).is_file():
            raise InvalidInput(f"{path}: there is no {AGENT} in it: give the --out of a run")
        return path / AGENT
    return path


def _stored(out: Path, resume: bool) -> dict[str, Any] | None:
    """The settings of the run in a folder, or None where one may be started."""
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"--out {out}: is a file, give the name of a folder")
    if (out / CONFIG).exists():
        if not resume:
            raise InvalidInput(
                f"--out {out}: holds a run: add --resume to go on with it, or give another --out"
            )
        return with_current_names(yaml_text.read(out / CONFIG))
    if out.is_dir() and any(out.iterdir()):
        raise InvalidInput(f"--out {out}: is not empty, and holds no run: give another --out")
    parent = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise InvalidInput(f"--out {out}: {parent} cannot be written to")
    return None


def _merged(out: Path, stored: dict[str, Any], given: Mapping[str, Any]) -> Settings:
    """The settings of a run with new totals; any other change is refused."""
    try:
        old = from_flat(stored)
    except InvalidInput as error:
        raise InvalidInput(f"{out / CONFIG}: {error}") from None
    limits = {name: given[name] for name in ("episodes", "steps") if given.get(name) is not None}
    algorithm = given.get("algorithm", old.run.algorithm)
    if algorithm != old.run.algorithm:
        _refuse_change(out, "algorithm", algorithm, old.run.algorithm)
    others = {k: v for k, v in given.items() if k not in ("episodes", "steps")}
    new = from_flat({**stored, **others})
    for name, value in to_flat(old).items():
        if name not in FREE and to_flat(new)[name] != value:
            _refuse_change(out, name, to_flat(new)[name], value)
    if limits:
        changed = replace(new.run, **{"episodes": None, "steps": None, **limits})
        unit = "steps" if old.run.episodes is None else "episodes"
        if old.run.eval_every is not None and (changed.episodes is None) != (unit == "steps"):
            raise InvalidInput(
                f"--resume: the run in {out} evaluates every {old.run.eval_every} {unit}: "
                f"give --{unit}"
            )
        new = replace(new, run=changed)
    return new


def _refuse_change(out: Path, name: str, new: Any, old: Any) -> None:
    raise InvalidInput(
        f"--resume: {name} is {yaml_text.scalar(old)} in the run in {out}, not "
        f"{yaml_text.scalar(new)}: leave it out, or give another --out"
    )


def _require_usable(settings: Settings, typed: Mapping[str, Any]) -> None:
    run = settings.run
    if run.env is None:
        raise InvalidInput("no environment: give its id, such as Reacher-v5")
    if ":" in run.env and typed.get("env") != run.env:
        raise InvalidInput(
            f"{run.env} names a module to import, which a file may not: "
            "give it on the command line as well"
        )
    if run.episodes is None and run.steps is None:
        raise InvalidInput("how long to learn: give --episodes or --steps")
    if run.tensorboard:
        require_tensorboard()


def _require_same(out: Path, settings: Settings, agent: Any) -> None:
    """Refuse a config.yaml that somebody changed under the agent."""
    asked = {"seed": settings.run.seed, **to_mapping(settings.config), **_place(settings.run)}
    found = {"seed": agent.seed, **to_mapping(agent.config), **_place(settings.run, agent.spec)}
    for name, value in asked.items():
        if found.get(name) != value:
            raise InvalidInput(
                f"{out / CONFIG}: {name} is {yaml_text.scalar(value)}, but {AGENT} has "
                f"{yaml_text.scalar(found.get(name))}: put it back, or start another run"
            )


def _place(run: Run, world: EnvironmentSpec | None = None) -> dict[str, Any]:
    """Environment, backend and actions as asked for; of a world, in the same words if it fits."""
    if world is None:
        return {
            "env": run.env,
            "actions": run.actions,
            "backend": run.backend,
            "env_options": dict(run.env_options or {}),
        }
    inside = jax_environment(str(run.env))
    fits = run.env == world.name if world.jax is None else world.jax is inside
    kind = "gymnasium" if world.jax is None else "jax"
    levels: Any = None if world.discretize is None else tuple(world.discretize.levels)
    if levels is not None and set(levels) == {run.actions}:
        levels = run.actions
    return {
        "env": run.env if fits else world.name,
        "actions": levels,
        "backend": run.backend if run.backend == "auto" else kind,
        "env_options": dict(world.options),
    }


def _new_agent(settings: Settings) -> Any:
    run = settings.run
    more = {} if run.actions is None else {"actions": run.actions}
    if more and "actions" not in inspect.signature(settings.agent).parameters:
        raise InvalidInput(f"{run.algorithm} takes real actions: leave actions={run.actions} out")
    try:
        return settings.agent(
            run.env,
            seed=run.seed,
            config=settings.config,
            backend=run.backend,
            env_options=run.env_options,
            **more,
        )
    except InvalidInput as error:
        line = str(error)
        if "doesn't exist" in line and "Did you mean" not in line and "provides" not in line:
            line += _suggestion(str(run.env))
        raise InvalidInput(line) from None


def _suggestion(env: str) -> str:
    """Name an environment that is spelled much like an unknown one."""
    import gymnasium

    known = {_bare(identity): identity for identity in sorted(gymnasium.registry)}
    near = difflib.get_close_matches(_bare(env), list(known), 1)
    return f" Did you mean: `{known[near[0]]}`?" if near else ""


def _bare(identity: str) -> str:
    return identity.rsplit("/", 1)[-1].rsplit("-v", 1)[0].lower()
