"""Adam, with a learning rate that may differ between agents and over time.

Where a gradient is zero but for a few rows of a table, `update_rows` makes the same step from those
rows alone: the moments of all rows decay, and no gradient as large as the table is made.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """The moments of the gradient, shaped like the parameters, and the number of updates."""

    mean: Any
    square: Any
    count: Array  # type: ignore[assignment]


class StepScale(NamedTuple):
    """The step size and the smoothing term of an update, corrected for the bias of the moments."""

    size: Array
    epsilon: Array


def init(parameters: Any) -> Adam:
    """Moments of zero for these parameters."""
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return Adam(zeros, jax.tree.map(jnp.copy, zeros), jnp.zeros((), jnp.int32))


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
    table: Array, mean: Array, square: Array, index: Array, gradient: Array, scale: StepScale
) -> tuple[Array, Array, Array]:
    """A table and its moments after a step, for a gradient of the rows `index`, already summed."""
    p, m, v = table[index], mean[index], square[index]
    # the rows are read before the table is written: otherwise the compiler copies the table
    (p, m, v), (table, mean, square) = lax.optimization_barrier(((p, m, v), (table, mean, square)))
    m = BETA1 * m + (1 - BETA1) * gradient
    v = BETA2 * v + (1 - BETA2) * gradient * gradient
    p = _move(p, m, v, scale)
    mean, square = BETA1 * mean, BETA2 * square
    table = _move(table, mean, square, scale)
    return table.at[index].set(p), mean.at[index].set(m), square.at[index].set(v)


def scatter_rows(index: Array, gradient: Any, n: int) -> Any:
    """The gradient of a table of n rows, from entries (B, ...) that are each of the row `index`."""
    hot = (jnp.arange(n)[:, None] == index[None, :]).astype(jnp.float32)
    return jax.tree.map(lambda g: hot @ g, gradient)


def sum_rows(index: Array, gradient: Any) -> Any:
    """The gradient of each row: the sum over all entries with its index, in a fixed order."""
    same = (index[:, None] == index[None, :]).astype(jnp.float32)
    return jax.tree.map(lambda g: jnp.matmul(same, g, precision=lax.Precision.HIGHEST), gradient)


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
