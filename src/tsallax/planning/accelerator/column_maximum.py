"""Regularised maxima of the columns of a matrix of action values, in one pass over it on a GPU.

The matrix is (A, n), one column for each state, as `stored_sweep` computes it: neighbouring threads
take neighbouring states, and a column stays in registers while its threshold is found.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from tsallax.planning.accelerator.device_sweep import regularized_maximum
from tsallax.regularizer import Hard, Regularizer, Soft, Sparse

MAX_ACTIONS = 4096
"""The longest column that is kept in registers."""
ENTRIES = 4096
"""Numbers of the matrix that one block of threads holds."""


def column_maxima(regularizer: Regularizer, q: Array) -> tuple[Array, Array]:
    """max_p <p, q> + alpha Omega(p) of each column, and the number of actions that p uses.

    Entries of -inf are left out; a column of them has the value 0 and uses none.
    """
    if q.shape[0] > MAX_ACTIONS or type(regularizer) not in (Hard, Soft, Sparse):
        return plain_column_maxima(regularizer, q)
    found: tuple[Array, Array] = lax.platform_dependent(
        q, cuda=partial(fused_column_maxima, regularizer),
        default=partial(plain_column_maxima, regularizer),
    )  # fmt: skip
    return found


def plain_column_maxima(regularizer: Regularizer, q: Array) -> tuple[Array, Array]:
    """`column_maxima` for any regulariser and device; NaN in a column makes its value NaN.

    A hard maximum is one pass without its policy.
    """
    if isinstance(regularizer, Hard):
        top = jnp.max(q, axis=0)
        empty = top == -jnp.inf
        return jnp.where(empty, 0.0, top), jnp.where(empty, 0, 1).astype(jnp.int32)
    p, value = regularized_maximum(regularizer, q.T)
    return value, jnp.sum(p > 0.0, axis=-1, dtype=jnp.int32)


def fused_column_maxima(
    regularizer: Regularizer, q: Array, interpret: bool = False
) -> tuple[Array, Array]:
    """`column_maxima` for a hard, soft or sparse regulariser, by a kernel for GPUs."""
    actions, n = q.shape
    padded = pl.next_power_of_2(actions)
    width = max(ENTRIES // padded, 1)
    blocks = pl.cdiv(n, width)
    value, used = pl.pallas_call(
        partial(_kernel, type(regularizer).name, actions, n, (padded, width)),
        grid=(blocks,),
        out_shape=[
            jax.ShapeDtypeStruct((blocks * width,), dtype) for dtype in (q.dtype, jnp.int32)
        ],
        out_specs=[pl.BlockSpec((width,), lambda i: (i,))] * 2,
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=1),
        interpret=interpret,
    )(jnp.asarray(regularizer.alpha, q.dtype).reshape(1), q)
    return value[:n], used[:n]


def _kernel(
    name: str, actions: int, n: int, shape: tuple[int, int],
    alpha_ref: Any, q_ref: Any, value_ref: Any, used_ref: Any,
) -> None:  # fmt: skip
    first = pl.program_id(0) * shape[1]
    row = lax.broadcasted_iota(jnp.int32, shape, 0)
    column = lax.broadcasted_iota(jnp.int32, shape, 1) + first
    here = (row < actions) & (column < n)
    at = (jnp.minimum(row, actions - 1), jnp.minimum(column, n - 1))
    q = triton.load(q_ref.at[at], mask=here, other=-jnp.inf)
    alpha = alpha_ref[0]
    top = jnp.max(q, axis=0)
    empty = top == -jnp.inf
    top = jnp.where(empty, 0.0, top)
    x = jnp.where(q == -jnp.inf, -jnp.inf, q - top[None, :])
    if name == "hard":
        bonus, used = jnp.zeros_like(top), jnp.ones_like(top)
    elif name == "soft":
        density = jnp.exp(x / alpha)
        bonus = alpha * jnp.log(jnp.where(empty, 1.0, jnp.sum(density, axis=0)))
        used = jnp.sum((density > 0.0).astype(q.dtype), axis=0)
    else:
        bonus, used = _sparse(jnp.where(empty[None, :], 0.0, x / alpha))
        bonus = alpha * bonus
    value_ref[...] = top + jnp.where(empty, 0.0, bonus)
    used_ref[...] = jnp.where(empty, 0.0, used).astype(jnp.int32)


def _sparse(x: Array) -> tuple[Array, Array]:
    """spmax of each column with maximum 0, by Michelot's method, and the size of its support."""
    x = jnp.maximum(x, -1.0)

    def step(state: Any) -> Any:
        tau, count, _ = state
        excess = x - tau[None, :]
        mass = jnp.sum(jnp.maximum(excess, 0.0), axis=0)
        size = jnp.sum((excess > 0.0).astype(x.dtype), axis=0)
        tau = tau + jnp.maximum((mass - 1.0) / size, 0.0)
        return tau, size, jnp.max(jnp.where(size == count, 0, 1)) == 0

    start = (jnp.full(x.shape[1:], -1.0, x.dtype), jnp.zeros(x.shape[1:], x.dtype), False)
    tau, size, _ = lax.while_loop(lambda state: jnp.logical_not(state[2]), step, start)
    p = jnp.maximum(x - tau[None, :], 0.0)
    return jnp.sum(p * x, axis=0) + 0.5 * (1.0 - jnp.sum(p * p, axis=0)), size
