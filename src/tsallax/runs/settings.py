"""The options of `tsallax train`: those of the run, then those of the algorithm, as YAML.

A file of these is complete: `tsallax train --config FILE --out DIR` needs nothing else.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tsallax import checks
from tsallax.deep.learners import LEARNERS
from tsallax.deep.options import from_mapping, option, suggestion, to_mapping
from tsallax.deep.training_schedule import MAX_STEPS
from tsallax.errors import InvalidInput
from tsallax.files import yaml_text


@dataclass(frozen=True)
class Run:
    """An environment, a seed and the length of training; the other options are the algorithm's.

    >>> Run(env="Reacher-v5", actions=31, episodes=1000).seed
    0
    >>> Run(env="Reacher-v5", actions="31,15").actions
    (31, 15)
    """

    algorithm: str = option("deep_q", f"learning algorithm: {', '.join(LEARNERS)}")
    env: str | None = option(None, "id of the environment, such as Reacher-v5")
    actions: int | tuple[int, ...] | str | None = option(
        None, "levels of a continuous action: one number, or one per dimension"
    )
    backend: str = option("auto", "jax, gymnasium, or auto: jax where the environment is in JAX")
    env_options: Mapping[str, Any] | None = option(None, "further arguments of gymnasium.make")
    seed: int = option(0, "seed of all random numbers")
    episodes: int | None = option(None, "episodes in all, those before a resume included")
    steps: int | None = option(None, "steps in all; the first limit reached ends the run")
    eval_every: int | None = option(
        None, "episodes between evaluations, or steps where only steps are given"
    )
    eval_episodes: int = option(20, "greedy episodes of an evaluation; as many are sampled")
    save_every: int | None = option(None, "steps between checkpoints; default: one a minute")
    stop_at_return: float | None = option(
        None, "greedy return of an evaluation, or mean of 100 training episodes, that ends the run"
    )
    tensorboard: bool = option(False, "write TensorBoard event files beside the CSV")
    wandb: str | None = option(None, "project of Weights & Biases to log to as well")

    def __post_init__(self) -> None:
        checks.one_of("algorithm", self.algorithm, LEARNERS)
        if not isinstance(self.env, str | None):
            raise InvalidInput(f"env must be the id of an environment, got {self.env!r}")
        if self.actions is not None:
            object.__setattr__(self, "actions", _levels(self.actions))
        if self.env_options is not None:
            object.__setattr__(self, "env_options", _plain_mapping(self.env_options))
        checks.seed(self.seed)
        checks.count("eval_episodes", self.eval_episodes)
        for name in ("episodes", "steps", "eval_every", "save_every"):
            if getattr(self, name) is not None:
                checks.count(name, getattr(self, name))
        if self.steps is not None and self.steps >= MAX_STEPS:
            raise InvalidInput(f"steps must be less than 2^30 in all, got {self.steps}")
        if self.stop_at_return is not None:
            stop = checks.number("stop_at_return", self.stop_at_return)
            object.__setattr__(self, "stop_at_return", stop)
        checks.flag("tensorboard", self.tensorboard)
        if self.wandb is not None and not (isinstance(self.wandb, str) and self.wandb):
            raise InvalidInput(f"wandb must be the name of a project, got {self.wandb!r}")


def _levels(actions: Any) -> int | tuple[int, ...]:
    """Levels of actions, from an integer, several, or a text such as `31` or `31,15`."""
    if isinstance(actions, str):
        actions = yaml_text.parse(f"[{actions}]")
        actions = actions[0] if len(actions) == 1 else actions
    if isinstance(actions, list | tuple):
        return tuple(checks.count("actions", levels, at_least=2) for levels in actions)
    return checks.count("actions", actions, at_least=2)


def _plain_mapping(options: Any) -> dict[str, Any]:
    """Options of an environment as JSON, and so a checkpoint, stores them."""
    if not isinstance(options, Mapping):
        raise InvalidInput(f"env_options must be names and values, got {options!r}")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(options)))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"env_options must be plain data: {error}") from None
    return plain


@dataclass(frozen=True)
class Settings:
    """A run and the configuration of its algorithm."""

    run: Run
    config: Any

    @property
    def agent_class(self) -> Any:
        """The class of the agents that learn by this algorithm."""
        return LEARNERS[self.run.algorithm]


def from_flat(values: Mapping[str, Any]) -> Settings:
    """Settings from names and values; an option that is left out has its default.

    >>> from_flat({"env": "Reacher-v5", "net_arch": 64, "alpha": "1:0.1:5000"}).config.net_arch
    (64,)
    >>> from_flat({"exlore": "soft"})
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: unknown option 'exlore' of deep_q: did you mean explore?
    """
    run_options = [f.name for f in dataclasses.fields(Run)]
    run = Run(**{name: value for name, value in values.items() if name in run_options})
    config_class: Any = LEARNERS[run.algorithm].Config
    config_options = [f.name for f in dataclasses.fields(config_class)]
    for name in values:
        if name not in run_options and name not in config_options:
            hint = suggestion(name, [*run_options, *config_options])
            raise InvalidInput(f"unknown option {name!r} of {run.algorithm}: {hint}")
    options = {name: value for name, value in values.items() if name not in run_options}
    return Settings(run, from_mapping(config_class, options))


def to_flat(settings: Settings) -> dict[str, Any]:
    """Plain data from which `from_flat` makes equal settings."""
    return {**to_mapping(settings.run), **to_mapping(settings.config)}


def to_yaml(settings: Settings) -> str:
    """Every option with its value and what it does, and its default where that was changed."""
    flat = to_flat(settings)
    defaults = to_flat(Settings(Run(algorithm=settings.run.algorithm), type(settings.config)()))
    lines = [f"{name}: {yaml_text.scalar(value)}" for name, value in flat.items()]
    width = max(len(line) for line in lines if len(line) < 40)
    fields = [*dataclasses.fields(Run), *dataclasses.fields(settings.config)]
    for i, (line, field) in enumerate(zip(lines, fields, strict=True)):
        default = defaults[field.name]
        changed = flat[field.name] != default and default is not None
        note = f" (default: {yaml_text.scalar(default)})" if changed else ""
        lines[i] = f"{line:<{width}}  # {field.metadata.get('help', '')}{note}"
    n = len(dataclasses.fields(Run))
    head = "# Options of tsallax train --config FILE; one that a file leaves out has its default."
    section = f"# Options of {settings.run.algorithm}."
    return "\n".join([head, *lines[:n], "", section, *lines[n:], ""])
