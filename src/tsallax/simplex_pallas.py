"""Hard, soft and sparse maxima of the rows of a matrix in one pass over memory on a GPU (Pallas).

XLA makes a kernel of each step of Newton's method and of each regulariser; here a block of threads
keeps a row in registers, so that the row is read once. Results are those of `tsallax.regularizer`
up to rounding, NaN for invalid rows included.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

NAMES = ("hard", "soft", "sparse")
"""Names of the regularisers by their index `which`."""
MAX_ROW_LENGTH = 16_384
"""The longest row that is kept in registers."""


def row_values(q: Array, which: Array, alpha: Array, interpret: bool = False) -> Array:
    """value(q) of each row of q (rows, n), float32, for the regulariser NAMES[which] and alpha."""
    out = jax.ShapeDtypeStruct((len(q), 1), q.dtype)
    kernel = partial(_value_kernel, q.shape[1])
    return _call(kernel, q, which, alpha, out, 1, interpret)[:, 0]


def row_policies(q: Array, which: Array, alpha: Array, interpret: bool = False) -> Array:
    """policy(q) of each row of q (rows, n), float32, for the regulariser NAMES[which] and alpha."""
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
    total = jnp.sum(jnp.exp(x))
    tau, delta, p = _sparsemax(jnp.maximum(x, -1.0))
    sparse = ((tau + 1.0) + delta) - 0.5 * jnp.sum(p * (1.0 - p))
    bonus = jnp.where(which == 0, 0.0, jnp.where(which == 1, jnp.log(total), sparse))
    value = top + alpha * jnp.maximum(bonus, 0.0) + _nan_or_zero(total)
    out_ref[...] = jnp.full((1, 1), value, out_ref.dtype)


def _policy_kernel(n: int, which_ref: Any, alpha_ref: Any, q_ref: Any, out_ref: Any) -> None:
    which, _, _, x = _load(n, which_ref, alpha_ref, q_ref)
    soft = jnp.exp(x)
    total = jnp.sum(soft)
    _, _, sparse = _sparsemax(jnp.maximum(x, -1.0))
    column = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    first = jnp.min(jnp.where(x == 0.0, column, n))
    hard = (column == first).astype(x.dtype)
    policy = jnp.where(which == 0, hard, jnp.where(which == 1, soft / total, sparse))
    out_ref[...] = policy + _nan_or_zero(total)


def _load(n: int, which_ref: Any, alpha_ref: Any, q_ref: Any) -> tuple[Array, Array, Array, Array]:
    """which, alpha (1 for hard, NaN if not positive), max q and x = (q - max q)/alpha.

    Beyond the end of the row x is -inf.
    """
    which, alpha = which_ref[0], alpha_ref[0]
    alpha = jnp.where(which == 0, 1.0, jnp.where(alpha > 0.0, alpha, jnp.nan))
    q = q_ref[...]
    q = jnp.where(lax.broadcasted_iota(jnp.int32, q.shape, 1) < n, q, -jnp.inf)
    top = jnp.max(q)
    return which, alpha, top, (q - top) / alpha


def _nan_or_zero(total: Array) -> Array:
    """NaN if the sum of exponentials is NaN, as one entry of the row is then NaN or +inf."""
    return 0.0 * total


def _sparsemax(x: Array) -> tuple[Array, Array, Array]:
    """sparsemax of a row with maximum 0, clipped at -1, by Michelot's method: tau, delta and p.

    The threshold is tau + delta. The last correction delta is rounding and is applied to x - tau
    rather than to tau, which would lose it (see `tsallax.simplex`).
    """

    def step(state: Any) -> Any:
        tau, delta, count, _ = state
        tau = tau + jnp.maximum(delta, 0.0)
        u = x - tau
        mass = jnp.sum(jnp.maximum(u, 0.0))
        size = jnp.sum((u > 0.0).astype(x.dtype))
        return tau, (mass - 1.0) / size, size, size == count

    start = (jnp.float32(-1.0), jnp.float32(0.0), jnp.float32(0.0), False)
    tau, delta, _, _ = lax.while_loop(lambda state: ~state[3], step, start)
    return tau, delta, jnp.maximum((x - tau) - delta, 0.0)
