"""Prioritised replay, proportional variant, as pure functions of JAX arrays.

A transition i is drawn with probability P(i) = w_i / sum w, w = (|TD error| + 0.001)^exponent, and
counts in the loss with (size P(i))^-beta, scaled by the largest such weight of the batch. A new
transition gets the largest priority so far.

The priorities are stored in about sqrt(size) blocks: a draw searches the sums of the blocks, then
the block. A sum is recomputed from its block and never updated, so that rounding errors do not
accumulate. Transitions are written in the order of time, `n` environments at a time, so that the
successor of transition i is i + n, and n-step returns are computed when they are drawn.
"""

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from tsallax.deep import categorical
from tsallax.envs.observation_format import ObservationFormat

TERMINATED, ENDED = 1, 2
RINGS = ("rows", "observations", "masks")
"""The arrays of a memory that have a row for each transition."""


class Transition(NamedTuple):
    """(s, a, r, s') and how it ended; every field has the environments as leading axis.

    `mask` says which actions s' allows, None where all are allowed. Transitions that are not
    `valid` are stored but never drawn.
    """

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array
    truncated: Array
    valid: Array | bool = True
    mask: Array | None = None


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("rows", "priority", "sums", "largest", "observations", "masks"),
    meta_fields=("size", "action_shape", "dtype", "mask_size"),
)
@dataclass(frozen=True)
class Replay:
    """A ring of transitions, one row of numbers each, with their priorities.

    A row is (s, s', a, r, flags), the flags being the bits TERMINATED and ENDED. Observations that
    are not real vectors are not in it but in an array of their own type.
    """

    rows: Array
    priority: Array
    sums: Array
    largest: Array
    observations: Array | None
    """s and s', (capacity, 2, ...), where they are integers or images."""
    masks: Array | None
    """The actions that s' allows, eight to a byte, where the environment masks actions."""
    size: int
    """The size of an observation in a row."""
    action_shape: tuple[int, ...]
    dtype: Any
    """The type of an action; as a float it is exact up to 2^24."""
    mask_size: int

    @property
    def capacity(self) -> int:
        """The number of transitions it holds when it is full."""
        return len(self.rows)

    def columns(self, rows: Array) -> tuple[Array, Array, Array]:
        """s, s' and a of some rows."""
        seen, following, action = jnp.split(rows[:, :-2], (self.size, 2 * self.size), 1)
        return seen, following, action.reshape(-1, *self.action_shape).astype(self.dtype)


class Batch(NamedTuple):
    """Drawn transitions; `discount` is gamma^n for n steps, and 0 after a termination."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    discount: Array
    index: Array  # type: ignore[assignment]
    probability: Array
    mask: Array | None = None
    """The actions that s' allows."""


def init(
    size: int,
    observation: ObservationFormat,
    action_shape: tuple[int, ...],
    dtype: Any,
    n_envs: int = 1,
    mask_size: int = 0,
) -> Replay:
    """An empty ring for `size` transitions, rounded up to a multiple of `n_envs`.

    With a `mask_size` it also holds that many bits for each transition.
    """
    capacity = -(-size // n_envs) * n_envs
    side = math.isqrt(capacity - 1) + 1
    blocks = -(-capacity // side)
    vectors = observation.size if observation.kind == "vector" else 0
    separate = (capacity, 2, *observation.shape)
    return Replay(
        rows=jnp.zeros((capacity, 2 * vectors + math.prod(action_shape) + 2)),
        priority=jnp.zeros((blocks, side)),
        sums=jnp.zeros(blocks),
        largest=jnp.ones(()),
        observations=None if vectors else jnp.zeros(separate, observation.dtype),
        masks=jnp.zeros((capacity, -(-mask_size // 8)), jnp.uint8) if mask_size else None,
        size=vectors,
        action_shape=action_shape,
        dtype=jnp.dtype(dtype),
        mask_size=mask_size,
    )


def add(replay: Replay, transition: Transition, written: ArrayLike) -> Replay:
    """Write one transition of each environment over the oldest ones, after `written` others."""
    n = len(transition.reward)
    index = jnp.asarray(written) % replay.capacity + jnp.arange(n)
    ended = transition.terminated | transition.truncated
    seen = transition.observation, transition.next_observation
    columns = (
        *(seen if replay.observations is None else ()),
        transition.action.reshape(n, -1),
        transition.reward[:, None],
        (TERMINATED * transition.terminated + ENDED * ended)[:, None],
    )

    def write(ring: Array, new: Array) -> Array:
        at, new = _twice(index, new.astype(ring.dtype))
        return ring.at[at].set(new)

    new = jnp.concatenate([jnp.asarray(column, replay.rows.dtype) for column in columns], 1)
    observations, masks = replay.observations, replay.masks
    if observations is not None:
        observations = write(observations, jnp.stack(seen, 1))
    if masks is not None:
        assert transition.mask is not None
        masks = write(masks, jnp.packbits(transition.mask, 1))
    rows = write(replay.rows, new)
    replay = dataclasses.replace(replay, rows=rows, observations=observations, masks=masks)
    weight = jnp.where(transition.valid, replay.largest, 0)
    return _set(replay, index, jnp.broadcast_to(weight, (n,)))


def end_newest(replay: Replay, written: ArrayLike, n: int) -> Replay:
    """Mark the newest transition of each of n environments as the last of its episode."""
    newest = (jnp.asarray(written) - 1 - jnp.arange(n)) % replay.capacity
    flags = replay.rows[newest, -1]
    flags = jnp.where(_has(replay.rows[newest], ENDED), flags, flags + ENDED)
    return dataclasses.replace(replay, rows=replay.rows.at[newest, -1].set(flags))


def prioritize(replay: Replay, index: Array, error: Array, exponent: float) -> Replay:
    """Set the priorities of drawn transitions from their TD errors."""
    weight = (jnp.abs(error) + 1e-3) ** exponent
    largest = jnp.maximum(replay.largest, jnp.max(weight))
    return dataclasses.replace(_set(replay, index, weight), largest=largest)


def with_exponent(replay: Replay, old: float, new: float) -> Replay:
    """The memory with the priorities that it would have with another exponent.

    From an exponent of 0, which forgets the errors, all transitions have the largest priority.
    """
    ratio = 1.0 if old == 0 else new / old
    priority = jnp.where(replay.priority > 0, replay.priority**ratio, 0)
    sums, largest = jnp.sum(priority, -1), replay.largest**ratio
    return dataclasses.replace(replay, priority=priority, sums=sums, largest=largest)


def _set(replay: Replay, index: Array, weight: Array) -> Replay:
    side = replay.priority.shape[1]
    index, weight = _twice(index, weight)
    block = index // side
    priority = replay.priority.at[block, index % side].set(weight)
    sums = replay.sums.at[block].set(jnp.sum(priority[block], -1))
    return dataclasses.replace(replay, priority=priority, sums=sums)


def _twice(index: Array, new: Array) -> tuple[Array, Array]:
    """A single write made twice: XLA would fuse one into its readers, and copy the array."""
    if len(index) > 1:
        return index, new
    return jnp.concatenate([index, index]), jnp.concatenate([new, new])


def sample(
    replay: Replay,
    key: Array,
    size: int,
    written: ArrayLike,
    discount: ArrayLike,
    n_envs: int = 1,
    n_step: int = 1,
) -> Batch:
    """Draw a batch, one transition from each of `size` equal parts of the priorities' sum.

    Its rewards are sums over up to `n_step` steps, which stop where the episode ends and at the
    newest transition that was written.
    """
    cumulative = jnp.cumsum(replay.sums)
    u = (jnp.arange(size) + jax.random.uniform(key, (size,))) * (cumulative[-1] / size)
    block, _ = categorical.search_runs(replay.sums, u)
    rest = u - (cumulative - replay.sums)[block]
    where, weight = categorical.search_runs(replay.priority[block], rest)
    index = block * replay.priority.shape[1] + where
    first = replay.rows[index]
    reward, last, at, last_index = first[:, -2], first, index, index
    factor = jnp.full(index.shape, discount, jnp.float32)
    age = (jnp.asarray(written) - 1 - index) % replay.capacity
    for k in range(1, n_step):
        continues = ~_has(last, ENDED) & (age >= k * n_envs)
        at = (at + n_envs) % replay.capacity
        following = replay.rows[at]
        reward = reward + jnp.where(continues, factor * following[:, -2], 0)
        factor = jnp.where(continues, factor * discount, factor)
        last = jnp.where(continues[:, None], following, last)
        last_index = jnp.where(continues, at, last_index)
        age = jnp.where(continues, age, -1)
    factor = jnp.where(_has(last, TERMINATED), 0, factor)
    observation, _, action = replay.columns(first)
    following_observation = replay.columns(last)[1]
    if replay.observations is not None:
        observation = replay.observations[index, 0]
        following_observation = replay.observations[last_index, 1]
    mask = None
    if replay.masks is not None:
        mask = jnp.unpackbits(replay.masks[last_index], 1, count=replay.mask_size).astype(bool)
    probability = weight / cumulative[-1]
    drawn = observation, action, reward, following_observation, factor, index, probability
    return Batch(*drawn, mask)


def _has(rows: Array, flag: int) -> Array:
    return (rows[:, -1].astype(jnp.int32) & flag) != 0


def importance(batch: Batch, written: ArrayLike, capacity: int, beta: ArrayLike) -> Array:
    """(size P(i))^-beta, scaled so that the largest of the batch is one."""
    size = jnp.minimum(jnp.asarray(written), capacity).astype(jnp.float32)
    weight = (size * batch.probability) ** -jnp.asarray(beta)
    return weight / jnp.max(weight)
