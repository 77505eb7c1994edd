"""Regularised maxima of the rows of a matrix of action values, with the actions that are used.

Where the entropic index q exceeds 1, a policy uses no action whose value is below the largest by
alpha/(q - 1) or more.  Of a row with thousands of actions these are few, as a rule: they are found
from the maxima of short blocks of the row, and the rest of the work is done for them alone.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from tsallax.planning.accelerator.device_sweep import entropy_bonus, regularized_maximum
from tsallax.regularizer import Hard, Regularizer

WIDE = 1024
"""Actions from which a row is searched for those that a policy can use."""
BLOCK = 16
"""Actions of a block, of which the maximum is taken first."""
SHARE = 8
"""The search is given up where more than one in SHARE blocks of a row has to be looked at."""


class RowMaxima(NamedTuple):
    """max_p <p, q> + alpha Omega(p) along the last axis, and the p that attains it."""

    value: Array  # 0 for a row without actions, NaN for one with NaN
    used: Array  # the number of actions in use
    weights: Array  # (..., size): the first positive entries of p, filled up with 0
    actions: Array  # (..., size): their places
    bonus: Array  # alpha Omega(p)


def row_maxima(regularizer: Regularizer, q: Array, size: int) -> RowMaxima:
    """The regularised maximum of every row, and a list of up to `size` actions that it uses.

    Entries of -inf are left out.  The list of a hard maximum has one action, whatever `size` is.
    """
    if isinstance(regularizer, Hard):
        top, actions = largest(q)
        has_some = top != -jnp.inf
        value = jnp.where(has_some, top, 0.0)[..., 0]
        used = has_some.astype(jnp.int32)[..., 0]
        return RowMaxima(value, used, has_some.astype(q.dtype), actions, jnp.zeros_like(value))
    if q.shape[-1] < WIDE or regularizer.q <= 1.0:
        return _all_actions(regularizer, q, size)
    blocks = _in_blocks(q)
    tops = jnp.max(blocks, axis=-1)
    top = jnp.max(tops, axis=-1, keepdims=True)
    reach = regularizer.alpha / (regularizer.q - 1.0) * (1.0 + 1e-6)
    near = (tops >= top - reach) & (top > -jnp.inf)
    most = max(near.shape[-1] // SHARE, 1)

    def few(_: None) -> RowMaxima:
        at = first_places(near, most)
        inside = at < near.shape[-1]
        at = jnp.where(inside, at, 0)[..., None]
        chosen = jnp.where(inside[..., None], jnp.take_along_axis(blocks, at, axis=-2), -jnp.inf)
        flat = (*q.shape[:-1], most * BLOCK)
        found = _all_actions(regularizer, chosen.reshape(flat), size)
        places = (at * BLOCK + jnp.arange(BLOCK, dtype=jnp.int32)).reshape(flat)
        value = jnp.where(jnp.isnan(top[..., 0]), jnp.nan, found.value)
        actions = jnp.take_along_axis(places, found.actions, axis=-1)
        actions = jnp.where(found.weights > 0.0, actions, 0)
        return found._replace(value=value, actions=actions)

    def all_of_them(_: None) -> RowMaxima:
        return _all_actions(regularizer, q, size)

    crowded = jnp.any(jnp.sum(near, axis=-1, dtype=jnp.int32) > most)
    found: RowMaxima = lax.cond(crowded, all_of_them, few, None)
    return found


def _all_actions(regularizer: Regularizer, q: Array, size: int) -> RowMaxima:
    p, value = regularized_maximum(regularizer, q)
    used = p > 0.0
    actions = largest(p)[1] if size == 1 else first_places(used, size)
    weights = jnp.take_along_axis(p, jnp.minimum(actions, p.shape[-1] - 1), axis=-1)
    weights = jnp.where(actions < p.shape[-1], weights, 0.0)
    return RowMaxima(
        value,
        jnp.sum(used, axis=-1, dtype=jnp.int32),
        weights,
        jnp.where(weights > 0.0, actions, 0),
        entropy_bonus(regularizer, p),
    )


def largest(x: Array) -> tuple[Array, Array]:
    """The largest entry of each row, and its first place; on a CPU far quicker than `argmax`."""
    if x.shape[-1] >= WIDE:
        blocks = _in_blocks(x)
        top, block = largest(jnp.max(blocks, axis=-1))
        _, place = largest(jnp.take_along_axis(blocks, block[..., None], axis=-2)[..., 0, :])
        return top, jnp.minimum(block * BLOCK + place, x.shape[-1] - 1)
    top = jnp.max(x, axis=-1, keepdims=True)
    places = jnp.arange(x.shape[-1], dtype=jnp.int32)
    return top, jnp.min(jnp.where(x == top, places, x.shape[-1] - 1), axis=-1, keepdims=True)


def first_places(chosen: Array, size: int) -> Array:
    """The places of the first `size` true entries of each row, filled up with its length.

    By a running count and a search in it, where `lax.top_k` would sort the rows on a CPU.
    """
    length = chosen.shape[-1]
    count = jnp.cumsum(chosen.astype(jnp.int32), axis=-1).reshape(-1, length)
    wanted = jnp.arange(1, size + 1, dtype=jnp.int32)
    at = jax.vmap(lambda row: jnp.searchsorted(row, wanted))(count).astype(jnp.int32)
    return at.reshape(*chosen.shape[:-1], size)


def _in_blocks(q: Array) -> Array:
    """Each row as blocks (..., n, BLOCK), filled up with -inf."""
    n = -(-q.shape[-1] // BLOCK)
    padding = [(0, 0)] * (q.ndim - 1) + [(0, n * BLOCK - q.shape[-1])]
    return jnp.pad(q, padding, constant_values=-jnp.inf).reshape(*q.shape[:-1], n, BLOCK)
