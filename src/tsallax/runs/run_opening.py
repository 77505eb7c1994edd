"""Opening a run: a new one from options, or the one in a folder, to be resumed.

What is refused is refused here, before anything is written.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tsallax.deep.options import to_mapping, with_current_names, without_unused
from tsallax.envs.gymnasium.gymnasium_make import check_id, names_module
from tsallax.envs.jax.catalogue import jax_environment
from tsallax.errors import InvalidInput
from tsallax.files import yaml_text
from tsallax.runs.logs import import_tensorboard, import_wandb
from tsallax.runs.preset_catalogue import NONE, preset_named, preset_of
from tsallax.runs.settings import Run, Settings, from_flat, to_flat
from tsallax.runs.training import AGENT_FILE, CONFIG_FILE, LIMITS, TrainingRun

Options = Mapping[str, Any]
FIXED = ("algorithm", "env", "actions", "backend", "env_options", "seed")
"""Options of a run that cannot change when it is resumed."""


def open_run(
    given: Options, from_file: Options, folder: Path, resume: bool, preset: str | None = None
) -> TrainingRun:
    """Create or load the agent that the given options, then those of a file, ask for.

    A new run without a file takes other options from the preset of its environment, or from the
    `preset` of that name; "none" is for the defaults. Invalid options are refused here, before
    anything is written.
    """
    options = {**from_file, **given}
    stored = _stored_options(folder, resume)
    if stored is None:
        if resume and options.get("env") is None:
            remedy = "to start one there, give an environment, such as Reacher-v5"
            raise InvalidInput(f"{_no_run(folder)}: {remedy}", source=f"--out {folder}")
        name, more = _preset_options(preset, options, use_default=not from_file)
        settings = from_flat({**more, **options})
        _check_settings(settings, given)
        return TrainingRun(settings, _new_agent(settings), folder, False, name)
    if preset is not None:
        problem = f"the run in {folder} has its options: change them by their names"
        raise InvalidInput(problem, omit="preset")
    old, new = _resumed_settings(folder, stored, options)
    _check_settings(new, given, folder)
    if not (folder / AGENT_FILE).exists():
        return TrainingRun(new, _new_agent(new), folder, True)
    env = new.run.env
    agent = new.agent_class.load(folder / AGENT_FILE, env if names_module(env) else None)
    unwritten = _check_agent(folder, old, agent)
    kept = {name: value for name, value in unwritten.items() if name not in options}
    new = from_flat({**to_flat(new), **kept})
    try:
        agent.change(**to_mapping(new.config))
    except InvalidInput as error:
        raise InvalidInput(f"--resume: {error.problem}", source=error.source) from None
    return TrainingRun(new, agent, folder, True)


def _preset_options(
    asked: str | None, options: Options, use_default: bool
) -> tuple[str | None, dict[str, Any]]:
    """The name of the preset to use, and those of its options that are not given."""
    env, algorithm = options.get("env"), options.get("algorithm")
    if asked == NONE or (asked is None and not (use_default and isinstance(env, str))):
        return None, {}
    chosen = preset_of(str(env)) if asked is None else preset_named(asked)
    if chosen is None or (asked is None and algorithm not in (None, chosen.algorithm)):
        return None, {}
    if algorithm not in (None, chosen.algorithm):
        problem = f"the preset {asked} is for {chosen.algorithm}, not {algorithm}"
        raise InvalidInput(problem, omit="preset")
    found = {"algorithm": chosen.algorithm, **chosen.options}
    if options.get("target_update_interval") is not None:  # copies, or tau
        found.pop("tau", None)
    used = without_unused({**found, **options})
    found = {name: value for name, value in found.items() if name in used}
    if not any(options.get(name) is not None for name in LIMITS):
        found["steps"] = chosen.steps
    return chosen.name, found


def folder_to_resume(name: str) -> Path | None:
    """The folder of a run by its name, or None for the id of an environment."""
    folder = Path(name)
    if (folder / CONFIG_FILE).is_file():
        return folder
    if not folder.exists() and _is_environment(name):
        return None
    remedy = "give the folder of a run, or an environment and --out for a new one"
    raise InvalidInput(f"{_no_run(folder)}: {remedy}", source=f"--resume {name}")


def _no_run(folder: Path) -> str:
    return "holds no run" if folder.exists() else "there is no such folder"


def _is_environment(name: str) -> bool:
    try:
        _check_environment(name)
    except InvalidInput:
        return False
    return True


def _check_environment(name: str) -> None:
    """Refuse an id that no environment has, in JAX or of Gymnasium."""
    if jax_environment(name) is None:
        check_id(name)


def _stored_options(folder: Path, resume: bool) -> dict[str, Any] | None:
    """The options of the run in a folder, or None if a new run can be started there."""
    source = f"--out {folder}"
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("is a file, give the name of a folder", source=source)
    if (folder / CONFIG_FILE).exists():
        if not resume:
            raise InvalidInput(
                "holds a run: add --resume to continue it, or give another --out", source=source
            )
        return without_unused(with_current_names(yaml_text.read(folder / CONFIG_FILE)))
    if folder.is_dir() and any(folder.iterdir()):
        raise InvalidInput("is not empty and holds no run: give another --out", source=source)
    parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise InvalidInput(f"{parent} cannot be written to", source=source)
    return None


def _resumed_settings(folder: Path, stored: Options, options: Options) -> tuple[Settings, Settings]:
    """The stored settings, and those with other options; what makes another run is refused."""
    try:
        old = from_flat(stored)
    except InvalidInput as error:
        raise error.of(folder / CONFIG_FILE) from None
    algorithm = options.get("algorithm", old.run.algorithm)
    if algorithm != old.run.algorithm:
        raise _changed(folder, "algorithm", algorithm, old.run.algorithm)
    limits = {name: options[name] for name in LIMITS if options.get(name) is not None}
    others = {name: value for name, value in options.items() if name not in LIMITS}
    new = from_flat({**stored, **others})
    new_values = to_flat(new)
    for name, value in to_flat(old).items():
        if name in FIXED and new_values[name] != value:
            raise _changed(folder, name, new_values[name], value)
    if not limits:
        return old, new
    run = replace(new.run, **{**dict.fromkeys(LIMITS), **limits})
    unit = "steps" if old.run.episodes is None else "episodes"
    same_unit = (run.episodes is None) == (unit == "steps")
    if old.run.eval_every is not None and "eval_every" not in options and not same_unit:
        raise InvalidInput(
            f"--resume: the run in {folder} evaluates every {old.run.eval_every} {unit}: "
            f"give --{unit}, or --eval-every as well"
        )
    return old, replace(new, run=run)


def _changed(folder: Path, name: str, new: Any, old: Any) -> InvalidInput:
    return InvalidInput(
        f"--resume: {name} is {yaml_text.scalar(old)} in the run in {folder}, not "
        f"{yaml_text.scalar(new)}: leave it out, or give another --out"
    )


def _check_settings(settings: Settings, given: Options, resumed: Path | None = None) -> None:
    """Refuse settings that are incomplete, or need what is missing here."""
    run = settings.run
    if run.env is None:
        raise InvalidInput("no environment: give its id, such as Reacher-v5")
    if names_module(run.env) and given.get("env") != run.env:
        remedy = "give it on the command line as well"
        if resumed is not None:
            words = ["tsallax", "train", run.env, "--resume", "--out", str(resumed)]
            remedy = f"to resume the run: {shlex.join(words)}"
        problem = f"names a module to import, which a file may not: {remedy}"
        raise InvalidInput(problem, source=run.env)
    if run.episodes is None and run.steps is None:
        _check_environment(run.env)
        raise InvalidInput("how long to train: give --episodes or --steps")
    if run.tensorboard:
        import_tensorboard()
    if run.wandb is not None:
        import_wandb()


def _check_agent(folder: Path, settings: Settings, agent: Any) -> dict[str, Any]:
    """Refuse a config.yaml that was edited after the agent was saved.

    The result are options that changed, where the process was killed before it wrote them there.
    """
    changed = {change.option: change for change in agent.changes}
    unwritten: dict[str, Any] = {}
    run = settings.run
    expected = {"seed": run.seed, **to_mapping(settings.config)}
    expected |= {"env": run.env, "actions": run.actions, "backend": run.backend}
    expected["env_options"] = dict(run.env_options or {})
    found = {"seed": agent.seed, **to_mapping(agent.config), **_environment_options(run, agent)}
    for name, value in expected.items():
        if name in changed and (value, found[name]) == changed[name][2:]:
            unwritten[name] = found[name]
        elif found.get(name) != value:
            raise InvalidInput(
                f"{name} is {yaml_text.scalar(value)}, but {AGENT_FILE} has "
                f"{yaml_text.scalar(found.get(name))}: put it back, or start another run",
                source=folder / CONFIG_FILE,
            )
    return unwritten


def _environment_options(run: Run, agent: Any) -> dict[str, Any]:
    """The options that make an agent's environment, written as the run has them where they agree.

    The same environment may have two ids, levels of actions one number or several, and the backend
    `auto` is any.
    """
    spec = agent.spec
    named = jax_environment(str(run.env))
    same = run.env == spec.name if spec.jax is None else spec.jax is named
    levels: Any = spec.action.levels or None
    if levels is not None and set(levels) == {run.actions}:
        levels = run.actions
    backend = "gymnasium" if spec.jax is None else "jax"
    return {
        "env": run.env if same else spec.name,
        "actions": levels,
        "backend": run.backend if run.backend == "auto" else backend,
        "env_options": dict(spec.options),
    }


def _new_agent(settings: Settings) -> Any:
    run, agent_class = settings.run, settings.agent_class
    if run.actions is not None and agent_class.continuous_actions:
        raise InvalidInput(f"{run.algorithm} has continuous actions", omit="actions")
    return agent_class(
        run.env,
        actions=run.actions,
        seed=run.seed,
        config=settings.config,
        backend=run.backend,
        env_options=run.env_options,
    )
