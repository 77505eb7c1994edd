"""Adam, with a learning rate that may differ between agents and over time.

Where a gradient is zero but for a few rows of a table, `update_rows` makes the same step from those
rows alone. It writes the moments of these rows only: the others decay by known factors, which are
applied when they are read. A gradient as large as the table is made for batches that are larger
than the table only.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from tsallax.deep import adam_pallas

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
SETTLED = 200
"""The age from which a row does not move any more: all its later steps together, which decrease by
BETA1/sqrt(BETA2), would be less than 1e-7 of the learning rate."""


class Adam(NamedTuple):
    """The moments of the gradient, shaped like the parameters, and the number of updates."""

    mean: Any
    square: Any
    count: Array  # type: ignore[assignment]
    written: Array | None = None
    """The update that wrote the moments of each row of the output layer; None: always the last."""


class StepScale(NamedTuple):
    """The step size and the smoothing term of an update, corrected for the bias of the moments."""

    size: Array
    epsilon: Array


def init(parameters: Any, rows: int | None = None) -> Adam:
    """Moments of zero for these parameters; `rows` of the output layer are written one by one."""
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    written = None if rows is None else jnp.zeros(rows, jnp.int32)
    return Adam(zeros, jax.tree.map(jnp.copy, zeros), jnp.zeros((), jnp.int32), written)


def step_scale(count: Array, rate: ArrayLike) -> StepScale:
    """The scale of update number `count`, counted from 1."""
    n = count.astype(jnp.float32)
    bias = jnp.sqrt(1 - BETA2**n)
    return StepScale(jnp.asarray(rate) * bias / (1 - BETA1**n), EPSILON * bias)


def update(state: Adam, parameters: Any, gradient: Any, rate: ArrayLike) -> tuple[Any, Adam]:
    """The parameters after a step against the gradient."""
    count = state.count + 1
    p, m, v = update_dense(parameters, state.mean, state.square, gradient, step_scale(count, rate))
    return p, Adam(m, v, count)


def update_dense(
    parameters: Any, mean: Any, square: Any, gradient: Any, scale: StepScale
) -> tuple[Any, Any, Any]:
    """Parameters and moments after a step."""
    mean = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, mean, gradient)
    square = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, square, gradient)
    moved = jax.tree.map(lambda p, m, v: _move(p, m, v, scale), parameters, mean, square)
    return moved, mean, square


def update_rows(
    table: Array,
    mean: Array,
    square: Array,
    age: Array,
    index: Array,
    gradient: Array,
    scale: StepScale,
) -> tuple[Array, Array, Array]:
    """A table and its moments after a step, for a gradient of the rows `index`, already summed.

    `age` is the number of updates, this one included, since the one that wrote a row's moments.
    """
    age = age.reshape(age.shape + (1,) * (table.ndim - 1))
    p, m, v = table[index], *decayed(mean[index], square[index], age[index])
    # the rows are read before the table is written: otherwise the compiler copies the table
    (p, m, v), (table, mean, square) = lax.optimization_barrier(((p, m, v), (table, mean, square)))
    m = m + (1 - BETA1) * gradient
    v = v + (1 - BETA2) * gradient * gradient
    p = _move(p, m, v, scale)
    table = move_rows(table, mean, square, age, scale)
    return table.at[index].set(p), mean.at[index].set(m), square.at[index].set(v)


def move_rows(table: Array, mean: Array, square: Array, age: Array, scale: StepScale) -> Array:
    """A table after a step without a gradient, for ages that have its number of dimensions.

    On a GPU the rows that are settled are not read.
    """

    def plain(p: Array, m: Array, v: Array, age: Array, *scale: Array) -> Array:
        return jnp.where(age < SETTLED, moved(p, m, v, age, *scale), p)

    given = table, mean, square, age, *scale
    if table.ndim != 2:
        return plain(*given)
    fused = partial(adam_pallas.move_rows, moved, SETTLED)
    result: Array = lax.platform_dependent(*given, cuda=fused, default=plain)
    return result


def moved(p: Array, m: Array, v: Array, age: Array, *scale: Array) -> Array:
    """Parameters after a step without a gradient, from the moments that are so old."""
    return _move(p, *decayed(m, v, age), StepScale(*scale))


def decayed(mean: Array, square: Array, age: Array) -> tuple[Array, Array]:
    """The moments of rows a number of updates after they were written, all without a gradient."""
    n = age.astype(jnp.float32)
    return jnp.exp(math.log(BETA1) * n) * mean, jnp.exp(math.log(BETA2) * n) * square


def scatter_rows(
    index: Array, gradient: Any, n: int, precision: lax.Precision | None = None
) -> Any:
    """The gradient of a table of n rows, from entries (B, ...) that are each of the row `index`."""
    return _sum_where(jnp.arange(n)[:, None] == index[None, :], gradient, precision)


def sum_rows(index: Array, gradient: Any, n: int) -> Any:
    """The gradient of each entry's row, of a table of n rows: the sum over all entries of that row.

    The order of the sum is fixed, and no array has more than n * B or B * B numbers.
    """
    exact = lax.Precision.HIGHEST
    if n < len(index):
        return jax.tree.map(lambda g: g[index], scatter_rows(index, gradient, n, exact))
    return _sum_where(index[:, None] == index[None, :], gradient, exact)


def _sum_where(chosen: Array, gradient: Any, precision: lax.Precision | None) -> Any:
    """For each row of `chosen` the sum of the entries (B, ...) that it chooses."""
    ones = chosen.astype(jnp.float32)
    return jax.tree.map(lambda g: jnp.matmul(ones, g, precision=precision), gradient)


def _move(p: Array, m: Array, v: Array, scale: StepScale) -> Array:
    return p - scale.size * m / (jnp.sqrt(v) + scale.epsilon)


def clip_by_norm(gradient: Any, limit: float | None) -> Any:
    """The gradient scaled down to a norm of at most `limit`; None leaves it as it is."""
    if limit is None:
        return gradient
    factor = clip_factor(limit, sum(jnp.sum(g * g) for g in jax.tree.leaves(gradient)))
    return jax.tree.map(lambda g: factor * g, gradient)


def clip_factor(limit: float, squares: ArrayLike) -> Array:
    """The factor that brings a gradient, whose squares sum to `squares`, to a norm of `limit`."""
    return jnp.minimum(1, limit / jnp.sqrt(jnp.maximum(squares, 1e-24)))
