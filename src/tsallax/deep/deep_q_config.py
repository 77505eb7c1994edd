"""The options of the learners: every one with its default and what it does."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tsallax.deep import linear_schedule
from tsallax.deep.linear_schedule import Linear
from tsallax.errors import InvalidInput

EXPLORE = ("sparse", "soft", "epsilon", "tsallis")
UPDATE = ("sparse", "soft", "hard", "tsallis")
LEAST_ALPHA = 1e-30  # differences of Q, divided by it, stay within single precision
PAPER_NETWORKS = {"InvertedPendulum": (512, 512), "Reacher": (256, 256, 256, 256)}

T = TypeVar("T")


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class DeepQConfig:
    """The options of `DeepQ`. Steps are counted in transitions of the environment.

    >>> DeepQConfig(explore="soft", alpha=0.01).alpha
    Linear(start=0.01, end=0.01, steps=0)
    """

    explore: str = _option("sparse", f"how to explore: {', '.join(EXPLORE)}")
    update: str = _option("sparse", f"the maximum in the target: {', '.join(UPDATE)}")
    alpha: Any = _option(0.1, "coefficient of the entropy: a number or start:end:steps")
    explore_q: float | None = _option(None, "the entropic index of explore=tsallis")
    update_q: float | None = _option(None, "the entropic index of update=tsallis")
    epsilon: Any = _option("1:0.02:100000", "share of uniform actions of explore=epsilon")
    uniform: Any = _option(0.0, "share of uniform actions mixed into any other exploration")
    discount: float = _option(0.99, "gamma")
    hidden: tuple[int, ...] | None = _option(
        None, "widths of the hidden layers; default: the paper's for its tasks, else 256, 256"
    )
    learning_rate: float = _option(1e-4, "of Adam")
    batch: int = _option(64, "transitions in an update")
    capacity: int = _option(65_536, "transitions in the replay memory")
    start: int = _option(1_000, "transitions before the first update")
    update_every: int = _option(1, "steps of the environments from one update to the next")
    copy_every: int = _option(1_000, "transitions from one copy of the target network to the next")
    priority: float = _option(0.4, "exponent of the replay's priorities; 0 draws uniformly")
    beta: Any = _option("0.4:1:200000", "exponent of the importance weights")
    environments: int = _option(1, "environments stepped side by side")
    double: bool = _option(False, "choose the target's policy with the online network")
    n_step: int = _option(1, "steps of reward before the target bootstraps")
    huber: float | None = _option(None, "TD error beyond which the loss is linear")
    clip: float | None = _option(None, "largest norm of the gradient")
    relative_entropy: bool = _option(False, "measure the entropy relative to the uniform policy")
    common: bool = _option(False, "add a value that all actions share to the network's outputs")
    initial_value: float = _option(0.0, "bias of the network's outputs at the start")
    output_scale: float = _option(0.01, "size of the network's outputs at the start")

    def __post_init__(self) -> None:
        for name in ("alpha", "epsilon", "uniform", "beta"):
            object.__setattr__(self, name, linear_schedule.linear(getattr(self, name), name))
        if self.hidden is not None:
            object.__setattr__(self, "hidden", _widths(self.hidden))
        _one_of(self, "explore", EXPLORE)
        _one_of(self, "update", UPDATE)
        for word in ("explore", "update"):
            index, tsallis = getattr(self, f"{word}_q"), getattr(self, word) == "tsallis"
            if tsallis and index is None:
                raise InvalidInput(f"{word}=tsallis needs {word}_q, such as 1.5")
            if index is not None and not tsallis:
                raise InvalidInput(f"{word}_q is for {word}=tsallis, not {getattr(self, word)}")
            if index is not None:
                _number(self, f"{word}_q", above=0)
        if not min(self.alpha.start, self.alpha.end) >= LEAST_ALPHA:
            raise InvalidInput(
                f"alpha must be positive, at least {LEAST_ALPHA:g} in single precision, "
                f"got {linear_schedule.text(self.alpha)}"
            )
        for name in ("epsilon", "uniform", "beta"):
            if not all(0 <= value <= 1 for value in getattr(self, name)[:2]):
                raise InvalidInput(f"{name} must be between 0 and 1")
        for name in ("batch", "capacity", "update_every", "copy_every", "environments", "n_step"):
            _whole(self, name, 1)
        _whole(self, "start", 0)
        _number(self, "discount", at_least=0, below=1)
        _number(self, "learning_rate", above=0)
        _number(self, "priority", at_least=0)
        _number(self, "output_scale", at_least=0)
        _number(self, "initial_value")
        for name in ("huber", "clip"):
            if getattr(self, name) is not None:
                _number(self, name, above=0)
        for name in ("double", "relative_entropy", "common"):
            _yes_or_no(self, name)
        if self.capacity < self.batch:
            raise InvalidInput(f"capacity {self.capacity} is less than a batch of {self.batch}")


def from_mapping(kind: type[T], values: Mapping[str, Any]) -> T:
    """A configuration from plain data; unknown options are refused with the nearest known one."""
    import difflib

    known = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f": did you mean {near[0]}?" if near else f": choose from {', '.join(known)}"
            raise InvalidInput(f"unknown option {name!r}{hint}")
    return kind(**values)


def to_mapping(config: Any) -> dict[str, Any]:
    """Plain data, for JSON and YAML, from which `from_mapping` makes an equal configuration."""

    def plain(value: Any) -> Any:
        if isinstance(value, Linear):
            return linear_schedule.text(value)
        return list(value) if isinstance(value, tuple) else value

    return {f.name: plain(getattr(config, f.name)) for f in dataclasses.fields(config)}


def hidden_layers(config: Any, environment: str) -> tuple[int, ...]:
    """The widths asked for, or those of the paper for its environments."""
    if config.hidden is not None:
        return tuple(config.hidden)
    for name, widths in PAPER_NETWORKS.items():
        if name in environment:
            return widths
    return (256, 256)


def _widths(hidden: Any) -> tuple[int, ...]:
    widths = list(hidden) if isinstance(hidden, Iterable) else [hidden]
    whole = [isinstance(w, numbers.Integral) and not isinstance(w, bool) for w in widths]
    if not all(whole) or any(int(width) < 1 for width in widths):
        raise InvalidInput(f"hidden must be whole widths, such as (256, 256), got {hidden!r}")
    return tuple(int(width) for width in widths)


def _one_of(config: Any, name: str, known: tuple[str, ...]) -> None:
    value = getattr(config, name)
    if value not in known:
        raise InvalidInput(f"unknown {name} {value!r}: choose from {', '.join(known)}")


def _yes_or_no(config: Any, name: str) -> None:
    if not isinstance(getattr(config, name), bool):
        raise InvalidInput(f"{name} must be True or False, got {getattr(config, name)!r}")


def _whole(config: Any, name: str, least: int) -> None:
    value = getattr(config, name)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise InvalidInput(f"{name} must be a whole number of at least {least}, got {value!r}")
    object.__setattr__(config, name, int(value))


def _number(
    config: Any,
    name: str,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
) -> None:
    value = getattr(config, name)
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (good and above < value < below and value >= at_least):
        limits = (("above", above), ("of at least", at_least), ("below", below))
        words = " and ".join(f"{word} {limit:g}" for word, limit in limits if math.isfinite(limit))
        raise InvalidInput(f"{name} must be {f'a number {words}'.strip()}, got {value!r}")
    object.__setattr__(config, name, float(value))
