"""Training in Gymnasium environments: the environment steps on the host, the rest is compiled.

A step is one call of the environment and one compiled call that stores the transition, learns from
the memory and chooses the next action. The seed of an episode is made of the agent's seed and the
episode's number, so that an agent saved between two episodes continues with the same ones. An
agent with one environment that is saved within an episode repeats it from its seed and actions;
where that leads to another observation, the episode is lost.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tsallax.deep.algorithm import Algorithm
from tsallax.deep.environment_spec import EnvironmentSpec
from tsallax.deep.loop import CycleLog, Segment, episode_seed, step_keys
from tsallax.deep.replay import Transition
from tsallax.envs.gymnasium.adapter import GymnasiumAdapter
from tsallax.errors import InvalidInput

MAX_REPEATED = 2**17
"""Longer episodes are not repeated after a file was read: they are lost."""


@dataclass
class GymnasiumEpisodes:
    """The episodes in progress, one in each environment."""

    next_episode: list[int]
    """The number of the next episode to start in each environment, counted from 0."""
    observation: NDArray[Any] | None = None
    """The current observations; None where no episode is in progress."""
    mask: NDArray[np.bool_] | None = None
    """The actions that they allow, where the environment masks actions."""
    action: Any = None
    """The actions chosen for them; None where none are chosen yet."""
    support: Any = np.nan
    """The mean support ratio of the policy that chose them."""
    taken: list[NDArray[Any]] = field(default_factory=list)
    """The actions of the episode so far, where there is one environment."""


class GymnasiumLoop:
    """The loop in Gymnasium environments, which are made at the first step."""

    def __init__(self, algorithm: Algorithm, spec: EnvironmentSpec, seed: int) -> None:
        self.algorithm, self.spec, self.seed = algorithm, spec, seed
        self.episodes = GymnasiumEpisodes([0] * spec.n_envs)
        self._saved: NDArray[Any] | None = None
        """The observation of a file's unfinished episode, which `resume` repeats."""

    @property
    def in_progress(self) -> bool:
        """Whether episodes are in progress."""
        return self.episodes.observation is not None

    @property
    def resumes_mid_episode(self) -> bool:
        """Whether the episode in progress is one that can be repeated from its actions."""
        known = self.in_progress or self._saved is not None
        one = known and self.spec.n_envs == 1 and 0 < len(self.episodes.taken) <= MAX_REPEATED
        return one and self.episodes.action is not None and not self.spec.statistics()

    def _next_seed(self, e: int) -> int:
        """The seed of the next episode in environment `e`."""
        return episode_seed(self.seed, e, self.episodes.next_episode[e])

    def run(self, learner: Any, learning: bool, step: int, cycles: int, episodes: int) -> Segment:
        """An error of the environment ends the segment with the last completed cycle."""
        environment, now = self.spec.training_environment(), self.episodes
        n, k = environment.n_envs, self.algorithm.config.train_freq
        if not self.in_progress:
            now.observation = environment.reset([self._next_seed(e) for e in range(n)])
            now.mask = _copy(environment.mask)
            now.next_episode, now.taken = [number + 1 for number in now.next_episode], []
            if now.action is not None and not self.spec.action.allows(now.mask, now.action):
                now.action = None
        reward = np.zeros((cycles, k, n))
        ended, stepped = np.zeros((2, cycles, k, n), bool)
        supports: list[Any] = []
        metrics: list[Any] = []
        hyperparameters, state = learner.hyperparameters, learner._replace(hyperparameters=None)
        done = ends = 0
        error: BaseException | None = None
        try:
            while done < cycles and ends < episodes:
                for i in range(k):
                    at = step + (done * k + i) * n
                    if now.action is None:
                        learner = state._replace(hyperparameters=hyperparameters)
                        now.action, now.support = _act(
                            self.algorithm, learner, now.observation, at, now.mask
                        )
                    supports.append(now.support)
                    transition, reward[done, i] = self._step(environment)
                    over = ended[done, i] = transition.terminated | transition.truncated
                    stepped[done, i] = transition.valid
                    ends += int(over.sum())
                    update = learning and i == k - 1
                    after = now.observation, at, now.mask
                    state, now.action, now.support, found = _store_learn_act(
                        self.algorithm, update, state, hyperparameters, transition, *after
                    )
                metrics.append(found)
                done += 1
        except BaseException as raised:
            error = raised
        support = np.array([np.asarray(x) for x in supports[: done * k]]).reshape(done, k).mean(1)
        numbers = [np.asarray(x) for pair in metrics for x in pair]
        loss, value = np.array(numbers, np.float64).reshape(done, 2).T
        log = CycleLog(reward[:done], ended[:done], support, loss, value)
        return Segment(state._replace(hyperparameters=hyperparameters), log, stepped[:done], error)

    def _step(self, environment: GymnasiumAdapter) -> tuple[Transition, NDArray[np.float64]]:
        """Take the chosen actions, and start new episodes where one ended."""
        now, action = self.episodes, np.asarray(self.episodes.action)
        after, reward, terminated, truncated = environment.step(action)
        if environment.n_envs == 1 and len(now.taken) <= MAX_REPEATED:
            now.taken.append(np.array(action))
        fields: Any = (
            now.observation, now.action, reward.astype(np.float32), after, terminated, truncated,
            environment.stepped.copy(), _copy(environment.mask),
        )  # fmt: skip
        now.observation = after.copy()
        for e in map(int, np.flatnonzero(terminated | truncated)):
            now.observation[e] = environment.reset_one(e, self._next_seed(e))
            now.next_episode[e] += 1
            now.taken = []
        now.mask = _copy(environment.mask)
        return Transition(*fields), reward

    def resume(self, length: int, total: float) -> bool:
        """Repeat the unfinished episode of a file; False if its observation or return differs."""
        if self.in_progress or self._saved is None:
            return self.in_progress
        environment, now = self.spec.training_environment(), self.episodes
        observation, earned = environment.reset([self._next_seed(0)]), 0.0
        same = len(now.taken) == length
        for action in now.taken:
            if not same:
                break
            observation, reward, terminated, truncated = environment.step(action)
            earned += float(reward[0])
            same = not (terminated | truncated).any()
        same = same and np.array_equal(observation, self._saved) and bool(np.isclose(earned, total))
        self._saved = None
        if not same:
            now.action, now.taken = None, []
            return False
        now.observation, now.mask = observation.copy(), _copy(environment.mask)
        now.next_episode = [now.next_episode[0] + 1]
        if not self.spec.action.allows(now.mask, now.action):
            now.action = None
        return True

    def abandon(self, finished: int) -> None:
        self._saved = None
        self.episodes = GymnasiumEpisodes([finished] * self.spec.n_envs)

    def arrays(self, between_episodes: bool) -> dict[str, NDArray[Any]]:
        """The number of episodes begun in each environment, and the actions of the next step.

        Within an episode also its observation and its actions, where it can be repeated from them.
        """
        now = self.episodes
        found = {"begun": np.asarray(now.next_episode, np.int64) + (not self.in_progress)}
        repeats = not between_episodes and self.resumes_mid_episode
        if repeats:
            seen = self._saved if now.observation is None else now.observation
            found |= {"observation": np.asarray(seen), "taken": np.stack(now.taken)}
        if now.action is not None and (between_episodes or repeats):
            found |= {"pending": np.asarray(now.action), "pending_share": np.asarray(now.support)}
        return found

    def restore(self, arrays: dict[str, NDArray[Any]], learner: Any, finished: int) -> None:
        n = self.spec.n_envs
        begun = arrays.get("begun", np.full(n, finished + 1))
        if begun.shape != (n,) or begun.dtype.kind not in "iu" or begun.min() < 1:
            raise InvalidInput(f"damaged: it cannot have begun {begun} episodes")
        self.episodes = GymnasiumEpisodes((begun - 1).tolist())
        if "pending" not in arrays:
            return
        seen = jnp.zeros((n, *self.spec.observation.shape), self.spec.observation.dtype)
        like = jax.eval_shape(lambda: _act(self.algorithm, learner, seen, jnp.int32(0), None))
        found = arrays["pending"], arrays.get("pending_share", np.empty(0))
        same = all((x.shape, x.dtype) == (y.shape, y.dtype) for x, y in zip(found, like))
        action = found[0]
        if not same or not self.spec.action.has(action):
            raise InvalidInput(f"damaged: its next action cannot be {action.tolist()}")
        self.episodes.action, self.episodes.support = found
        if "taken" in arrays:
            self._restore_taken(arrays["taken"], arrays.get("observation", np.empty(0)), seen)

    def _restore_taken(self, taken: NDArray[Any], observation: NDArray[Any], like: Any) -> None:
        """Take the unfinished episode from the arrays of a file, to be repeated by `resume`."""
        action = np.asarray(self.episodes.action)
        known = taken.ndim > 0 and 0 < len(taken) <= MAX_REPEATED and self.spec.n_envs == 1
        same = known and (taken.shape[1:], taken.dtype) == (action.shape, action.dtype)
        seen = (observation.shape, observation.dtype) == (like.shape, like.dtype)
        if not (same and seen) or not self.spec.action.has(taken):
            raise InvalidInput("damaged: its unfinished episode has impossible actions")
        self.episodes.taken, self._saved = list(taken), observation


def _copy(mask: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    return None if mask is None else mask.copy()


@partial(jax.jit, static_argnums=0)
def _act(
    algorithm: Algorithm, learner: Any, observation: Array, step: Array, mask: Array | None
) -> Any:
    return algorithm.act(learner, observation, step, step_keys(learner.key, step)[0], mask)


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def _store_learn_act(
    algorithm: Algorithm,
    learning: bool,
    state: Any,
    hyperparameters: Any,
    transition: Transition,
    observation: Array,
    step: Array,
    mask: Array | None,
) -> tuple[Any, Array, Array, Any]:
    """Store the transition of `step`, learn, and act on the observation that follows.

    `state` is a learner without its hyperparameters, which no step changes.
    """
    n = len(observation)
    learner = algorithm.store(state._replace(hyperparameters=hyperparameters), transition, step)
    metrics = (jnp.zeros(()), jnp.zeros(()))
    if learning:
        learner, metrics = algorithm.learn(learner, step + n, step_keys(learner.key, step)[1])
    key = step_keys(learner.key, step + n)[0]
    action, support = algorithm.act(learner, observation, step + n, key, mask)
    return learner._replace(hyperparameters=None), action, support, tuple(metrics)
