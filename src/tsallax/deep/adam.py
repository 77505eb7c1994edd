"""Adam, with a learning rate that may differ between agents and over time.

Where a gradient is zero but for a few rows of a table, `update_rows` makes the same step from those
rows alone: the moments of all rows fade, and nothing as large as the table is added to them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

MEAN, SQUARE, EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """The moments of the gradient, shaped like the parameters, and the number of updates."""

    mean: Any
    square: Any
    count: Array  # type: ignore[assignment]


class Pace(NamedTuple):
    """The length of a step, with the moments' start at zero made up for."""

    size: Array
    floor: Array


def init(parameters: Any) -> Adam:
    """Moments of zero for these parameters."""
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return Adam(zeros, jax.tree.map(jnp.copy, zeros), jnp.zeros((), jnp.int32))


def pace(count: Array, rate: ArrayLike) -> Pace:
    """That of update number `count`, from one."""
    n = count.astype(jnp.float32)
    bias = jnp.sqrt(1 - SQUARE**n)
    return Pace(jnp.asarray(rate) * bias / (1 - MEAN**n), EPSILON * bias)


def update(state: Adam, parameters: Any, gradient: Any, rate: ArrayLike) -> tuple[Any, Adam]:
    """The parameters after a step against the gradient."""
    count = state.count + 1
    p, m, v = update_dense(parameters, state.mean, state.square, gradient, pace(count, rate))
    return p, Adam(m, v, count)


def update_dense(
    parameters: Any, mean: Any, square: Any, gradient: Any, pace: Pace
) -> tuple[Any, Any, Any]:
    """Parameters and moments after a step."""
    mean = jax.tree.map(lambda m, g: MEAN * m + (1 - MEAN) * g, mean, gradient)
    square = jax.tree.map(lambda v, g: SQUARE * v + (1 - SQUARE) * g * g, square, gradient)
    moved = jax.tree.map(lambda p, m, v: _move(p, m, v, pace), parameters, mean, square)
    return moved, mean, square


def update_rows(
    table: Array, mean: Array, square: Array, index: Array, gradient: Array, pace: Pace
) -> tuple[Array, Array, Array]:
    """A table and its moments after a step, for a gradient of the rows `index`, already summed."""
    p, m, v = table[index], mean[index], square[index]
    # first the rows, then the table: otherwise the compiler keeps a copy of the old table
    (p, m, v), (table, mean, square) = lax.optimization_barrier(((p, m, v), (table, mean, square)))
    m = MEAN * m + (1 - MEAN) * gradient
    v = SQUARE * v + (1 - SQUARE) * gradient * gradient
    p = _move(p, m, v, pace)
    mean, square = MEAN * mean, SQUARE * square
    table = _move(table, mean, square, pace)
    return table.at[index].set(p), mean.at[index].set(m), square.at[index].set(v)


def spread(index: Array, gradient: Any, n: int) -> Any:
    """The gradient of a table of n rows, from entries (B, ...) that are each of the row `index`."""
    hot = (jnp.arange(n)[:, None] == index[None, :]).astype(jnp.float32)
    return jax.tree.map(lambda g: hot @ g, gradient)


def sum_rows(index: Array, gradient: Any) -> Any:
    """The gradient of each row: the sum over all entries with its index, in a fixed order."""
    same = (index[:, None] == index[None, :]).astype(jnp.float32)
    return jax.tree.map(lambda g: jnp.matmul(same, g, precision=lax.Precision.HIGHEST), gradient)


def _move(p: Array, m: Array, v: Array, pace: Pace) -> Array:
    return p - pace.size * m / (jnp.sqrt(v) + pace.floor)


def clipped(gradient: Any, limit: float | None) -> Any:
    """The gradient scaled down to a norm of at most `limit`, if there is one."""
    if limit is None:
        return gradient
    factor = shrink(limit, sum(jnp.sum(g * g) for g in jax.tree.leaves(gradient)))
    return jax.tree.map(lambda g: factor * g, gradient)


def shrink(limit: float, squares: ArrayLike) -> Array:
    """The factor that brings a gradient, whose squares sum to `squares`, to a norm of `limit`."""
    return jnp.minimum(1, limit / jnp.sqrt(jnp.maximum(squares, 1e-24)))
