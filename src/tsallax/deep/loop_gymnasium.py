"""Agents in Gymnasium environments: the environment steps on the host, the rest is compiled.

A step is one call of the environment and one compiled call that stores the transition, learns from
the memory and picks the next action. Each episode starts from a seed made of the agent's seed and
the episode's number, so that an agent saved between two episodes goes on as if it had not been.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tsallax.deep.loop_jax import Algorithm, Log, keys
from tsallax.deep.replay import Transition

if TYPE_CHECKING:
    from tsallax.envs.gymnasium.adapter import GymnasiumAdapter


@dataclass
class HostFeed:
    """What is seen of the environments, the action to take next, and the episodes begun in each."""

    observation: NDArray[np.float32]
    action: Any
    share: Any
    begun: list[int]
    seed: int


def seed_of(seed: int, environment: int, episode: int) -> int:
    """The seed of an episode."""
    words = np.random.SeedSequence([seed, environment, episode]).generate_state(1)
    return int(words[0]) >> 1


def begin(environment: GymnasiumAdapter, seed: int, done: Sequence[int]) -> HostFeed:
    """Start an episode in every environment; so many were finished in each before."""
    seen = environment.reset([seed_of(seed, e, episode) for e, episode in enumerate(done)])
    return HostFeed(seen, None, np.nan, [episode + 1 for episode in done], seed)


@partial(jax.jit, static_argnums=0)
def _act(algorithm: Algorithm, learner: Any, seen: Array, step: Array) -> tuple[Array, Array]:
    return algorithm.act(learner, seen, step, keys(learner.key, step)[0])


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def _cycle(
    algorithm: Algorithm,
    learning: bool,
    learner: Any,
    transition: Transition,
    seen: Array,
    step: Array,
) -> tuple[Any, Array, Array, Any]:
    """Store what happened at `step`, learn, and act on what is `seen` now."""
    n = len(seen)
    learner = algorithm.store(learner, transition, step)
    metrics = (jnp.zeros(()), jnp.zeros(()))
    if learning:
        learner, metrics = algorithm.learn(learner, step + n, keys(learner.key, step)[1])
    action, share = algorithm.act(learner, seen, step + n, keys(learner.key, step + n)[0])
    return learner, action, share, tuple(metrics)


def advance(
    algorithm: Algorithm,
    environment: GymnasiumAdapter,
    learning: bool,
    learner: Any,
    feed: HostFeed,
    step: int,
    cycles: int,
    episodes: int,
) -> tuple[Any, int, Log, NDArray[np.bool_], BaseException | None]:
    """Run up to `cycles` cycles and stop after the one that ends `episodes`.

    Also says, by step and environment, where a step was taken and not only a reset, and what the
    environment raised, if it did: then the results are those of the cycles before.
    """
    n, k = environment.n_envs, algorithm.config.train_freq
    per_step, per_cycle = (cycles, k, n), (cycles,)
    columns: list[Any] = [np.zeros(per_step), np.zeros(per_step, bool)]
    log: Any = Log(*columns, *(np.zeros(per_cycle) for _ in range(3)))
    valid = np.ones(per_step, bool)
    shares, metrics = [], []
    done = ended = 0
    failure: BaseException | None = None
    try:
        while done < cycles and ended < episodes:
            for i in range(k):
                now = step + (done * k + i) * n
                if feed.action is None:
                    feed.action, feed.share = _act(algorithm, learner, feed.observation, now)
                taken = feed.action
                seen, reward, terminated, truncated = environment.step(np.asarray(taken))
                fields: list[Any] = [feed.observation, taken, reward.astype(np.float32), seen]
                valid[done, i] = environment.stepped
                ends: list[Any] = [terminated, truncated, environment.stepped.copy()]
                transition = Transition(*fields, *ends)
                shares.append(feed.share)
                over = terminated | truncated
                log.reward[done, i], log.ended[done, i] = reward, over
                feed.observation = seen.copy()
                for e in np.flatnonzero(over):
                    feed.observation[e] = environment.reset_one(
                        int(e), seed_of(feed.seed, int(e), feed.begun[e])
                    )
                    feed.begun[e] += 1
                    ended += 1
                learner, feed.action, feed.share, m = _cycle(
                    algorithm, learning and i == k - 1, learner, transition, feed.observation, now
                )
            metrics.append(m)
            done += 1
    except BaseException as error:
        failure = error
    if done:
        log.support[:done] = np.asarray(jax.device_get(shares[: done * k])).reshape(done, k).mean(1)
        found = np.asarray(jax.device_get(metrics), np.float64)
        log.loss[:done], log.value[:done] = found[:, 0], found[:, 1]
    return learner, done, log, valid, failure
