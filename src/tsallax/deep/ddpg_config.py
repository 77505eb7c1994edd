"""The options of `DDPG`: every one with its default and what it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tsallax.deep import exploration_noise
from tsallax.deep.options import (
    check_count,
    check_flag,
    check_number,
    check_one_of,
    check_schedule,
    layer_widths,
    option,
)
from tsallax.errors import InvalidInput


@dataclass(frozen=True)
class DDPGConfig:
    """The options of `DDPG`. Steps are counted in transitions of the environment.

    >>> DDPGConfig(sigma="0.3:0.1:50000").sigma
    Linear(start=0.3, end=0.1, steps=50000)
    """

    noise: str = option("gaussian", f"how to explore: {', '.join(exploration_noise.KINDS)}")
    sigma: Any = option(
        0.1, "how far noise moves actions, in half ranges: a number or start:end:steps"
    )
    ou_rate: float = option(0.15, "how fast the noise of noise=ou forgets, per step")
    normalize: bool = option(True, "standardise observations by their running mean and deviation")
    gamma: float = option(0.99, "gamma")
    bounded: bool = option(True, "keep targets within what the rewards seen so far allow")
    net_arch: tuple[int, ...] = option((256, 256), "widths of the hidden layers of both networks")
    learning_rate: float = option(3e-4, "of Adam")
    actor_learning_rate: float | None = option(None, "of the actor's Adam; default: learning_rate")
    action_penalty: float = option(
        0.01, "cost of what the actor squashes, squared; frees it from bounds"
    )
    batch_size: int = option(64, "transitions in an update")
    buffer_size: int = option(262_144, "transitions in the replay memory")
    learning_starts: int = option(1_000, "transitions by random actions, before the first update")
    train_freq: int = option(1, "steps of the environments from one update to the next")
    tau: float = option(0.005, "share of the online networks in the targets' moves")
    priority: float = option(0.0, "exponent of the replay's priorities; 0 draws uniformly")
    beta: Any = option("0.4:1:200000", "exponent of the importance weights")
    n_envs: int = option(1, "environments stepped side by side")
    n_step: int = option(1, "steps of reward before the target bootstraps")
    max_grad_norm: float | None = option(None, "largest norm of a gradient")
    output_scale: float = option(0.1, "size of the networks' outputs at the start")

    target_update_interval: ClassVar[int] = 1_000
    """Steps from one entry of the trace to the next; the targets follow with every update."""

    def __post_init__(self) -> None:
        check_schedule(self, "sigma", at_least=0)
        check_schedule(self, "beta", at_least=0, at_most=1)
        object.__setattr__(self, "net_arch", layer_widths(self.net_arch))
        check_one_of(self, "noise", exploration_noise.KINDS)
        for name in ("batch_size", "buffer_size", "train_freq", "n_envs", "n_step"):
            check_count(self, name, 1)
        check_count(self, "learning_starts", 0)
        check_number(self, "gamma", at_least=0, below=1)
        for name in ("learning_rate", "ou_rate"):
            check_number(self, name, above=0)
        check_number(self, "tau", above=0, at_most=1)
        for name in ("actor_learning_rate", "max_grad_norm"):
            if getattr(self, name) is not None:
                check_number(self, name, above=0)
        for name in ("priority", "output_scale", "action_penalty"):
            check_number(self, name, at_least=0)
        for name in ("normalize", "bounded"):
            check_flag(self, name)
        if self.buffer_size < self.batch_size:
            raise InvalidInput(
                f"buffer_size {self.buffer_size} is less than batch_size {self.batch_size}"
            )
