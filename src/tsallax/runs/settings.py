"""What `tsallax train` is asked to do, as YAML: the run's own options, then the algorithm's.

A file of these is complete: `tsallax train --config FILE --out DIR` needs nothing else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from tsallax.deep.options import from_mapping, suggestion, to_mapping
from tsallax.deep.training_schedule import MAX_STEPS
from tsallax.errors import InvalidInput
from tsallax.files import yaml_text

ALGORITHMS = {
    "deep_q": "tsallax.deep.deep_q_agent:DeepQ",
    "ddpg": "tsallax.deep.ddpg_agent:DDPG",
}
"""The agents by their names, imported when they are used."""


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Run:
    """An environment, a seed and how long to learn; the rest is up to the algorithm.

    >>> Run(env="Reacher-v5", actions=31, episodes=1000).seed
    0
    """

    algorithm: str = _option("deep_q", f"who learns: {', '.join(ALGORITHMS)}")
    env: str | None = _option(None, "the id of the environment, such as Reacher-v5")
    actions: int | tuple[int, ...] | None = _option(
        None, "levels of a continuous action: one number, or one per dimension"
    )
    backend: str = _option("auto", "jax, gymnasium, or auto: jax where the environment is in JAX")
    env_options: Mapping[str, Any] | None = _option(None, "further arguments of gymnasium.make")
    seed: int = _option(0, "fixes everything")
    episodes: int | None = _option(None, "episodes to finish in all")
    steps: int | None = _option(None, "steps to make in all; the first of the two ends the run")
    eval_every: int | None = _option(
        None, "episodes between evaluations, or steps where only steps are given"
    )
    eval_episodes: int = _option(20, "episodes of an evaluation")
    save_every: int | None = _option(None, "steps between checkpoints; default: a minute")
    tensorboard: bool = _option(False, "write TensorBoard event files beside the CSV")

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise InvalidInput(f"unknown algorithm {self.algorithm!r}: choose from {known}")
        if not isinstance(self.env, str | None):
            raise InvalidInput(f"env must be the id of an environment, got {self.env!r}")
        if isinstance(self.actions, list | tuple):
            object.__setattr__(self, "actions", tuple(self.actions))
            for levels in self.actions:
                _require_whole("actions", levels, 2)
        elif self.actions is not None:
            _require_whole("actions", self.actions, 2)
        if not isinstance(self.env_options or {}, Mapping):
            raise InvalidInput(f"env_options must be names and values, got {self.env_options!r}")
        _require_whole("seed", self.seed, 0)
        _require_whole("eval_episodes", self.eval_episodes, 1)
        for name in ("episodes", "steps", "eval_every", "save_every"):
            if getattr(self, name) is not None:
                _require_whole(name, getattr(self, name), 1)
        if self.steps is not None and self.steps >= MAX_STEPS:
            raise InvalidInput(f"steps must be less than 2^30 in all, got {self.steps}")


@dataclass(frozen=True)
class Settings:
    """A run and the configuration of its algorithm."""

    run: Run
    config: Any

    @property
    def agent(self) -> Any:
        """The class of the agent."""
        return agent_class(self.run.algorithm)


def agent_class(algorithm: str) -> Any:
    """The class of the agents that learn by an algorithm.

    >>> agent_class("deep_q").__name__
    'DeepQ'
    """
    module, _, name = ALGORITHMS[algorithm].partition(":")
    return getattr(import_module(module), name)


def from_flat(values: Mapping[str, Any]) -> Settings:
    """Settings from names and values, with the defaults of what is left out.

    >>> from_flat({"env": "Reacher-v5", "net_arch": 64, "alpha": "1:0.1:5000"}).config.net_arch
    (64,)
    >>> from_flat({"exlore": "soft"})
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: unknown option 'exlore' of deep_q: did you mean explore?
    """
    own = {f.name: f for f in dataclasses.fields(Run)}
    run = Run(**{k: _fitting(own[k], v) for k, v in values.items() if k in own})
    kind = agent_class(run.algorithm).Config
    others = {f.name: f for f in dataclasses.fields(kind)}
    for name in values:
        if name not in own and name not in others:
            hint = suggestion(name, [*own, *others])
            raise InvalidInput(f"unknown option {name!r} of {run.algorithm}: {hint}")
    options = {k: _fitting(others[k], v) for k, v in values.items() if k in others}
    return Settings(run, from_mapping(kind, options))


def to_flat(settings: Settings) -> dict[str, Any]:
    """Plain data from which `from_flat` makes equal settings."""
    run = {f.name: getattr(settings.run, f.name) for f in dataclasses.fields(Run)}
    run["actions"] = list(run["actions"]) if isinstance(run["actions"], tuple) else run["actions"]
    return {**run, **to_mapping(settings.config)}


def to_yaml(settings: Settings) -> str:
    """Every option with its value and what it does; a default is named where it was changed."""
    flat = to_flat(settings)
    defaults = to_flat(Settings(Run(algorithm=settings.run.algorithm), type(settings.config)()))
    lines = [f"{name}: {yaml_text.scalar(value)}" for name, value in flat.items()]
    width = max(len(line) for line in lines if len(line) < 40) + 2
    fields = [*dataclasses.fields(Run), *dataclasses.fields(settings.config)]
    for i, (line, about) in enumerate(zip(lines, fields, strict=True)):
        default = defaults[about.name]
        changed = flat[about.name] != default and default is not None
        note = f" (default: {yaml_text.scalar(default)})" if changed else ""
        lines[i] = f"{line:<{width}}# {about.metadata.get('help', '')}{note}"
    n = len(dataclasses.fields(Run))
    head = "# Options of tsallax train --config FILE; what a file leaves out has its default."
    section = f"# Options of {settings.run.algorithm}."
    return "\n".join([head, *lines[:n], "", section, *lines[n:], ""])


def option(text: str) -> Any:
    """The value of an option as it is typed: a number, a word, or several with commas between.

    >>> option("1e-4"), option("true"), option("256,256"), option("1:0.1:5000")
    (0.0001, True, [256, 256], '1:0.1:5000')
    """
    listed = "," in text and not text.lstrip().startswith(("[", "{"))
    return yaml_text.parse(f"[{text}]" if listed else text)


def _fitting(about: dataclasses.Field[Any], value: Any) -> Any:
    """A value in the form that its field has; widths may be one number or written with commas."""
    kind = str(about.type)
    if kind == "bool" and not isinstance(value, bool):
        raise InvalidInput(f"{about.name} must be true or false, got {value!r}")
    if "tuple" in kind and isinstance(value, str):
        value = option(value)
    single = "tuple" in kind and "int" not in kind.split(" | ") and isinstance(value, int)
    return [value] if single else value


def _require_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(f"{name} must be a whole number of at least {least}, got {value!r}")
