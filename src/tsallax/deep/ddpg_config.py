"""The options of `DDPG`: every one with its default and what it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tsallax.deep import exploration_noise, linear_schedule
from tsallax.deep.deep_q_config import _number, _one_of, _option, _whole, _widths, _yes_or_no
from tsallax.errors import InvalidInput


@dataclass(frozen=True)
class DDPGConfig:
    """The options of `DDPG`. Steps are counted in transitions of the environment.

    >>> DDPGConfig(sigma="0.3:0.1:50000").sigma
    Linear(start=0.3, end=0.1, steps=50000)
    """

    noise: str = _option("gaussian", f"how to explore: {', '.join(exploration_noise.KINDS)}")
    sigma: Any = _option(
        0.1, "how far noise moves actions, in half ranges: a number or start:end:steps"
    )
    ou_rate: float = _option(0.15, "how fast the noise of noise=ou forgets, per step")
    normalize: bool = _option(True, "standardise observations by their running mean and deviation")
    discount: float = _option(0.99, "gamma")
    bounded: bool = _option(True, "keep targets within what the rewards seen so far allow")
    hidden: tuple[int, ...] = _option((256, 256), "widths of the hidden layers of both networks")
    learning_rate: float = _option(3e-4, "of Adam")
    actor_rate: float | None = _option(None, "of the actor's Adam; default: learning_rate")
    pull: float = _option(0.01, "cost of what the actor squashes, squared; frees it from bounds")
    batch: int = _option(64, "transitions in an update")
    capacity: int = _option(262_144, "transitions in the replay memory")
    start: int = _option(1_000, "transitions by random actions, before the first update")
    update_every: int = _option(1, "steps of the environments from one update to the next")
    tau: float = _option(0.005, "share of the online networks in the targets' moves")
    priority: float = _option(0.0, "exponent of the replay's priorities; 0 draws uniformly")
    beta: Any = _option("0.4:1:200000", "exponent of the importance weights")
    environments: int = _option(1, "environments stepped side by side")
    n_step: int = _option(1, "steps of reward before the target bootstraps")
    clip: float | None = _option(None, "largest norm of a gradient")
    output_scale: float = _option(0.1, "size of the networks' outputs at the start")

    copy_every: ClassVar[int] = 1_000
    """Steps from one entry of the trace to the next; the targets follow with every update."""

    def __post_init__(self) -> None:
        for name in ("sigma", "beta"):
            object.__setattr__(self, name, linear_schedule.linear(getattr(self, name), name))
        object.__setattr__(self, "hidden", _widths(self.hidden))
        _one_of(self, "noise", exploration_noise.KINDS)
        if min(self.sigma.start, self.sigma.end) < 0:
            raise InvalidInput(f"sigma must be at least 0, got {linear_schedule.text(self.sigma)}")
        if not all(0 <= value <= 1 for value in self.beta[:2]):
            raise InvalidInput("beta must be between 0 and 1")
        for name in ("batch", "capacity", "update_every", "environments", "n_step"):
            _whole(self, name, 1)
        _whole(self, "start", 0)
        _number(self, "discount", at_least=0, below=1)
        for name in ("learning_rate", "ou_rate", "tau"):
            _number(self, name, above=0)
        for name in ("actor_rate", "clip"):
            if getattr(self, name) is not None:
                _number(self, name, above=0)
        for name in ("priority", "output_scale", "pull"):
            _number(self, name, at_least=0)
        for name in ("normalize", "bounded"):
            _yes_or_no(self, name)
        if self.tau > 1:
            raise InvalidInput(f"tau must be at most 1, got {self.tau:g}")
        if self.capacity < self.batch:
            raise InvalidInput(f"capacity {self.capacity} is less than a batch of {self.batch}")
