"""The options of `DeepQ`: every one with its default and what it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

EXPLORE = ("sparse", "soft", "epsilon", "tsallis")
UPDATE = ("sparse", "soft", "hard", "tsallis")
MIN_ALPHA = 1e-30
"""Differences of Q, divided by it, stay within single precision."""


@dataclass(frozen=True)
class DeepQConfig:
    """The options of `DeepQ`. Steps are counted in transitions of the environment.

    >>> DeepQConfig(explore="soft", alpha=0.01).alpha
    Linear(start=0.01, end=0.01, steps=0)
    """

    explore: str = option("sparse", f"how to explore: {', '.join(EXPLORE)}")
    update: str = option("sparse", f"the maximum in the target: {', '.join(UPDATE)}")
    alpha: Any = option(0.1, "coefficient of the entropy: a number or start:end:steps")
    explore_q: float | None = option(None, "the entropic index of explore=tsallis")
    update_q: float | None = option(None, "the entropic index of update=tsallis")
    epsilon: Any = option("1:0.02:100000", "share of uniform actions of explore=epsilon")
    uniform_share: Any = option(0.0, "share of uniform actions mixed into any other exploration")
    gamma: float = option(0.99, "gamma")
    net_arch: tuple[int, ...] | None = option(
        None, "widths of the hidden layers; default: the paper's for its tasks, else 256, 256"
    )
    learning_rate: float = option(1e-4, "of Adam")
    batch_size: int = option(64, "transitions in an update")
    buffer_size: int = option(65_536, "transitions in the replay memory")
    learning_starts: int = option(1_000, "transitions before the first update")
    train_freq: int = option(1, "steps of the environments from one update to the next")
    target_update_interval: int = option(
        1_000, "transitions from one copy of the target network to the next"
    )
    priority: float = option(0.4, "exponent of the replay's priorities; 0 draws uniformly")
    beta: Any = option("0.4:1:200000", "exponent of the importance weights")
    n_envs: int = option(1, "environments stepped side by side")
    double: bool = option(False, "choose the target's policy with the online network")
    n_step: int = option(1, "steps of reward before the target bootstraps")
    huber: float | None = option(None, "TD error beyond which the loss is linear")
    max_grad_norm: float | None = option(None, "largest norm of the gradient")
    relative_entropy: bool = option(False, "measure the entropy relative to the uniform policy")
    shared_value: bool = option(
        False, "add a value that all actions share to the network's outputs"
    )
    initial_value: float = option(0.0, "bias of the network's outputs at the start")
    output_scale: float = option(0.01, "size of the network's outputs at the start")

    def __post_init__(self) -> None:
        check_schedule(self, "alpha", at_least=MIN_ALPHA)
        for name in ("epsilon", "uniform_share", "beta"):
            check_schedule(self, name, at_least=0, at_most=1)
        if self.net_arch is not None:
            object.__setattr__(self, "net_arch", layer_widths(self.net_arch))
        check_one_of(self, "explore", EXPLORE)
        check_one_of(self, "update", UPDATE)
        for word in ("explore", "update"):
            index, tsallis = getattr(self, f"{word}_q"), getattr(self, word) == "tsallis"
            if tsallis and index is None:
                raise InvalidInput(
                    f"{word}=tsallis needs an entropic index", add=(f"{word}_q", 1.5)
                )
            if index is not None and not tsallis:
                raise InvalidInput(
                    f"{word}_q is for {word}=tsallis, not {getattr(self, word)}", omit=f"{word}_q"
                )
            if index is not None:
                check_number(self, f"{word}_q", above=0)
        for name in (
            "batch_size",
            "buffer_size",
            "train_freq",
            "target_update_interval",
            "n_envs",
            "n_step",
        ):
            check_count(self, name, 1)
        check_count(self, "learning_starts", 0)
        check_number(self, "gamma", at_least=0, below=1)
        check_number(self, "learning_rate", above=0)
        check_number(self, "priority", at_least=0)
        check_number(self, "output_scale", at_least=0)
        check_number(self, "initial_value")
        for name in ("huber", "max_grad_norm"):
            if getattr(self, name) is not None:
                check_number(self, name, above=0)
        for name in ("double", "relative_entropy", "shared_value"):
            check_flag(self, name)
        if self.buffer_size < self.batch_size:
            raise InvalidInput(
                f"buffer_size {self.buffer_size} is less than batch_size {self.batch_size}"
            )
