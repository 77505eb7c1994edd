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

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
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


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("rows", "priority", "sums", "largest"),
    meta_fields=("size", "action_shape", "dtype"),
)
@dataclass(frozen=True)
class Replay:
    """A ring of transitions, one row of numbers each, with their priorities.

    A row is (s, s', a, r, flags), the flags being the bits TERMINATED and ENDED.
    """

    rows: Array
    priority: Array
    sums: Array
    largest: Array
    size: int
    """Of an observation."""
    action_shape: tuple[int, ...]
    dtype: Any
    """Of an action; as a float it is exact up to 2^24."""

    @property
    def capacity(self) -> int:
        """The most transitions it holds."""
        return len(self.rows)

    @property
    def observation(self) -> Array:
        """s of all places."""
        return self.rows[:, : self.size]

    @property
    def next_observation(self) -> Array:
        """s' of all places."""
        return self.rows[:, self.size : 2 * self.size]

    @property
    def action(self) -> Array:
        """a of all places."""
        return self.actions(self.rows)

    @property
    def reward(self) -> Array:
        """r of all places."""
        return self.rows[:, -2]

    @property
    def flags(self) -> Array:
        """How the transitions ended."""
        return self.rows[:, -1].astype(jnp.uint8)

    def actions(self, rows: Array) -> Array:
        """a of some rows."""
        found = rows[:, 2 * self.size : -2]
        return found.reshape(len(rows), *self.action_shape).astype(self.dtype)


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
    blocks = -(-capacity // side)
    return Replay(
        rows=jnp.zeros((capacity, 2 * observation_size + math.prod(action_shape) + 2)),
        priority=jnp.zeros((blocks, side)),
        sums=jnp.zeros(blocks),
        largest=jnp.ones(()),
        size=observation_size,
        action_shape=action_shape,
        dtype=jnp.dtype(dtype),
    )


def add(replay: Replay, transition: Transition, written: ArrayLike) -> Replay:
    """Write one transition of each environment over the oldest; `written` were written before."""
    n = len(transition.reward)
    start = jnp.asarray(written) % replay.capacity
    ended = transition.terminated | transition.truncated
    columns = (
        transition.observation,
        transition.next_observation,
        transition.action.reshape(n, -1),
        transition.reward[:, None],
        (TERMINATED * transition.terminated + ENDED * ended)[:, None],
    )
    new = jnp.concatenate([jnp.asarray(column, replay.rows.dtype) for column in columns], 1)
    rows = lax.dynamic_update_slice_in_dim(replay.rows, new, start, 0)
    replay = dataclasses.replace(replay, rows=rows)
    weight = jnp.where(transition.valid, replay.largest, 0)
    return _set(replay, start + jnp.arange(n), jnp.broadcast_to(weight, (n,)))


def cut(replay: Replay, written: ArrayLike, n: int) -> Replay:
    """Let the newest transition of each of n environments be the last of its episode."""
    newest = (jnp.asarray(written) - 1 - jnp.arange(n)) % replay.capacity
    flags = replay.rows[newest, -1]
    flags = jnp.where(_has(replay.rows[newest], ENDED), flags, flags + ENDED)
    return dataclasses.replace(replay, rows=replay.rows.at[newest, -1].set(flags))


def prioritize(replay: Replay, index: Array, error: Array, exponent: float) -> Replay:
    """Set the priorities of drawn transitions from their TD errors."""
    weight = (jnp.abs(error) + 1e-3) ** exponent
    largest = jnp.maximum(replay.largest, jnp.max(weight))
    return dataclasses.replace(_set(replay, index, weight), largest=largest)


def _set(replay: Replay, index: Array, weight: Array) -> Replay:
    side = replay.priority.shape[1]
    if len(index) == 1:  # a single write would be fused into all its readers, with a copy for each
        index, weight = jnp.tile(index, 2), jnp.tile(weight, 2)
    block = index // side
    priority = replay.priority.at[block, index % side].set(weight)
    sums = replay.sums.at[block].set(jnp.sum(priority[block], -1))
    return dataclasses.replace(replay, priority=priority, sums=sums)


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
    block = place(replay.sums, above, u)
    rest = u - (above - replay.sums)[block]
    weights = replay.priority[block]
    where = place(weights, jnp.cumsum(weights, -1), rest)
    index = block * side + where
    weight = jnp.take_along_axis(weights, where[:, None], 1)[:, 0]
    first = replay.rows[index]
    reward, last, factor = _returns(replay, index, first, written, discount, n_envs, n_step)
    return Batch(
        first[:, : replay.size],
        replay.actions(first),
        reward,
        last[:, replay.size : 2 * replay.size],
        factor,
        index,
        weight / above[-1],
    )


def place(weight: Array, above: Array, u: Array) -> Array:
    """The first place whose running sum exceeds u, among those of some weight.

    Running sums are rounded and may rise where the weight is zero: no such place is taken.
    """
    places = jnp.arange(weight.shape[-1])
    last = jnp.max(jnp.where(weight > 0, places, 0), -1, keepdims=True)
    return jnp.min(jnp.where((weight > 0) & (above > u[..., None]), places, last), -1)


def _returns(
    replay: Replay,
    index: Array,
    first: Array,
    written: ArrayLike,
    discount: ArrayLike,
    n_envs: int,
    n_step: int,
) -> tuple[Array, Array, Array]:
    """The reward of up to n steps, the row of the last one, and the discount of what follows.

    The steps stop where the episode ends and at the newest transition that was written.
    """
    reward, last, place = first[:, -2], first, index
    factor = jnp.full(index.shape, discount, jnp.float32)
    age = (jnp.asarray(written) - 1 - index) % replay.capacity
    for k in range(1, n_step):
        goes_on = ~_has(last, ENDED) & (age >= k * n_envs)
        place = (place + n_envs) % replay.capacity
        following = replay.rows[place]
        reward = reward + jnp.where(goes_on, factor * following[:, -2], 0)
        factor = jnp.where(goes_on, factor * discount, factor)
        last = jnp.where(goes_on[:, None], following, last)
        age = jnp.where(goes_on, age, -1)
    return reward, last, jnp.where(_has(last, TERMINATED), 0, factor)


def _has(rows: Array, flag: int) -> Array:
    return (rows[:, -1].astype(jnp.int32) & flag) != 0


def importance(batch: Batch, written: ArrayLike, capacity: int, beta: ArrayLike) -> Array:
    """(size P(i))^-beta, scaled so that the largest of the batch is one."""
    size = jnp.minimum(jnp.asarray(written), capacity).astype(jnp.float32)
    weight = (size * batch.probability) ** -jnp.asarray(beta)
    return weight / jnp.max(weight)
