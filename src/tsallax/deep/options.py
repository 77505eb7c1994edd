"""Options of learners as data: fields with a help text, checked, read from and written to files."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tsallax import checks
from tsallax.deep import linear_schedule
from tsallax.deep.linear_schedule import Linear
from tsallax.errors import InvalidInput

RENAMED = {
    "actor_rate": "actor_learning_rate",
    "batch": "batch_size",
    "capacity": "buffer_size",
    "clip": "max_grad_norm",
    "common": "shared_value",
    "copy_every": "target_update_interval",
    "discount": "gamma",
    "environments": "n_envs",
    "hidden": "net_arch",
    "pull": "action_penalty",
    "start": "learning_starts",
    "uniform": "uniform_share",
    "update_every": "train_freq",
}
"""Names of options in files written before version 0.2, and what they are called now."""
EPSILON = "epsilon=start:end:steps with explore=epsilon"
ELSEWHERE = {
    "device": "the environment variable JAX_PLATFORMS, such as JAX_PLATFORMS=cpu",
    "double_q": "double",
    "end_e": EPSILON,
    "exploration_final_eps": EPSILON,
    "exploration_fraction": EPSILON,
    "exploration_initial_eps": EPSILON,
    "lr": "learning_rate",
    "policy": "network, which follows from the observations",
    "policy_kwargs": "net_arch, such as net_arch=64,64",
    "preset": "its options, **tsallax.preset(NAME)",
    "prioritized_replay": "priority, the exponent of the priorities",
    "render_mode": "the arguments of the environment, env_options",
    "seed": "the argument seed where the agent is made",
    "start_e": EPSILON,
    "target_network_frequency": "target_update_interval",
    "tensorboard_log": "tsallax train --tensorboard",
    "total_timesteps": "steps",
    "verbose": "the argument progress of learn",
}
"""Arguments of other libraries that have another name or place here."""
PAPER_NETWORKS = {"InvertedPendulum": (512, 512), "Reacher": (256, 256, 256, 256)}
DEFAULT_NETWORK = (256, 256)
MAX_LAYERS = 100
MAX_BUFFER = 2**31
"""Places in the replay memory are 32-bit integers."""
MAX_TRAIN_FREQ = 2**20
"""The rewards of a cycle are one array."""
MAX_N_STEP = 2**10
"""Every step of a return is an operation of the compiled program."""

P = ParamSpec("P")
T = TypeVar("T")


def option(default: Any, help: str, check: Callable[..., Any] | None = None, **limits: Any) -> Any:
    """A field of a configuration: its default, what it does, and the check of its values.

    `check_options` calls check(name, value, **limits), except for a default of None.
    """
    return field(default=default, metadata={"help": help, "check": check, "limits": limits})


def check_options(config: Any) -> None:
    """Replace the fields by what their checks return, plain Python values, or refuse them."""
    for f in dataclasses.fields(config):
        value, about = getattr(config, f.name), f.metadata
        if value is not None or f.default is not None:
            checked = about["check"](f.name, value, **about["limits"])
            object.__setattr__(config, f.name, checked)
    if config.buffer_size < config.batch_size:
        sizes = f"buffer_size {config.buffer_size} is less than batch_size {config.batch_size}"
        raise InvalidInput(sizes)


def with_current_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a file, those of earlier versions under the names they have now.

    >>> with_current_names({"batch": 64, "alpha": 0.1})
    {'batch_size': 64, 'alpha': 0.1}
    """
    return {RENAMED.get(name, name): value for name, value in values.items()}


def from_file(kind: type[T], values: Mapping[str, Any]) -> T:
    """A configuration from the options of a file, which may be of an earlier version."""
    return from_mapping(kind, without_unused(with_current_names(values)))


def without_unused(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options without an epsilon or support that is not used; earlier versions wrote such ones.

    >>> without_unused({"explore": "sparse", "epsilon": 0.1, "alpha": 0.1, "support": 0.5})
    {'explore': 'sparse', 'alpha': 0.1}
    """
    needed = {"epsilon": ("explore", "epsilon"), "support": ("alpha", "auto")}
    unused = [name for name, (other, value) in needed.items() if values.get(other) != value]
    return {name: value for name, value in values.items() if name not in unused}


def from_mapping(kind: type[T], values: Mapping[str, Any]) -> T:
    """A configuration from plain data; unknown options are refused with the nearest known one."""
    known = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise InvalidInput(f"unknown option {name!r}: {suggestion(name, known)}")
    return kind(**values)


def make_config(kind: type, given: Any, options: Mapping[str, Any]) -> Any:
    """A configuration from one that was given, or the default, and options that replace its own."""
    if given is not None and not isinstance(given, (kind, Mapping)):
        other = type(given).__name__
        raise InvalidInput(f"config must be a {kind.__name__} or a dict, not {other}")
    base = given if isinstance(given, Mapping) else to_mapping(given or kind())
    return from_mapping(kind, {**base, **options})


def suggestion(name: str, known: Iterable[str]) -> str:
    """Which of the known options an unknown one may stand for."""
    names = list(known)
    if RENAMED.get(name) in names:
        return f"it is called {RENAMED[name]} now"
    if name in ELSEWHERE:
        return f"use {ELSEWHERE[name]}"
    near = checks.nearest(name, names)
    return f"did you mean {near}?" if near else f"choose from {', '.join(names)}"


def arguments_by_name(example: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Refuse, in one line, arguments that a method does not have, and those without a name."""

    def decorate(method: Callable[P, T]) -> Callable[P, T]:
        known = [*inspect.signature(method).parameters][1:]

        @wraps(method)
        def call(*given: P.args, **named: P.kwargs) -> T:
            for name in named:
                if name not in known:
                    problem = f"{method.__name__} has no argument {name!r}"
                    raise InvalidInput(f"{problem}: {suggestion(name, known)}")
            if len(given) > 1:
                problem = f"{method.__name__} takes its arguments by name, not {given[1]!r:.60}"
                raise InvalidInput(f"{problem}: {method.__name__}({example})")
            return method(*given, **named)

        return call

    return decorate


def to_mapping(config: Any) -> dict[str, Any]:
    """Plain data, for JSON and YAML, from which `from_mapping` makes an equal configuration."""

    def plain(value: Any) -> Any:
        if isinstance(value, Linear):
            return linear_schedule.text(value)
        return list(value) if isinstance(value, tuple) else value

    return {f.name: plain(getattr(config, f.name)) for f in dataclasses.fields(config)}


def with_defaults(config: Any, names: Iterable[str]) -> Any:
    """The configuration with the default values of some options."""
    default = type(config)()
    return dataclasses.replace(config, **{name: getattr(default, name) for name in names})


def hidden_layers(config: Any, environment: str) -> tuple[int, ...]:
    """The widths of the hidden layers, by default those of the paper for its environments."""
    if config.net_arch is not None:
        return tuple(config.net_arch)
    for name, layers in PAPER_NETWORKS.items():
        if name in environment:
            return layers
    return DEFAULT_NETWORK


def layer_widths(name: str, value: Any) -> tuple[int, ...]:
    """Widths of hidden layers from one integer, several, or a text such as "64,64".

    >>> layer_widths("net_arch", 64), layer_widths("net_arch", "64,64")
    ((64,), (64, 64))
    """
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")]
        layers: list[Any] = [int(part) if part.isdecimal() else part for part in parts]
    else:
        layers = list(value) if isinstance(value, Iterable) else [value]
    if not all(checks.is_integer(width) and width >= 1 for width in layers):
        raise InvalidInput(f"{name} must be integers, such as (256, 256), got {value!r}")
    if len(layers) > MAX_LAYERS:
        raise InvalidInput(f"{name} must have at most {MAX_LAYERS} layers, got {len(layers)}")
    return tuple(int(width) for width in layers)
