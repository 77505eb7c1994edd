"""Agents in JAX environments: acting, storing and learning inside one compiled loop.

A cycle is `train_freq` steps of the environments and one update. Nothing in it depends on how
many cycles run at a time, so that a run in pieces equals a run in one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from tsallax.deep.replay import Transition
from tsallax.envs.jax.environment import Environment

CYCLES = 1000
"""The most cycles that run before the host looks at them."""


class Algorithm(Protocol):
    """What the loops ask of an algorithm: pure functions of a learner, `DeepQLearning` for one."""

    @property
    def config(self) -> Any: ...

    def act(
        self, learner: Any, observation: Array, step: ArrayLike, key: Array
    ) -> tuple[Array, Array]: ...

    def greedy(self, learner: Any, observation: Array) -> Array: ...

    def sampled(self, learner: Any, observation: Array, step: ArrayLike, key: Array) -> Array: ...

    def store(self, learner: Any, transition: Transition, step: ArrayLike) -> Any: ...

    def learn(self, learner: Any, written: ArrayLike, key: Array) -> tuple[Any, Any]: ...

    def copy(self, learner: Any) -> Any: ...

    def shared(self, learner: Any) -> Any: ...

    def complete(self, shared: Any, fresh: Any) -> Any: ...


class Feed(NamedTuple):
    """The environments of an agent: their states and what is seen of them."""

    state: Any
    observation: Array


class Log(NamedTuple):
    """What happened: rewards and ends by cycle, step and environment, and averages by cycle."""

    reward: Array
    ended: Array
    support: Array
    loss: Array
    value: Array


def keys(key: Array, step: ArrayLike) -> tuple[Array, Array, Array]:
    """The keys of a step: to act, to learn and to reset with."""
    act, learn, reset = jax.random.split(jax.random.fold_in(key, step), 3)
    return act, learn, reset


@partial(jax.jit, static_argnums=(0, 1))
def begin(environment: Environment, n: int, key: Array) -> Feed:
    """`n` environments at the start of an episode."""
    state = jax.vmap(environment.reset)(jax.random.split(key, n))
    return Feed(state, jax.vmap(environment.observe)(state))


def cycle(
    algorithm: Algorithm,
    environment: Environment,
    learning: bool,
    learner: Any,
    feed: Feed,
    table: Array | None,
    step: Array,
) -> tuple[Any, Feed, Log]:
    """`train_freq` steps of one agent's environments, then an update if it is `learning`."""
    n = len(feed.observation)

    def one(carry: tuple[Any, Feed], i: Array) -> tuple[tuple[Any, Feed], Any]:
        learner, feed = carry
        now = step + i * n
        act_key, _, reset_key = keys(learner.key, now)
        action, share = algorithm.act(learner, feed.observation, now, act_key)
        real = action if table is None else table[action]
        state, seen, reward, terminated, truncated = jax.vmap(environment.step)(feed.state, real)
        transition = Transition(feed.observation, action, reward, seen, terminated, truncated)
        learner = algorithm.store(learner, transition, now)
        ended = terminated | truncated
        fresh = begin(environment, n, reset_key)

        def pick(a: Array, b: Array) -> Array:
            return jnp.where(ended.reshape(-1, *[1] * (a.ndim - 1)), a, b)

        feed = Feed(*jax.tree.map(pick, tuple(fresh), (state, seen)))
        return (learner, feed), (reward, ended, share)

    k = algorithm.config.train_freq
    if k == 1:
        (learner, feed), out = one((learner, feed), jnp.zeros((), jnp.int32))
        reward, ended, share = jax.tree.map(lambda x: x[None], out)
    else:
        (learner, feed), (reward, ended, share) = lax.scan(
            one, (learner, feed), jnp.arange(k, dtype=jnp.int32)
        )
    zero = jnp.zeros(())
    loss, value = zero, zero
    if learning:
        last = step + (k - 1) * n
        learner, metrics = algorithm.learn(learner, last + n, keys(learner.key, last)[1])
        loss, value = metrics.loss, metrics.value
    return learner, feed, Log(reward, ended, jnp.mean(share), loss, value)


@partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=(3, 4))
def advance(
    algorithm: Algorithm,
    environment: Environment,
    learning: bool,
    learner: Any,
    feed: Feed,
    table: Array | None,
    step: Array,
    cycles: Array,
    episodes: Array,
) -> tuple[Any, Feed, Log, Array]:
    """Run up to `cycles` cycles, at most CYCLES, and stop after the one that ends `episodes`."""
    n, k = len(feed.observation), algorithm.config.train_freq
    log = Log(
        jnp.zeros((CYCLES, k, n)),
        jnp.zeros((CYCLES, k, n), bool),
        jnp.zeros(CYCLES),
        jnp.zeros(CYCLES),
        jnp.zeros(CYCLES),
    )

    def goes_on(carry: Any) -> Any:
        i, ended = carry[:2]
        return (i < cycles) & (ended < episodes)

    def body(carry: Any) -> Any:
        i, ended, learner, feed, log = carry
        learner, feed, entry = cycle(
            algorithm, environment, learning, learner, feed, table, step + i * (n * k)
        )
        log = jax.tree.map(lambda rows, row: rows.at[i].set(row), log, entry)
        return i + 1, ended + jnp.sum(entry.ended, dtype=jnp.int32), learner, feed, log

    zero = jnp.zeros((), jnp.int32)
    done, _, learner, feed, log = lax.while_loop(goes_on, body, (zero, zero, learner, feed, log))
    return learner, feed, log, done


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def play(
    algorithm: Algorithm,
    environment: Environment,
    deterministic: bool,
    episodes: int,
    learner: Any,
    table: Array | None,
    step: ArrayLike,
    key: Array,
) -> tuple[Array, Array]:
    """Returns and lengths of episodes, with the greedy or the sampled policy, side by side."""
    key, sub = jax.random.split(key)
    feed = begin(environment, episodes, sub)

    def goes_on(carry: Any) -> Array:
        return jnp.any(carry[-1])

    def body(carry: Any) -> Any:
        i, feed, total, length, alive = carry
        if deterministic:
            action = algorithm.greedy(learner, feed.observation)
        else:
            draw = jax.random.fold_in(key, i)
            action = algorithm.sampled(learner, feed.observation, step, draw)
        real = action if table is None else table[action]
        state, seen, reward, terminated, truncated = jax.vmap(environment.step)(feed.state, real)
        total = total + jnp.where(alive, reward, 0)
        return i + 1, Feed(state, seen), total, length + alive, alive & ~(terminated | truncated)

    start = (
        jnp.zeros((), jnp.int32),
        feed,
        jnp.zeros(episodes),
        jnp.zeros(episodes, jnp.int32),
        jnp.ones(episodes, bool),
    )
    _, _, total, length, _ = lax.while_loop(goes_on, body, start)
    return total, length
