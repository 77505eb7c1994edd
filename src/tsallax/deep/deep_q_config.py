"""The options of `DeepQ`: every one with its default, what it does and its limits."""

from dataclasses import dataclass
from typing import Any

from tsallax.checks import count, flag, number, one_of
from tsallax.deep.linear_schedule import Linear, linear
from tsallax.deep.options import (
    MAX_BUFFER,
    MAX_N_STEP,
    MAX_TRAIN_FREQ,
    check_options,
    layer_widths,
    option,
)
from tsallax.errors import InvalidInput

EXPLORE = ("sparse", "soft", "epsilon", "tsallis")
UPDATE = ("sparse", "soft", "hard", "tsallis")
DEFAULT_EPSILON = Linear(1.0, 0.02, 100_000)
MIN_ALPHA = 1e-30
"""Differences of Q, divided by it, stay within single precision."""


@dataclass(frozen=True)
class DeepQConfig:
    """The options of `DeepQ`. Steps are counted in transitions of the environment.

    >>> DeepQConfig(explore="soft", alpha=0.01).alpha
    Linear(start=0.01, end=0.01, steps=0)
    """

    explore: str = option("sparse", f"how to explore: {', '.join(EXPLORE)}", one_of, known=EXPLORE)
    update: str = option(
        "sparse", f"the maximum in the target: {', '.join(UPDATE)}", one_of, known=UPDATE
    )
    alpha: Any = option(
        0.1, "coefficient of the entropy: a number or start:end:steps", linear, at_least=MIN_ALPHA
    )
    explore_q: float | None = option(None, "the entropic index of explore=tsallis", number, above=0)
    update_q: float | None = option(None, "the entropic index of update=tsallis", number, above=0)
    epsilon: Any = option(
        DEFAULT_EPSILON,
        "share of uniform actions of explore=epsilon",
        linear,
        at_least=0,
        at_most=1,
    )
    uniform_share: Any = option(
        0.0,
        "share of uniform actions mixed into any other exploration",
        linear,
        at_least=0,
        at_most=1,
    )
    gamma: float = option(0.99, "gamma", number, at_least=0, below=1)
    net_arch: tuple[int, ...] | None = option(
        None,
        "widths of the hidden layers; default: the paper's for its tasks, else 256, 256",
        layer_widths,
    )
    learning_rate: float = option(1e-4, "of Adam", number, above=0)
    batch_size: int = option(64, "transitions in an update", count)
    buffer_size: int = option(65_536, "transitions in the replay memory", count, below=MAX_BUFFER)
    learning_starts: int = option(1_000, "transitions before the first update", count, at_least=0)
    train_freq: int = option(
        1, "steps of the environments from one update to the next", count, below=MAX_TRAIN_FREQ
    )
    target_update_interval: int = option(
        1_000, "transitions from one copy of the target network to the next", count
    )
    priority: float = option(
        0.4, "exponent of the replay's priorities; 0 draws uniformly", number, at_least=0
    )
    beta: Any = option(
        "0.4:1:200000", "exponent of the importance weights", linear, at_least=0, at_most=1
    )
    n_envs: int = option(1, "environments stepped side by side", count)
    double: bool = option(False, "choose the target's policy with the online network", flag)
    n_step: int = option(1, "steps of reward before the target bootstraps", count, below=MAX_N_STEP)
    huber: float | None = option(None, "TD error beyond which the loss is linear", number, above=0)
    max_grad_norm: float | None = option(None, "largest norm of the gradient", number, above=0)
    relative_entropy: bool = option(
        False, "measure the entropy relative to the uniform policy", flag
    )
    shared_value: bool = option(
        False, "add a value that all actions share to the network's outputs", flag
    )
    initial_value: float = option(0.0, "bias of the network's outputs at the start", number)
    output_scale: float = option(
        0.01, "size of the network's outputs at the start", number, at_least=0
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.explore != "epsilon" and self.epsilon != DEFAULT_EPSILON:
            raise InvalidInput(
                f"epsilon is for explore=epsilon, not {self.explore}: give explore=epsilon, or "
                "uniform_share for a share of uniform actions beside it"
            )
        for word in ("explore", "update"):
            index, tsallis = getattr(self, f"{word}_q"), getattr(self, word) == "tsallis"
            if tsallis and index is None:
                problem = f"{word}=tsallis needs an entropic index"
                raise InvalidInput(problem, add=(f"{word}_q", 1.5))
            if index is not None and not tsallis:
                problem = f"{word}_q is for {word}=tsallis, not {getattr(self, word)}"
                raise InvalidInput(problem, omit=f"{word}_q")
