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
MAX_CRITICS = 2**8
DEFAULT_INTERVAL = 1_000
DEFAULT_EPSILON = Linear(1.0, 0.02, 100_000)
MIN_ALPHA = 1e-30
"""Differences of Q, divided by it, stay within single precision."""
DEFAULT_SUPPORT = Linear(0.5, 0.05, 100_000)
AUTO = "auto"
"""The alpha that follows the support of the policy."""


def alpha_schedule(name: str, value: Any, **limits: float) -> Linear | str:
    """`auto`, or a schedule as `linear` reads it.

    >>> alpha_schedule("alpha", "auto"), alpha_schedule("alpha", 0.1)
    ('auto', Linear(start=0.1, end=0.1, steps=0))
    """
    return AUTO if isinstance(value, str) and value == AUTO else linear(name, value, **limits)


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
        0.1,
        "coefficient of the entropy: a number, start:end:steps, or auto, which follows `support`",
        alpha_schedule,
        at_least=MIN_ALPHA,
    )
    support: Any = option(
        DEFAULT_SUPPORT,
        "with alpha=auto: effective share of actions to which the policy gives probability, "
        "from 0 (one action) to 1 (all actions alike)",
        linear,
        at_least=0,
        at_most=1,
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
    network: str | None = option(
        None, "mlp, or cnn for images; default: by the observations", one_of, known=("mlp", "cnn")
    )
    layer_norm: bool = option(False, "normalise the inputs of each hidden layer's ReLU", flag)
    critics: int = option(
        1, "Q networks that are trained side by side; their mean is Q", count, below=MAX_CRITICS
    )
    factored: bool | None = option(
        None,
        "choose each dimension of an action by itself, Q(s, a) = mean_d Q_d(s, a_d); default: for "
        "structured spaces and for real actions of three dimensions or more",
        flag,
    )
    masked: bool | None = option(
        None,
        "use info['action_mask'], the actions that a state allows; default: where there is one",
        flag,
    )
    learning_rate: Any = option(1e-4, "of Adam: a number or start:end:steps", linear, above=0)
    batch_size: int = option(64, "transitions in an update", count)
    buffer_size: int = option(65_536, "transitions in the replay memory", count, below=MAX_BUFFER)
    learning_starts: int = option(1_000, "transitions before the first update", count, at_least=0)
    train_freq: int = option(
        1, "steps of the environments from one update to the next", count, below=MAX_TRAIN_FREQ
    )
    gradient_steps: int = option(1, "gradient steps of an update", count, below=MAX_TRAIN_FREQ)
    target_update_interval: int = option(
        DEFAULT_INTERVAL, "transitions from one copy of the target network to the next", count
    )
    tau: float | None = option(
        None,
        "share by which the target network moves with every gradient step, instead of copies",
        number,
        above=0,
        at_most=1,
    )
    normalize_observations: bool = option(
        False, "subtract the running mean of observations and divide by their deviation", flag
    )
    normalize_rewards: bool = option(
        False, "divide rewards by the running deviation of the discounted return", flag
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
        if self.alpha != AUTO and self.support != DEFAULT_SUPPORT:
            raise InvalidInput("support is for alpha=auto", omit="support")
        if self.tau is not None and self.target_update_interval != DEFAULT_INTERVAL:
            raise InvalidInput("with tau there are no copies", omit="target_update_interval")
        for word in ("explore", "update"):
            index, tsallis = getattr(self, f"{word}_q"), getattr(self, word) == "tsallis"
            if tsallis and index is None:
                problem = f"{word}=tsallis needs an entropic index"
                raise InvalidInput(problem, add=(f"{word}_q", 1.5))
            if index is not None and not tsallis:
                problem = f"{word}_q is for {word}=tsallis, not {getattr(self, word)}"
                raise InvalidInput(problem, omit=f"{word}_q")
