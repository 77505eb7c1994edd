"""The operators for the rows of a matrix in one pass over memory on a GPU (Pallas with Triton).

XLA makes a kernel of each step of Newton's method. Here a program keeps a block of rows in
registers, so that a row is read once and its distribution written once. Results are those of
`tsallax.simplex` and `tsallax.regularizer` up to rounding, NaN for invalid rows included.

A block of rows is a list of tiles (block of rows, lanes): tile c has the columns c lanes, ...,
(c + 1) lanes - 1. Sums over rows add up the tiles first, and need one reduction across threads. As
the maximum of two numbers on a GPU is the other one if one of them is NaN, `_positive` and
`_at_least` compare and select.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

NAMES = ("hard", "soft", "sparse")
"""Names of the regularisers by their index `which`."""
INDICES = (1.5, 2.0)
"""Entropic indices q that have a kernel."""
MAX_ROW_LENGTH = 32_768
"""The longest row that is kept in registers."""
EPS = float(np.finfo(np.float32).eps)

Tiles = list[Array]


def entropic_values(q: float, z: Array, alpha: Array, interpret: bool = False) -> Array:
    """max_p <p, z> + alpha Omega_q(p) of each row of z (rows, n), float32, for q of INDICES."""
    return _call(partial(_entropic_value, q), z, [alpha.astype(z.dtype)], False, interpret)


def entropic_policies(q: float, z: Array, alpha: Array, interpret: bool = False) -> Array:
    """argmax_p <p, z> + alpha Omega_q(p) of each row of z (rows, n), float32, q of INDICES."""
    return _call(partial(_entropic_policy, q), z, [alpha.astype(z.dtype)], True, interpret)


def row_values(z: Array, which: Array, alpha: Array, interpret: bool = False) -> Array:
    """value(z) of each row of z (rows, n), float32, for the regulariser NAMES[which] and alpha."""
    scalars = [which.astype(jnp.int32), alpha.astype(z.dtype)]
    return _call(_selected_value, z, scalars, False, interpret)


def row_policies(z: Array, which: Array, alpha: Array, interpret: bool = False) -> Array:
    """policy(z) of each row of z (rows, n), float32, for the regulariser NAMES[which] and alpha."""
    scalars = [which.astype(jnp.int32), alpha.astype(z.dtype)]
    return _call(_selected_policy, z, scalars, True, interpret)


class Layout(NamedTuple):
    """Rows of a program, columns of a tile, and warps (of 32 threads) of a program."""

    rows: int
    lanes: int
    warps: int


def layout(rows: int, n: int) -> Layout:
    """The layout of a matrix (rows, n): a thread holds 16 to 64 numbers, a warp up to 1024.

    >>> layout(5000, 100), layout(5000, 2601)
    (Layout(rows=4, lanes=128, warps=1), Layout(rows=1, lanes=512, warps=4))
    """
    warps = min(16, pl.next_power_of_2(pl.cdiv(n, 1024)))
    lanes = min(pl.next_power_of_2(n), 128 * warps)
    width = pl.next_power_of_2(n)
    return Layout(min(max(1, 512 // width), pl.next_power_of_2(rows)), lanes, warps)


def _call(
    kernel: Callable[..., Any], z: Array, scalars: Sequence[Array], is_policy: bool, interpret: bool
) -> Array:
    """kernel(*scalars, tiles) for blocks of rows of z: tiles of policies, or values of rows."""
    rows, n = z.shape
    block, lanes, warps = layout(rows, n)
    width = lanes * pl.cdiv(n, lanes)
    blocks = pl.cdiv(rows, block)
    whole_rows = pl.BlockSpec((block, width), lambda i: (i, 0))

    def like(z: Array, *scalars: Array) -> Array:
        """Its type is that of the result, and tells along which axes of a mesh it varies."""
        return sum(scalars, z if is_policy else z[:, 0]).astype(z.dtype)

    def program(*refs: Any) -> None:
        *scalar_refs, z_ref, out_ref = refs
        row = pl.program_id(0) * block + lax.iota(jnp.int32, block)

        def mask(column: int) -> Array:
            columns = column + lax.broadcasted_iota(jnp.int32, (block, lanes), 1)
            return (columns < n) & (row < rows)[:, None]

        starts = range(0, width, lanes)
        parts = [z_ref.at[:, pl.ds(start, lanes)] for start in starts]
        tiles = [
            triton.load(part, mask=mask(start), other=-math.inf)
            for part, start in zip(parts, starts, strict=True)
        ]
        result = kernel(*(ref[0] for ref in scalar_refs), tiles)
        if not is_policy:
            triton.store(out_ref.at[:], result, mask=row < rows)
            return
        for p, start in zip(result, starts, strict=True):
            triton.store(out_ref.at[:, pl.ds(start, lanes)], p, mask=mask(start))

    result: Array = pl.pallas_call(
        program,
        out_shape=jax.eval_shape(like, z, *scalars),
        grid=(blocks,),
        in_specs=[*(pl.BlockSpec((1,), lambda i: (0,)) for _ in scalars), whole_rows],
        out_specs=whole_rows if is_policy else pl.BlockSpec((block,), lambda i: (i,)),
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
    )(*(x.reshape(1) for x in scalars), z)
    return result


def _entropic_value(q: float, alpha: Array, z: Tiles) -> Array:
    top, x = _shift(z, alpha)
    bonus = _sparse_bonus(x) if q == 2 else _bonus_three_halves(x)
    return top + alpha * _positive(bonus)


def _entropic_policy(q: float, alpha: Array, z: Tiles) -> Tiles:
    _, x = _shift(z, alpha)
    return _sparsemax(x)[2] if q == 2 else _entmax_three_halves(x)


def _selected_value(which: Array, alpha: Array, z: Tiles) -> Array:
    alpha = _positive_or_nan(which, alpha)
    top, x = _shift(z, alpha)
    total = _total(_each(jnp.exp, x))
    bonus = jnp.where(which == 0, 0.0, jnp.where(which == 1, jnp.log(total), _sparse_bonus(x)))
    return top + alpha * _positive(bonus) + _nan_or_zero(total)


def _selected_policy(which: Array, alpha: Array, z: Tiles) -> Tiles:
    alpha = _positive_or_nan(which, alpha)
    _, x = _shift(z, alpha)
    soft = _each(jnp.exp, x)
    total = _total(soft)
    sparse = _sparsemax(x)[2]
    block, lanes = x[0].shape
    column = lax.broadcasted_iota(jnp.int32, (block, lanes), 1)
    columns = [c * lanes + column for c in range(len(x))]
    found = [jnp.where(y == 0.0, c, len(x) * lanes) for c, y in zip(columns, x, strict=True)]
    first = jnp.min(reduce(jnp.minimum, found), axis=1)[:, None]

    def policy(column: Array, soft: Array, sparse: Array) -> Array:
        hard = (column == first).astype(soft.dtype)
        smooth = jnp.where(which == 1, soft / total[:, None], sparse)
        return jnp.where(which == 0, hard, smooth) + _nan_or_zero(total)[:, None]

    return _each(policy, columns, soft, sparse)


def _positive_or_nan(which: Array, alpha: Array) -> Array:
    """alpha, 1 for the hard maximum, and NaN if not positive."""
    return jnp.where(which == 0, 1.0, jnp.where(alpha > 0.0, alpha, jnp.nan))


def _nan_or_zero(total: Array) -> Array:
    """NaN if the sum of exponentials is NaN, as one entry of the row is then NaN or +inf."""
    return 0.0 * total


def _shift(z: Tiles, alpha: Array) -> tuple[Array, Tiles]:
    """max z of each row and x = (z - max z)/alpha; -inf beyond the end of a row."""
    top = jnp.max(reduce(jnp.maximum, z), axis=1)
    return top, _each(lambda y: (y - top[:, None]) / alpha, z)


def _sparse_bonus(x: Tiles) -> Array:
    """spmax of rows with maximum 0."""
    tau, delta, p = _sparsemax(x)
    return ((tau + 1.0) + delta) - 0.5 * _total(_each(lambda p: p * (1.0 - p), p))


def _sparsemax(x: Tiles) -> tuple[Array, Array, Tiles]:
    """sparsemax of rows with maximum 0 by Michelot's method: tau, delta and p.

    The threshold is tau + delta. The last correction delta is rounding and is applied to x - tau
    rather than to tau, which would lose it (see `tsallax.simplex`).
    """
    x = _each(partial(_at_least, -1.0), x)
    tau = jnp.full(x[0].shape[:1], -1.0, x[0].dtype)
    size = jnp.zeros_like(tau)
    if len(x) > 2:  # first for the largest entry of each lane
        tau, _, size = _michelot([reduce(jnp.maximum, x)], tau, size)
    tau, delta, _ = _michelot(x, tau, size)
    return tau, delta, _each(lambda x: _positive((x - tau[:, None]) - delta[:, None]), x)


def _michelot(x: Tiles, tau: Array, size: Array) -> tuple[Array, Array, Array]:
    """tau <- tau + delta, delta = (sum (x - tau)_+ - 1)/#{x > tau}, until the support is stable.

    `size` is that of the support for the given tau or 0 if it is unknown.
    """

    def step(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        tau, delta, size, moving = state
        tau = tau + jnp.where(moving > 0.0, _positive(delta), 0.0)
        u = _each(lambda x: x - tau[:, None], x)
        mass = _total(_each(_positive, u))
        count = _total(_each(lambda u: jnp.where(u <= 0.0, 0.0, 1.0), u))
        return tau, (mass - 1.0) / count, count, jnp.where(count == size, 0.0, 1.0)

    state = (tau, jnp.zeros_like(tau), size, jnp.ones_like(tau))
    tau, delta, size, _ = _until_settled(step, state)
    return tau, delta, size


def _bonus_three_halves(x: Tiles) -> Array:
    """tsallis_max with q = 3/2 of rows with maximum 0."""
    p = _entmax_three_halves(x)

    def term(x: Array, p: Array) -> Array:
        return p * (_at_least(-2.0, x) + (1.0 - jnp.sqrt(p)) * (4.0 / 3.0))

    return _total(_each(term, x, p))


def _entmax_three_halves(x: Tiles) -> Tiles:
    """entmax with q = 3/2 of rows with maximum 0: p = (x/2 - t)_+^2.

    Newton's method on the norm of (x/2 - t)_+, convex in t, increases from t = -1 to the root.
    """
    half = _each(lambda x: _at_least(-1.0, 0.5 * x), x)
    t = jnp.full(x[0].shape[:1], -1.0, x[0].dtype)
    if len(x) > 2:  # first for the largest entry of each lane
        t, _ = _newton_three_halves([reduce(jnp.maximum, half)], t)
    t, move = _newton_three_halves(half, t)
    p = _each(lambda y: _positive((y - t[:, None]) - move[:, None]) ** 2, half)
    total = _total(p)[:, None]
    return _each(lambda p: p / total, p)


def _newton_three_halves(y: Tiles, t: Array) -> tuple[Array, Array]:
    """The root of sum (y - t)_+^2 = 1 from below, as t and a last correction."""

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        t, move, moving = state
        t = t + jnp.where(moving > 0.0, move, 0.0)
        u = _each(lambda y: _positive(y - t[:, None]), y)
        excess = _total(_each(lambda u: u * u, u)) - 1.0
        norm = jnp.sqrt(excess + 1.0)
        move = excess * norm / ((norm + 1.0) * _total(u))
        further = (excess > 16 * EPS) & (t + move > t)
        return t, move, jnp.where(further, 1.0, 0.0)

    t, move, _ = _until_settled(step, (t, jnp.zeros_like(t), jnp.ones_like(t)))
    return t, move


def _until_settled(step: Callable[[Any], Any], state: Any) -> Any:
    """Repeat step until the last part of the state is 0 for all rows."""
    return lax.while_loop(lambda state: jnp.max(state[-1]) > 0.0, step, step(state))


def _each(f: Callable[..., Array], *tiles: Tiles) -> Tiles:
    return [f(*parts) for parts in zip(*tiles, strict=True)]


def _total(tiles: Tiles) -> Array:
    """The sum of each row."""
    return jnp.sum(reduce(jnp.add, tiles), axis=1)


def _positive(u: Array) -> Array:
    """max(u, 0), NaN for NaN."""
    return jnp.where(u <= 0.0, 0.0, u)


def _at_least(bound: float, x: Array) -> Array:
    """max(x, bound), NaN for NaN."""
    return jnp.where(x < bound, bound, x)
