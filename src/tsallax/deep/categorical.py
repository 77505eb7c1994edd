"""Draws of an index by weights: the first whose cumulative sum exceeds a uniform number."""

import jax
import jax.numpy as jnp
from jax import Array

RUN = 16
"""The number of weights that are added up before they are searched one by one."""


def sample(key: Array, p: Array) -> Array:
    """A random index from each distribution p (..., n); never one of probability zero."""
    cumulative = jnp.cumsum(p, -1)
    u = jax.random.uniform(key, p.shape[:-1]) * cumulative[..., -1]
    return search(p, cumulative, u)


def search(weight: Array, cumulative: Array, u: Array) -> Array:
    """The first index of positive weight whose cumulative sum exceeds u.

    Cumulative sums are rounded and may rise where the weight is zero: no such index is returned.
    """
    indices = jnp.arange(weight.shape[-1])
    last = jnp.max(jnp.where(weight > 0, indices, 0), -1, keepdims=True)
    return jnp.min(jnp.where((weight > 0) & (cumulative > u[..., None]), indices, last), -1)


def search_runs(weight: Array, u: Array) -> tuple[Array, Array]:
    """As `search` for the cumulative sums of weights (n,), or of a row (len(u), n) for each u.

    Returned are the indices and their weights.

    It finds a run of RUN weights first and then one of its weights, so that few sums are made and
    compared. They do not decrease within a run: the first run whose last sum exceeds u holds the
    first sum that does.
    """
    padded = jnp.pad(weight, [(0, 0)] * (weight.ndim - 1) + [(0, -weight.shape[-1] % RUN)])
    runs = padded.reshape(*weight.shape[:-1], -1, RUN)
    total = runs[..., 0]
    for i in range(1, RUN):
        total = total + runs[..., i]
    before = jnp.concatenate([jnp.zeros_like(total[..., :1]), jnp.cumsum(total, -1)[..., :-1]], -1)
    run = search(total, before + total, u)
    at = (run,) if weight.ndim == 1 else (jnp.arange(len(u)), run)
    inside = runs[at]
    where = search(inside, before[at][:, None] + jnp.cumsum(inside, 1), u)
    return run * RUN + where, jnp.take_along_axis(inside, where[:, None], 1)[:, 0]
