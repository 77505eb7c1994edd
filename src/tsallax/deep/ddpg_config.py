"""The options of `DDPG`: every one with its default, what it does and its limits."""

from dataclasses import dataclass
from typing import Any, ClassVar

from tsallax.checks import count, flag, number, one_of
from tsallax.deep.exploration_noise import KINDS
from tsallax.deep.linear_schedule import linear
from tsallax.deep.options import (
    MAX_BUFFER,
    MAX_N_STEP,
    MAX_TRAIN_FREQ,
    check_options,
    layer_widths,
    option,
)


@dataclass(frozen=True)
class DDPGConfig:
    """The options of `DDPG`. Steps are counted in transitions of the environment.

    >>> DDPGConfig(sigma="0.3:0.1:50000").sigma
    Linear(start=0.3, end=0.1, steps=50000)
    """

    noise: str = option("gaussian", f"how to explore: {', '.join(KINDS)}", one_of, known=KINDS)
    sigma: Any = option(
        0.1,
        "how far noise moves actions, in half ranges: a number or start:end:steps",
        linear,
        at_least=0,
    )
    ou_rate: float = option(
        0.15, "how fast the noise of noise=ou forgets, per step", number, above=0
    )
    normalize: bool = option(
        True, "standardise observations by their running mean and deviation", flag
    )
    gamma: float = option(0.99, "gamma", number, at_least=0, below=1)
    bounded: bool = option(True, "keep targets within what the rewards seen so far allow", flag)
    net_arch: tuple[int, ...] = option(
        (256, 256), "widths of the hidden layers of both networks", layer_widths
    )
    learning_rate: float = option(3e-4, "of Adam", number, above=0)
    actor_learning_rate: float | None = option(
        None, "of the actor's Adam; default: learning_rate", number, above=0
    )
    action_penalty: float = option(
        0.01, "cost of what the actor squashes, squared; frees it from bounds", number, at_least=0
    )
    batch_size: int = option(64, "transitions in an update", count)
    buffer_size: int = option(262_144, "transitions in the replay memory", count, below=MAX_BUFFER)
    learning_starts: int = option(
        1_000, "transitions by random actions, before the first update", count, at_least=0
    )
    train_freq: int = option(
        1, "steps of the environments from one update to the next", count, below=MAX_TRAIN_FREQ
    )
    tau: float = option(
        0.005, "share of the online networks in the targets' moves", number, above=0, at_most=1
    )
    priority: float = option(
        0.0, "exponent of the replay's priorities; 0 draws uniformly", number, at_least=0
    )
    beta: Any = option(
        "0.4:1:200000", "exponent of the importance weights", linear, at_least=0, at_most=1
    )
    n_envs: int = option(1, "environments stepped side by side", count)
    n_step: int = option(1, "steps of reward before the target bootstraps", count, below=MAX_N_STEP)
    max_grad_norm: float | None = option(None, "largest norm of a gradient", number, above=0)
    output_scale: float = option(
        0.1, "size of the networks' outputs at the start", number, at_least=0
    )

    target_update_interval: ClassVar[int] = 1_000
    """Steps from one entry of the trace to the next; the targets follow with every update."""

    def __post_init__(self) -> None:
        check_options(self)
