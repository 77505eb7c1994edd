"""Episodes without learning: their returns and lengths, seeds and actions."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike
from numpy.typing import NDArray

from tsallax.deep import loop_jax
from tsallax.deep.algorithm import Algorithm
from tsallax.deep.loop import episode_seed
from tsallax.envs.gymnasium.adapter import GymnasiumAdapter
from tsallax.envs.jax.environment import Environment
from tsallax.wording import plural

LONG_EPISODE = 100_000
"""The steps after which a warning says that an episode of an evaluation may never end."""


@dataclass(frozen=True)
class Episodes:
    """The returns and lengths of evaluation episodes.

    >>> Episodes(np.array([1.0, 3.0]), np.array([10, 20]))
    Episodes(mean return 2, standard error 1, 2 episodes)
    """

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(self.returns.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean over these episodes, of one agent and not of its seeds."""
        n = len(self.returns)
        return float(self.returns.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan

    def __repr__(self) -> str:
        error = f"standard error {self.standard_error:.4g}"
        played = plural(len(self.returns), "episode")
        return f"Episodes(mean return {self.mean:.6g}, {error}, {played})"


class EpisodeRequest(NamedTuple):
    """Episodes to play with an agent that has made so many steps."""

    step: int
    episodes: int
    deterministic: bool
    """Whether actions are the best ones, rather than drawn from the policy."""
    seed: int


def evaluation_seed(seed: int) -> int:
    """The seed of an agent's evaluations, where none is given."""
    return (seed + 1_000_003) % 2**32


@partial(jax.jit, static_argnums=0)
def choose_actions(
    algorithm: Algorithm,
    learner: Any,
    observation: Any,
    step: int,
    seeds: Sequence[np.uint32] | None,
    mask: Any,
) -> Array:
    """An action of the stochastic policy for each observation, or the best one without `seeds`.

    The first seed makes the random key, into which the others are folded; compiled, this takes a
    fraction of the time.
    """
    if seeds is None:
        return algorithm.greedy(learner, observation, mask)
    key = reduce(jax.random.fold_in, seeds[1:], jax.random.PRNGKey(seeds[0]))
    return algorithm.sample(learner, observation, step, key, mask)


def play_jax(
    algorithm: Algorithm,
    environment: Environment,
    learner: Any,
    action_table: Array | None,
    asked: EpisodeRequest,
) -> Episodes:
    """Play episodes in a JAX environment; they depend on the seed and on the agent's steps."""
    step, episodes, deterministic, seed = asked
    key = jax.random.fold_in(jax.random.PRNGKey(seed), step)
    total, length = _play_jax(
        algorithm, environment, deterministic, episodes, learner, action_table, step, key
    )
    return Episodes(np.asarray(total, np.float64), np.asarray(length, np.int64))


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _play_jax(
    algorithm: Algorithm,
    environment: Environment,
    deterministic: bool,
    episodes: int,
    learner: Any,
    action_table: Array | None,
    step: ArrayLike,
    key: Array,
) -> tuple[Array, Array]:
    """Returns and lengths of episodes, with the greedy or the sampled policy, side by side."""
    key, sub = jax.random.split(key)
    begun = loop_jax.start_episodes(environment, episodes, sub)

    def unfinished(carry: Any) -> Array:
        return jnp.any(carry[-1])

    def body(carry: Any) -> Any:
        i, playing, total, length, running = carry
        if deterministic:
            action = algorithm.greedy(learner, playing.observation)
        else:
            sample_key = jax.random.fold_in(key, i)
            action = algorithm.sample(learner, playing.observation, step, sample_key)
        state, observation, reward, terminated, truncated = loop_jax.step_environments(
            environment, playing.state, action, action_table
        )
        total = total + jnp.where(running, reward, 0)
        still = running & ~(terminated | truncated)
        return i + 1, loop_jax.JaxEpisodes(state, observation), total, length + running, still

    total, length = jnp.zeros(episodes), jnp.zeros(episodes, jnp.int32)
    start = jnp.zeros((), jnp.int32), begun, total, length, jnp.ones(episodes, bool)
    _, _, total, length, _ = lax.while_loop(unfinished, body, start)
    return total, length


def play_gymnasium(
    algorithm: Algorithm,
    environment: GymnasiumAdapter,
    learner: Any,
    asked: EpisodeRequest,
    on_state: Callable[[bool], None],
) -> Episodes:
    """Play episodes in a Gymnasium environment; `on_state(over)` is called in each state."""
    step, episodes, deterministic, seed = asked
    returns, lengths = [], []
    long: float = LONG_EPISODE
    for episode in range(episodes):
        seen = environment.reset([episode_seed(seed, 0, episode)])
        total, length, over = 0.0, 0, False
        on_state(over)
        while not over:
            seeds = None
            if not deterministic:
                seeds = (np.uint32(episode_seed(seed, length + 1, episode)),)
            action = choose_actions(algorithm, learner, seen, step, seeds, environment.mask)
            seen, reward, terminated, truncated = environment.step(np.asarray(action))
            total, length = total + float(reward[0]), length + 1
            over = bool(terminated[0] or truncated[0])
            if length == long and not over:
                long = math.inf
                warnings.warn(
                    f"{environment.name}: an episode of an evaluation has not ended after "
                    f"{length:,} steps: where a policy may go on for ever, limit them with "
                    "gymnasium.wrappers.TimeLimit",
                    stacklevel=2,
                )
            on_state(over)
        returns.append(total)
        lengths.append(length)
    return Episodes(np.array(returns), np.array(lengths, np.int64))
