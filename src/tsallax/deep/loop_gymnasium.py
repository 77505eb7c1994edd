"""Training in Gymnasium environments: the environment steps on the host, the rest is compiled.

A step is one call of the environment and one compiled call that stores the transition, learns from
the memory and chooses the next action. The seed of an episode is made of the agent's seed and the
episode's number, so that an agent saved between two episodes continues with the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tsallax.deep.algorithm import Algorithm
from tsallax.deep.environment_spec import EnvironmentSpec
from tsallax.deep.loop import CycleLog, Segment, step_keys
from tsallax.deep.replay import Transition
from tsallax.envs.gymnasium.adapter import GymnasiumAdapter
from tsallax.errors import InvalidInput


@dataclass
class GymnasiumEpisodes:
    """The episodes in progress, one in each environment."""

    next_episode: list[int]
    """The number of the next episode to start in each environment, counted from 0."""
    observation: NDArray[np.float32] | None = None
    """The current observations; None where no episode is in progress."""
    action: Any = None
    """The actions chosen for them; None where none are chosen yet."""
    support: Any = np.nan
    """The mean support ratio of the policy that chose them."""


class GymnasiumLoop:
    """The loop in Gymnasium environments, which are made at the first step."""

    resumes_mid_episode = False

    def __init__(self, spec: EnvironmentSpec, seed: int) -> None:
        self.spec, self.seed = spec, seed
        self.episodes = GymnasiumEpisodes([0] * spec.n_envs)

    @property
    def in_progress(self) -> bool:
        return self.episodes.observation is not None

    def run(
        self,
        algorithm: Algorithm,
        learner: Any,
        *,
        learning: bool,
        step: int,
        cycles: int,
        episodes: int,
    ) -> Segment:
        environment = self.spec.training_environment()
        if not self.in_progress:
            start_episodes(environment, self.episodes, self.seed)
        return run_cycles(
            algorithm,
            environment,
            learning,
            learner,
            self.episodes,
            seed=self.seed,
            step=step,
            cycles=cycles,
            max_ends=episodes,
        )

    def abandon(self, finished: int) -> None:
        self.episodes = GymnasiumEpisodes([finished] * self.spec.n_envs)

    def arrays(self, between_episodes: bool) -> dict[str, NDArray[Any]]:
        """The number of episodes begun in each environment, and the actions that open new ones."""
        now = self.episodes
        begun = np.asarray(now.next_episode, np.int64) + (not self.in_progress)
        if now.action is None or not between_episodes:
            return {"begun": begun}
        return {
            "begun": begun,
            "pending": np.asarray(now.action),
            "pending_share": np.asarray(now.support),
        }

    def restore(
        self,
        path: str | PathLike[str],
        arrays: dict[str, NDArray[Any]],
        algorithm: Algorithm,
        learner: Any,
        finished: int,
    ) -> None:
        n = self.spec.n_envs
        begun = arrays.get("begun", np.full(n, finished + 1))
        if begun.shape != (n,) or begun.dtype.kind not in "iu" or begun.min() < 1:
            raise InvalidInput(f"damaged: it cannot have begun {begun} episodes", source=path)
        self.episodes = GymnasiumEpisodes((begun - 1).tolist())
        if "pending" not in arrays:
            return
        observation = jnp.zeros((n, self.spec.observation_size))
        like = jax.eval_shape(lambda: algorithm.act(learner, observation, 0, jax.random.PRNGKey(0)))
        found = arrays["pending"], arrays.get("pending_share", np.empty(0))
        same = all((x.shape, x.dtype) == (y.shape, y.dtype) for x, y in zip(found, like))
        action, limit = found[0], self.spec.n_actions
        if not same or (limit and not ((action >= 0) & (action < limit)).all()):
            raise InvalidInput(f"damaged: its next action cannot be {action.tolist()}", source=path)
        self.episodes.action, self.episodes.support = found


def episode_seed(seed: int, environment: int, episode: int) -> int:
    """The seed of an episode, by the agent's seed and the numbers of environment and episode."""
    words = np.random.SeedSequence([seed, environment, episode]).generate_state(1)
    return int(words[0]) >> 1


def start_episodes(environment: GymnasiumAdapter, episodes: GymnasiumEpisodes, seed: int) -> None:
    """Start the next episode in every environment."""
    numbers = episodes.next_episode
    episodes.observation = environment.reset(
        [episode_seed(seed, e, number) for e, number in enumerate(numbers)]
    )
    episodes.next_episode = [number + 1 for number in numbers]


@partial(jax.jit, static_argnums=0)
def _act(algorithm: Algorithm, learner: Any, observation: Array, step: Array) -> Any:
    return algorithm.act(learner, observation, step, step_keys(learner.key, step)[0])


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def _store_learn_act(
    algorithm: Algorithm,
    learning: bool,
    learner: Any,
    transition: Transition,
    observation: Array,
    step: Array,
) -> tuple[Any, Array, Array, Any]:
    """Store the transition of `step`, learn, and act on the observation that follows."""
    n = len(observation)
    learner = algorithm.store(learner, transition, step)
    metrics = (jnp.zeros(()), jnp.zeros(()))
    if learning:
        learner, metrics = algorithm.learn(learner, step + n, step_keys(learner.key, step)[1])
    key = step_keys(learner.key, step + n)[0]
    action, support = algorithm.act(learner, observation, step + n, key)
    return learner, action, support, tuple(metrics)


def run_cycles(
    algorithm: Algorithm,
    environment: GymnasiumAdapter,
    learning: bool,
    learner: Any,
    now: GymnasiumEpisodes,
    *,
    seed: int,
    step: int,
    cycles: int,
    max_ends: int,
) -> Segment:
    """Run up to `cycles` cycles and stop after the one that ends `max_ends` episodes.

    An error of the environment ends the segment with the last completed cycle.
    """
    n, k = environment.n_envs, algorithm.config.train_freq
    reward, ended = np.zeros((cycles, k, n)), np.zeros((cycles, k, n), bool)
    stepped = np.ones((cycles, k, n), bool)
    supports: list[Any] = []
    metrics: list[Any] = []
    done = ends = 0
    error: BaseException | None = None
    try:
        while done < cycles and ends < max_ends:
            for i in range(k):
                at = step + (done * k + i) * n
                if now.action is None:
                    now.action, now.support = _act(algorithm, learner, now.observation, at)
                after, rewards, terminated, truncated = environment.step(np.asarray(now.action))
                fields: list[Any] = [
                    now.observation,
                    now.action,
                    rewards.astype(np.float32),
                    after,
                    terminated,
                    truncated,
                    environment.stepped.copy(),
                ]
                supports.append(now.support)
                over = terminated | truncated
                reward[done, i], ended[done, i] = rewards, over
                stepped[done, i] = environment.stepped
                now.observation = after.copy()
                for e in map(int, np.flatnonzero(over)):
                    number = now.next_episode[e]
                    now.observation[e] = environment.reset_one(e, episode_seed(seed, e, number))
                    now.next_episode[e] += 1
                    ends += 1
                learner, now.action, now.support, found = _store_learn_act(
                    algorithm,
                    learning and i == k - 1,
                    learner,
                    Transition(*fields),
                    now.observation,
                    at,
                )
            metrics.append(found)
            done += 1
    except BaseException as raised:
        error = raised
    support = np.asarray(jax.device_get(supports[: done * k])).reshape(done, k).mean(1)
    loss, value = np.asarray(jax.device_get(metrics), np.float64).reshape(done, 2).T
    log = CycleLog(reward[:done], ended[:done], support, loss, value)
    return Segment(learner, log, stepped[:done], error)
