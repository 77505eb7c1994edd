"""Hard, soft and sparse maxima of rows, chosen row by row, in one pass over memory on a GPU.

XLA makes a kernel of each step of Newton's method and of each regulariser; here a block of threads
keeps a row in registers, so that the row is read once whatever happens to it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

WORDS = ("hard", "soft", "sparse")
LONGEST = 16_384
"""The longest row that is kept in registers."""


def row_values(q: Array, which: Array, alpha: Array, interpret: bool = False) -> Array:
    """value(q) of each row of q (rows, n) for WORDS[which], a number each, and alpha."""
    out = jax.ShapeDtypeStruct((len(q), 1), q.dtype)
    kernel = partial(_value_kernel, q.shape[1])
    return _call(kernel, q, which, alpha, out, 1, interpret)[:, 0]


def row_policies(q: Array, which: Array, alpha: Array, interpret: bool = False) -> Array:
    """policy(q) of each row of q (rows, n) for WORDS[which], a number each, and alpha."""
    width = pl.next_power_of_2(q.shape[1])
    out = jax.ShapeDtypeStruct((len(q), width), q.dtype)
    kernel = partial(_policy_kernel, q.shape[1])
    return _call(kernel, q, which, alpha, out, width, interpret)[:, : q.shape[1]]


def _call(
    kernel: Any, q: Array, which: Array, alpha: Array, out: Any, width: int, interpret: bool
) -> Array:
    rows, n = q.shape
    block = pl.next_power_of_2(n)
    one = pl.BlockSpec((1,), lambda i: (0,))
    result: Array = pl.pallas_call(
        kernel,
        out_shape=out,
        grid=(rows,),
        in_specs=[one, one, pl.BlockSpec((1, block), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, width), lambda i: (i, 0)),
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=min(4, pl.cdiv(block, 256))),
    )(which.reshape(1).astype(jnp.int32), alpha.reshape(1).astype(q.dtype), q)
    return result


def _value_kernel(n: int, which_ref: Any, alpha_ref: Any, q_ref: Any, out_ref: Any) -> None:
    which, alpha, top, x = _load(n, which_ref, alpha_ref, q_ref)
    soft = jnp.log(jnp.sum(jnp.exp(x)))
    p, tau = _sparse(jnp.maximum(x, -1.0))
    sparse = tau + 0.5 + 0.5 * jnp.sum(p * p)
    bonus = jnp.where(which == 0, 0.0, jnp.where(which == 1, soft, sparse))
    out_ref[...] = jnp.full((1, 1), top + alpha * jnp.maximum(bonus, 0.0), out_ref.dtype)


def _policy_kernel(n: int, which_ref: Any, alpha_ref: Any, q_ref: Any, out_ref: Any) -> None:
    which, _, _, x = _load(n, which_ref, alpha_ref, q_ref)
    soft = jnp.exp(x)
    soft = soft / jnp.sum(soft)
    sparse, _ = _sparse(jnp.maximum(x, -1.0))
    place = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    first = jnp.min(jnp.where(x == 0.0, place, n))
    hard = (place == first).astype(x.dtype)
    out_ref[...] = jnp.where(which == 0, hard, jnp.where(which == 1, soft, sparse))


def _load(n: int, which_ref: Any, alpha_ref: Any, q_ref: Any) -> tuple[Array, Array, Array, Array]:
    """which, alpha, max q and (q - max q)/alpha, with -inf beyond the row's end."""
    which, alpha = which_ref[0], alpha_ref[0]
    q = q_ref[...]
    q = jnp.where(lax.broadcasted_iota(jnp.int32, q.shape, 1) < n, q, -jnp.inf)
    top = jnp.max(q)
    return which, alpha, top, (q - top) / alpha


def _sparse(x: Array) -> tuple[Array, Array]:
    """sparsemax of a row with maximum 0, clipped at -1, and its threshold, by Michelot's method."""

    def goes_on(state: Any) -> Any:
        return ~state[2]

    def step(state: Any) -> Any:
        tau, count, _ = state
        u = x - tau
        mass = jnp.sum(jnp.maximum(u, 0.0))
        size = jnp.sum((u > 0.0).astype(x.dtype))
        return tau + jnp.maximum((mass - 1.0) / size, 0.0), size, size == count

    tau, _, _ = lax.while_loop(goes_on, step, (jnp.float32(-1.0), jnp.float32(0.0), False))
    return jnp.maximum(x - tau, 0.0), tau
