"""`Loop`: what an agent asks of the loops in JAX and in Gymnasium environments.

A cycle is `train_freq` steps of all environments and one update; a segment is a number of cycles
that run without the agent looking at them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray

MAX_CYCLES = 1000
"""The most cycles of a segment."""
EPISODES_PREFIX = "feed."
"""The prefix, in files, of the arrays of the episodes in progress."""


class CycleLog(NamedTuple):
    """Rewards and ends of episodes, (cycles, steps, environments), and averages, (cycles,)."""

    reward: Any
    ended: Any
    support: Any
    loss: Any
    value: Any


class Segment(NamedTuple):
    """The result of running a segment: the learner and what happened in the completed cycles."""

    learner: Any
    log: CycleLog
    stepped: NDArray[np.bool_]
    """Mask of the actions that were taken; False where a vector environment only reset itself."""
    error: BaseException | None = None
    """What the environment raised, if anything, in the cycle after the last one of the log."""


class Loop(Protocol):
    """Runs an algorithm in environments, and holds the state of the episodes in progress."""

    algorithm: Any
    """The algorithm that acts, stores and learns; it may be replaced between two segments."""

    @property
    def resumes_mid_episode(self) -> bool:
        """Whether saved arrays hold enough to continue within the episodes in progress."""

    def run(self, learner: Any, learning: bool, step: int, cycles: int, episodes: int) -> Segment:
        """Run up to `cycles` cycles from `step`, and stop after the one that ends `episodes`.

        Where no episodes are in progress it starts new ones.
        """

    def resume(self, length: int, total: float) -> bool:
        """Whether episodes are in progress, after that of a file is continued if need be.

        `length` and `total` are the steps and rewards of the first environment's episode so far.
        """

    def abandon(self, finished: int) -> None:
        """Give up the episodes in progress, after `finished` episodes in all."""

    def arrays(self, between_episodes: bool) -> dict[str, NDArray[Any]]:
        """The state of the episodes in progress, as named arrays."""

    def restore(self, arrays: dict[str, NDArray[Any]], learner: Any, finished: int) -> None:
        """Take the state from the arrays of a file, saved after `finished` episodes in all."""


class FleetLog(NamedTuple):
    """What happened in a segment of a fleet's training."""

    reward: NDArray[np.float64]
    """(steps, agents)."""
    ended: NDArray[np.bool_]
    """Ends of episodes, (steps, agents)."""
    loss: NDArray[Any]
    """The losses of the updates, or their sum, (any number, agents)."""
    error: Exception | None = None
    """What an environment raised, if anything, in the step after the last one of the log."""
    lost: Sequence[int] = ()
    """The members that lost the episode in progress before the first step."""


def step_keys(key: Array, step: ArrayLike) -> tuple[Array, Array, Array]:
    """The random keys of a step: to act, to learn and to reset with."""
    act, learn, reset = jax.random.split(jax.random.fold_in(key, step), 3)
    return act, learn, reset


def episode_seed(seed: int, environment: int, episode: int) -> int:
    """The seed of an episode, by the agent's seed and the numbers of environment and episode."""
    words = np.random.SeedSequence([seed, environment, episode]).generate_state(1)
    return int(words[0]) >> 1
