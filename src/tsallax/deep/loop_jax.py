"""Training in JAX environments: acting, storing and learning inside one compiled program.

Nothing in a cycle depends on how many cycles run at a time, so that training in segments equals
training in one call.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from tsallax.deep import checkpoint
from tsallax.deep.algorithm import Algorithm
from tsallax.deep.loop import EPISODES_PREFIX, MAX_CYCLES, CycleLog, Segment, step_keys
from tsallax.deep.replay import Transition
from tsallax.envs.jax.environment import Environment


class JaxEpisodes(NamedTuple):
    """The episodes in progress: the states of the environments and their observations."""

    state: Any
    observation: Array


class JaxLoop:
    """The loop in `n_envs` copies of a JAX environment; the seed fixes the first episodes.

    `action_table` has the real actions by number, or by dimension and number where they are
    factored, if the algorithm chooses numbers.
    """

    resumes_mid_episode = True

    def __init__(
        self,
        algorithm: Algorithm,
        environment: Environment,
        n_envs: int,
        action_table: Array | None,
        seed: int,
    ) -> None:
        self.algorithm, self.environment, self.action_table = algorithm, environment, action_table
        self.episodes: JaxEpisodes | None = None
        self._start = partial(start_episodes, environment, n_envs, first_key(seed))

    def run(self, learner: Any, learning: bool, step: int, cycles: int, episodes: int) -> Segment:
        if self.episodes is None:
            self.episodes = self._start()
        program = self.algorithm, self.environment, learning
        state = learner, self.episodes, self.action_table
        numbers = (jnp.asarray(n, jnp.int32) for n in (step, cycles, episodes))
        learner, self.episodes, log, done = run_cycles(*program, *state, *numbers)
        log = jax.tree.map(lambda x: np.asarray(x)[: int(done)], log)
        return Segment(learner, log, np.ones_like(log.ended))

    def resume(self, length: int, total: float) -> bool:
        return self.episodes is not None

    def abandon(self, finished: int) -> None:
        self.episodes = None

    def arrays(self, between_episodes: bool) -> dict[str, NDArray[Any]]:
        return {} if self.episodes is None else checkpoint.flatten(EPISODES_PREFIX, self.episodes)

    def restore(self, arrays: dict[str, NDArray[Any]], learner: Any, finished: int) -> None:
        if f"{EPISODES_PREFIX}observation" in arrays:
            self.episodes = checkpoint.restore(EPISODES_PREFIX, jax.eval_shape(self._start), arrays)


def first_key(seed: int) -> Array:
    """The key of an agent's first episodes."""
    return jax.random.fold_in(jax.random.PRNGKey(seed), 1)


@partial(jax.jit, static_argnums=(0, 1))
def start_episodes(environment: Environment, n: int, key: Array) -> JaxEpisodes:
    """Start an episode in each of `n` environments."""
    state = jax.vmap(environment.reset)(jax.random.split(key, n))
    return JaxEpisodes(state, jax.vmap(environment.observe)(state))


def step_environments(
    environment: Environment, state: Any, action: Array, table: Array | None
) -> Any:
    """A step of each environment, with a real action or its numbers in the table."""
    return jax.vmap(environment.step)(state, real_actions(table, action))


def real_actions(table: Array | None, action: Array) -> Array:
    """Real actions (n, d) from their numbers (n,), or from a number in each dimension (n, d).

    The table has a row for each action or, for numbers in each dimension, for each dimension.
    """
    if table is None:
        return action
    return table[action] if action.ndim == 1 else table[jnp.arange(len(table)), action]


def run_cycle(
    algorithm: Algorithm,
    environment: Environment,
    learning: bool,
    learner: Any,
    episodes: JaxEpisodes,
    action_table: Array | None,
    step: Array,
) -> tuple[Any, JaxEpisodes, CycleLog]:
    """`train_freq` steps of one agent's environments, then an update if it is `learning`."""
    n = len(episodes.observation)

    def step_once(carry: tuple[Any, JaxEpisodes], i: Array) -> tuple[tuple[Any, JaxEpisodes], Any]:
        learner, episodes = carry
        now = step + i * n
        act_key, _, reset_key = step_keys(learner.key, now)
        action, support = algorithm.act(learner, episodes.observation, now, act_key)
        state, after, reward, terminated, truncated = step_environments(
            environment, episodes.state, action, action_table
        )
        row = Transition(episodes.observation, action, reward, after, terminated, truncated)
        learner = algorithm.store(learner, row, now)
        ended = terminated | truncated
        started = start_episodes(environment, n, reset_key)

        def where_ended(a: Array, b: Array) -> Array:
            return jnp.where(ended.reshape(-1, *[1] * (a.ndim - 1)), a, b)

        episodes = JaxEpisodes(*jax.tree.map(where_ended, tuple(started), (state, after)))
        return (learner, episodes), (reward, ended, support)

    k = algorithm.config.train_freq
    if k == 1:
        (learner, episodes), out = step_once((learner, episodes), jnp.zeros((), jnp.int32))
        reward, ended, support = jax.tree.map(lambda x: x[None], out)
    else:
        (learner, episodes), (reward, ended, support) = lax.scan(
            step_once, (learner, episodes), jnp.arange(k, dtype=jnp.int32)
        )
    loss = value = jnp.zeros(())
    if learning:
        last = step + (k - 1) * n
        learner, metrics = algorithm.learn(learner, last + n, step_keys(learner.key, last)[1])
        loss, value = metrics.loss, metrics.value
    return learner, episodes, CycleLog(reward, ended, jnp.mean(support), loss, value)


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=(3, 4))
def run_cycles(
    algorithm: Algorithm,
    environment: Environment,
    learning: bool,
    learner: Any,
    episodes: JaxEpisodes,
    action_table: Array | None,
    step: Array,
    cycles: Array,
    max_ends: Array,
) -> tuple[Any, JaxEpisodes, CycleLog, Array]:
    """Run up to `cycles` cycles, at most MAX_CYCLES; stop after the one that ends `max_ends`.

    Returns the learner, the episodes in progress, the log, and the number of completed cycles.
    """
    n, k = len(episodes.observation), algorithm.config.train_freq
    shape = (MAX_CYCLES, k, n)
    averages = [jnp.zeros(MAX_CYCLES) for _ in range(3)]
    log = CycleLog(jnp.zeros(shape), jnp.zeros(shape, bool), *averages)

    def unfinished(carry: Any) -> Any:
        i, ends = carry[:2]
        return (i < cycles) & (ends < max_ends)

    def body(carry: Any) -> Any:
        i, ends, learner, episodes, log = carry
        learner, episodes, entry = run_cycle(
            algorithm, environment, learning, learner, episodes, action_table, step + i * (n * k)
        )
        log = jax.tree.map(lambda rows, row: rows.at[i].set(row), log, entry)
        return i + 1, ends + jnp.sum(entry.ended, dtype=jnp.int32), learner, episodes, log

    zero = jnp.zeros((), jnp.int32)
    start = (zero, zero, learner, episodes, log)
    done, _, learner, episodes, log = lax.while_loop(unfinished, body, start)
    return learner, episodes, log, done
