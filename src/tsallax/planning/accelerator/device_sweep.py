"""What sweeps in JAX return, and how they are spread over blocks of indices and over devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from tsallax.regularizer import Regularizer
from tsallax.time_limits import check_deadline

AXIS = "states"
"""The name of the axis of devices over which states are divided."""


class DeviceSweep(NamedTuple):
    """Uv and what a certificate needs to know of it; the numbers are arrays without axes."""

    updated: Array  # Uv
    policy: Any  # greedy in v
    low: Array  # min(Uv - v)
    high: Array  # max(Uv - v)
    size: Array  # the larger of max|v| and max|Uv|
    valid: Array  # whether every pair has a distribution, finite rewards and a finite value
    pairs_used: Array  # pairs with a positive probability
    max_support: Array  # the largest number of actions in use in a state


class Survey(NamedTuple):
    """What holds for a model whatever v is."""

    terminal: Array  # which states have no action
    ends: bool  # whether an episode can end
    reward: float  # a bound on |r(s, a)|


class SweepModel(Protocol):
    """An MDP whose sweeps run in JAX."""

    n_states: int
    n_pairs: int
    width: int  # the largest number of actions of a state
    terms: int  # the largest number of summands of an expectation
    roundings: int  # of an expectation, in a row: `terms`, and those of the sum that divides p

    @property
    def longest_list(self) -> int:
        """The largest number of actions of every state that a sweep lists."""

    @property
    def survey(self) -> Survey:
        """Which states are terminal, whether episodes end, and a bound on the rewards."""

    def sweep(self, regularizer: Regularizer, v: Array, size: int) -> DeviceSweep:
        """Uv, the policy that is greedy in v, and what is known of them.

        `size` is the length of the lists of actions, where the sweep makes them.
        """

    def compacted(self, policy: Any) -> Any:
        """The policy of a sweep as it is kept for later, or None where it takes much memory."""

    def prepared(self, regularizer: Regularizer, policy: Any, size: int) -> Any:
        """The greedy policy of a sweep, for `follow`; no state uses more than `size` actions."""

    def follow_cost(self, size: int) -> float:
        """The time of `follow` with `size` actions of every state, in sweeps of U.

        Infinity where that would take too much memory.
        """

    def follow(self, policy: Any, v: Array) -> Array:
        """r_pi + alpha Omega(pi) + gamma T_pi v for a policy from `prepared`."""

    def place(self, v: NDArray[Any]) -> Array:
        """v on the device, or on all of them."""

    def refuse(self) -> None:
        """Raise `InvalidInput` where the model is the cause of a value that is not finite."""


def copied(x: NDArray[Any], mesh: Mesh | None) -> Array:
    """An array on JAX's default device, or on every device of a mesh."""
    if mesh is None:
        return jnp.asarray(x)
    everywhere: Array = jax.device_put(x, NamedSharding(mesh, PartitionSpec()))
    return everywhere


def gathered(x: Array) -> NDArray[Any]:
    """An array that may be divided over processes, as a whole on the host."""
    if x.is_fully_addressable or x.is_fully_replicated:
        return np.asarray(x)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(x, tiled=True))


@jax.jit
def sweep_numbers(v: Array, updated: Array, used: Array) -> tuple[Array, ...]:
    """The numbers of a `DeviceSweep`; `used` is the number of actions in use in each state.

    The change of terminal states, which use none, does not count.
    """
    change = updated - v
    return (
        jnp.min(jnp.where(used > 0, change, jnp.inf)),
        jnp.max(jnp.where(used > 0, change, -jnp.inf)),
        jnp.maximum(jnp.max(jnp.abs(v)), jnp.max(jnp.abs(updated))),
        jnp.all(jnp.isfinite(updated)),
        jnp.sum(used.astype(v.dtype)),
        jnp.max(used),
    )


def regularized_maximum(regularizer: Regularizer, q: Array) -> tuple[Array, Array]:
    """The greedy policy p and max_p <p, q> + alpha Omega(p) along the last axis; -inf is left out.

    The maximum is computed from p: an error of p counts only to second order.  A row without
    actions has p = 0 and the value 0.
    """
    missing = q == -jnp.inf
    empty = jnp.all(missing, axis=-1, keepdims=True)
    p = jnp.where(empty, 0.0, regularizer.policy(jnp.where(empty, 0.0, q)))
    top = jnp.where(empty, 0.0, jnp.max(q, axis=-1, keepdims=True))
    mean = jnp.sum(jnp.where(missing, 0.0, p * (q - top)), axis=-1)
    return p, top[..., 0] + (mean + entropy_bonus(regularizer, p))


def entropy_bonus(regularizer: Regularizer, p: Array) -> Array:
    """alpha Omega(p) along the last axis, 0 for a row without actions."""
    some = jnp.any(p > 0.0, axis=-1)
    return jnp.where(some, regularizer.alpha * regularizer.entropy(p), 0.0)


def in_parts(program: Callable[[int], Any], n: int, part: int) -> Any:
    """Arrays over 0, ..., n-1 from program(first), which gives the next `part` entries.

    Between two parts, Ctrl-C and a time limit end the computation.
    """
    if part >= n:
        return program(0)
    found = []
    for first in range(0, n, part):
        check_deadline()
        found.append(jax.block_until_ready(program(first)))
    found[-1] = jax.tree.map(lambda x: x[: n - first], found[-1])
    return jax.tree.map(lambda *x: jnp.concatenate(x), *found)


def over_range(
    function: Callable[[Array], Any],
    n: int,
    block: int,
    mesh: Any = None,
    first: Any = 0,
    count: int | None = None,
) -> Any:
    """function(0, 1, ..., n-1), called with one block of indices at a time.

    With `first` and `count`, only that part of the range; indices above n-1 are taken as n-1.  With
    a mesh every device computes a share of it, and the whole is copied to all.
    """
    index_type = jnp.int32 if n < 2**31 else jnp.int64
    first = jnp.asarray(first, index_type)
    count = n if count is None else count
    parts = 1 if mesh is None else mesh.size
    per_part = -(-count // parts)
    block = min(block, per_part)
    blocks = -(-per_part // block)

    def part(start: Any) -> Any:
        def one(i: Array) -> Any:
            offset = start + i.astype(index_type) * block
            indices = offset + jnp.arange(block, dtype=index_type)
            return function(jnp.minimum(indices, n - 1))

        if blocks == 1:
            out = one(jnp.zeros((), jnp.int32))
            return jax.tree.map(lambda x: x[:per_part], out)
        out = lax.map(jax.checkpoint(one), jnp.arange(blocks, dtype=jnp.int32))
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:per_part], out)

    if mesh is None:
        return part(first)

    def local(first: Array) -> Any:
        return part(first + lax.axis_index(AXIS).astype(index_type) * per_part)

    out = jax.shard_map(
        local, mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec(AXIS), check_vma=False
    )(first)
    everywhere = NamedSharding(mesh, PartitionSpec())
    return jax.tree.map(lambda x: lax.with_sharding_constraint(x[:count], everywhere), out)
