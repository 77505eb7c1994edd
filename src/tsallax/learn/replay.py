"""Prioritised replay, proportional variant, on whatever device holds its arrays.

A transition i is drawn with probability P(i) = w_i / sum w, w = (|TD error| + 0.001)^exponent, and
counts in the loss with (size P(i))^-beta, scaled by the largest such weight of the batch. A new
transition gets the largest priority so far.

The priorities are blocks of a square: a draw looks for its block among the sums of the blocks, then
for its place in the block. Sums are computed again from their block and never added to, so they
are exact to rounding for ever. Transitions are written in the order of time, `n` environments at a
time, so that the successor of transition i is i + n and returns over several steps are put
together when they are drawn.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

TERMINATED, ENDED = 1, 2


class Transition(NamedTuple):
    """(s, a, r, s') and how it ended; every field has the environments as leading axis.

    What is not `valid` keeps its place in time but is never drawn.
    """

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array
    truncated: Array
    valid: Array | bool = True


class Replay(NamedTuple):
    """A ring of transitions with their priorities; `flags` has the bits TERMINATED and ENDED."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    flags: Array
    priority: Array
    sums: Array
    largest: Array


class Batch(NamedTuple):
    """Drawn transitions; `discount` is gamma^n for n steps, and 0 after a termination."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    discount: Array
    index: Array  # type: ignore[assignment]
    probability: Array


def init(capacity: int, observation_size: int, action_shape: tuple[int, ...], dtype: Any) -> Replay:
    """An empty ring for `capacity` transitions."""
    side = math.isqrt(capacity - 1) + 1
    return Replay(
        observation=jnp.zeros((capacity, observation_size)),
        action=jnp.zeros((capacity, *action_shape), dtype),
        reward=jnp.zeros(capacity),
        next_observation=jnp.zeros((capacity, observation_size)),
        flags=jnp.zeros(capacity, jnp.uint8),
        priority=jnp.zeros((-(-capacity // side), side)),
        sums=jnp.zeros(-(-capacity // side)),
        largest=jnp.ones(()),
    )


def add(replay: Replay, transition: Transition, written: ArrayLike) -> Replay:
    """Write one transition of each environment over the oldest; `written` were written before."""
    n = len(transition.reward)
    start = jnp.asarray(written) % len(replay.reward)

    def put(ring: Array, rows: Array) -> Array:
        return lax.dynamic_update_slice_in_dim(ring, rows.astype(ring.dtype), start, 0)

    ended = transition.terminated | transition.truncated
    flags = TERMINATED * transition.terminated.astype(jnp.uint8) + ENDED * ended.astype(jnp.uint8)
    replay = replay._replace(
        observation=put(replay.observation, transition.observation),
        action=put(replay.action, transition.action),
        reward=put(replay.reward, transition.reward),
        next_observation=put(replay.next_observation, transition.next_observation),
        flags=put(replay.flags, flags),
    )
    weight = jnp.where(transition.valid, replay.largest, 0)
    return _set(replay, start + jnp.arange(n), jnp.broadcast_to(weight, (n,)))


def prioritize(replay: Replay, index: Array, error: Array, exponent: float) -> Replay:
    """Set the priorities of drawn transitions from their TD errors."""
    weight = (jnp.abs(error) + 1e-3) ** exponent
    largest = jnp.maximum(replay.largest, jnp.max(weight))
    return _set(replay, index, weight)._replace(largest=largest)


def _set(replay: Replay, index: Array, weight: Array) -> Replay:
    side = replay.priority.shape[1]
    block = index // side
    priority = replay.priority.at[block, index % side].set(weight)
    sums = replay.sums.at[block].set(jnp.sum(priority[block], -1))
    return replay._replace(priority=priority, sums=sums)


def sample(
    replay: Replay,
    key: Array,
    size: int,
    written: ArrayLike,
    *,
    discount: ArrayLike,
    n_envs: int = 1,
    n_step: int = 1,
) -> Batch:
    """Draw a batch, one transition from each of `size` equal parts of the priorities' sum."""
    side = replay.priority.shape[1]
    above = jnp.cumsum(replay.sums)
    u = (jnp.arange(size) + jax.random.uniform(key, (size,))) * (above[-1] / size)
    block = _place(replay.sums, above, u)
    rest = u - (above - replay.sums)[block]
    rows = replay.priority[block]
    index = block * side + _place(rows, jnp.cumsum(rows, -1), rest)
    weight = replay.priority[index // side, index % side]
    reward, last, factor = _returns(replay, index, written, discount, n_envs, n_step)
    return Batch(
        replay.observation[index],
        replay.action[index],
        reward,
        replay.next_observation[last],
        factor,
        index,
        weight / above[-1],
    )


def _place(weight: Array, above: Array, u: Array) -> Array:
    """The first place whose running sum exceeds u, among those of some weight.

    Running sums are rounded and may rise where the weight is zero: no such place is taken.
    """
    places = jnp.arange(weight.shape[-1])
    last = jnp.max(jnp.where(weight > 0, places, 0), -1, keepdims=True)
    return jnp.min(jnp.where((weight > 0) & (above > u[..., None]), places, last), -1)


def _returns(
    replay: Replay,
    index: Array,
    written: ArrayLike,
    discount: ArrayLike,
    n_envs: int,
    n_step: int,
) -> tuple[Array, Array, Array]:
    """The reward of up to n steps, the place of the last one, and the discount of what follows.

    The steps stop where the episode ends and at the newest transition that was written.
    """
    capacity = len(replay.reward)
    reward, last = replay.reward[index], index
    factor = jnp.full(index.shape, discount, jnp.float32)
    age = (jnp.asarray(written) - 1 - index) % capacity
    for k in range(1, n_step):
        goes_on = ((replay.flags[last] & ENDED) == 0) & (age >= k * n_envs)
        following = (last + n_envs) % capacity
        reward = reward + jnp.where(goes_on, factor * replay.reward[following], 0)
        factor = jnp.where(goes_on, factor * discount, factor)
        last = jnp.where(goes_on, following, last)
    terminated = (replay.flags[last] & TERMINATED) != 0
    return reward, last, jnp.where(terminated, 0, factor)


def importance(batch: Batch, written: ArrayLike, capacity: int, beta: ArrayLike) -> Array:
    """(size P(i))^-beta, scaled so that the largest of the batch is one."""
    size = jnp.minimum(jnp.asarray(written), capacity).astype(jnp.float32)
    weight = (size * batch.probability) ** -jnp.asarray(beta)
    return weight / jnp.max(weight)
