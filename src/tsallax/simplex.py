"""Maxima regularised by an entropy, and the distributions that attain them: spmax and sparsemax.

For an entropic index q > 0 and k = 1/q the regulariser is the Tsallis entropy

    Omega_q(p) = (1 - sum_i p_i^q) / (q (q - 1)),      -sum_i p_i log p_i  for q = 1,

and two functions of a vector z follow from it:

    tsallis_max(z) = max_p <p, z> + Omega_q(p)         a smooth maximum,
    entmax(z)      = argmax_p <p, z> + Omega_q(p)      its gradient, a distribution.

q = 1 is log-sum-exp and softmax; q = 2 is the paper's spmax and sparsemax. With x = z - max z,

    p_i = exp_q(x_i - t),   exp_q(u) = [1 + (q - 1) u]_+^{1/(q-1)},   sum_i p_i = 1,
    tsallis_max(z) = max z + <p, x> + Omega_q(p) = max z + t - (1 - sum_i p_i^q) / q,

so that the root t determines everything. Instead of sorting, Newton's method starts below the root,
at the root of a small subset of the entries (the larger the set, the larger its root), and is
monotone and finite for q = 2. The root is kept as two words, `head + tail`, because a hundred
thousand equal entries need p to be right far below the rounding of t. For q > 2 no number of words
would do: p = (q - 1)^(1/(q-1)) (x - tau)^(1/(q-1)) is steep at the edge of the support, where
x - tau is 1e-75 for q = 50 and p = 0.03. There the unknown is the least positive probability.

On an NVIDIA GPU one fused kernel (`tsallax.simplex_pallas`) computes q = 1.5 and q = 2 for float32
rows of up to 32,768 entries; the XLA program for CPUs computes everything else.

Conventions shared by all functions here:

* `axis` is any one axis; `where` (broadcast against z) and entries of -inf leave actions out.
* 16-bit floats are computed in float32 and returned as they came; integers become floats.
* NaN or +inf gives NaN for its whole row. A row without any action has no distribution: it is
  an error where the values are known, and NaN where they are traced (inside `jax.jit`).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from tsallax import checks
from tsallax.errors import InvalidInput

__all__ = ["entmax", "sparsemax", "spmax", "support", "threshold", "tsallis_max"]

LANES = 32
"""The number of partial sums of a row is a multiple of this."""
CHUNKS = 24
"""Most entries added up into one partial sum; with more, XLA's loops are slow."""
BLOCK = 2**18
"""Number of entries that a CPU processes at a time."""


def sparsemax(z: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    """p_i = max(z_i - tau(z), 0), the Euclidean projection of z onto the simplex.

    >>> sparsemax([1.0, 0.5, -1.0])
    Array([0.75, 0.25, 0.  ], dtype=float32)
    """
    return entmax(z, 2.0, axis, where)


def spmax(z: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    """spmax(z) = max_p <p, z> + (1 - |p|^2)/2, whose gradient is `sparsemax`.

    >>> spmax([1.0, 1.0])
    Array(1.25, dtype=float32)
    """
    return tsallis_max(z, 2.0, axis, where)


def threshold(z: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    """tau(z): the number with sum_i max(z_i - tau, 0) = 1.

    >>> threshold([1.0, 1.0])
    Array(0.5, dtype=float32)
    """
    z, dtype = rows(z, axis, where)
    tau: Array = _threshold(z)
    return tau.astype(dtype)


def support(z: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    """S(z) = {i : z_i > tau(z)}: where `sparsemax` is positive.

    >>> support([0.5, 0.4, -1.0])
    Array([ True,  True, False], dtype=bool)
    """
    return sparsemax(z, axis, where) > 0


def entmax(z: ArrayLike, q: float, axis: int = -1, where: ArrayLike | None = None) -> Array:
    """argmax_p <p, z> + Omega_q(p), the policy of the Tsallis entropy with index q > 0.

    >>> print(jnp.round(100 * entmax([1.0, 0.0, -3.0], q=1.5)))
    [83. 17.  0.]
    """
    z, dtype = rows(z, axis, where)
    return jnp.moveaxis(maximizer(checks.entropic_index(q), z, 1.0), -1, axis).astype(dtype)


def tsallis_max(z: ArrayLike, q: float, axis: int = -1, where: ArrayLike | None = None) -> Array:
    """max_p <p, z> + Omega_q(p), the smooth maximum whose gradient is `entmax`.

    >>> tsallis_max([0.0, 0.0], q=1)
    Array(0.6931472, dtype=float32)
    """
    z, dtype = rows(z, axis, where)
    value: Array = maximum(checks.entropic_index(q), z, 1.0)
    return value.astype(dtype)


def rows(
    z: ArrayLike, axis: int = -1, where: ArrayLike | None = None, fill: float = -math.inf
) -> tuple[Array, Any]:
    """z with `axis` last and `fill` where masked, in at least float32, and the dtype to return."""
    z = jnp.asarray(z)
    if not jnp.issubdtype(z.dtype, jnp.floating):
        if jnp.issubdtype(z.dtype, jnp.complexfloating):
            raise InvalidInput(f"values must be real, got {z.dtype}")
        z = z.astype(float)
    if not (checks.is_integer(axis) and -z.ndim <= axis < z.ndim):
        raise InvalidInput(f"values of shape {z.shape} have no axis {axis}")
    if z.shape[axis] == 0:
        raise InvalidInput(f"values of shape {z.shape} have no actions along axis {axis}")
    wide = z.astype(jnp.promote_types(z.dtype, jnp.float32))
    if where is not None:
        try:
            mask = jnp.broadcast_to(jnp.asarray(where, bool), z.shape)
        except ValueError:
            raise InvalidInput(
                f"where of shape {jnp.shape(where)} does not broadcast to values of shape {z.shape}"
            ) from None
        wide = jnp.where(mask, wide, fill)
    if not isinstance(wide, jax.core.Tracer) and bool(_has_empty_row(axis, wide)):
        raise InvalidInput("a row has no actions: every entry is masked or -inf")
    return jnp.moveaxis(wide, axis, -1), z.dtype


@partial(jax.jit, static_argnums=0)
def _has_empty_row(axis: int, z: Array) -> Array:
    return jnp.any(jnp.max(z, axis) == -jnp.inf)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
@partial(jax.jit, static_argnums=0)
def maximum(q: float, z: Array, alpha: ArrayLike) -> Array:
    """max_p <p, z> + alpha Omega_q(p) along the last axis of floats."""
    return _by_kernel("entropic_values", plain_maximum, q, z, alpha)


def plain_maximum(q: float, z: Array, alpha: ArrayLike) -> Array:
    """`maximum` without the kernels for a GPU."""

    def solve(z: Array, alpha: Array) -> Array:
        top, x = _shift(q, z, alpha)
        if q == 1:
            bonus, _ = _root(q, x)
        elif q == 2:
            head, tail = _root(q, x)
            p = _density(q, x, head, tail)
            mass, squares = _sums(p, p * p)
            bonus = ((head + 1) + tail) - (mass - squares) / 2
        else:
            p = _distribution(q, z, x, alpha)
            mean, omega = _sums(p * jnp.where(p == 0, 0, x), _entropy_terms(q, p))
            bonus = mean + omega
        return (top + alpha * jnp.maximum(bonus, 0))[..., 0, 0]

    return _by_blocks(solve, z, alpha)


@maximum.defjvp
def _maximum_jvp(q: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    """<p, dz> + Omega(p) dalpha."""
    (z, alpha), (dz, dalpha) = primals, tangents
    p = maximizer(q, z, alpha)
    along_z = jnp.sum(p * jnp.where(p == 0, 0, dz), -1)
    return maximum(q, z, alpha), along_z + entropy(q, p) * dalpha


@partial(jax.custom_jvp, nondiff_argnums=(0,))
@partial(jax.jit, static_argnums=0)
def maximizer(q: float, z: Array, alpha: ArrayLike) -> Array:
    """argmax_p <p, z> + alpha Omega_q(p) along the last axis of floats."""
    return _by_kernel("entropic_policies", plain_maximizer, q, z, alpha)


def plain_maximizer(q: float, z: Array, alpha: ArrayLike) -> Array:
    """`maximizer` without the kernels for a GPU."""

    def solve(z: Array, alpha: Array) -> Array:
        _, x = _shift(q, z, alpha)
        p = _distribution(q, z, x, alpha)
        return p.reshape(*z.shape[:-1], -1)[..., : z.shape[-1]]

    return _by_blocks(solve, z, alpha)


@maximizer.defjvp
def _maximizer_jvp(q: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    """dp = w (v - <w, v>/<w, 1>), w = p^(2-q) on the support, v = d(z/alpha).

    For q > 2 the weight of the least p exceeds all others by powers of ten: v is taken relative to
    its entry, so that the difference v - <w, v>/<w, 1> of nearly equal numbers does not arise.
    """
    (z, alpha), (dz, dalpha) = primals, tangents
    p = maximizer(q, z, alpha)
    zero = p == 0
    top = lax.stop_gradient(jnp.max(z, -1, keepdims=True))
    x = jnp.where(zero, 0, z - top) / alpha
    v = (jnp.where(zero, 0, dz) - x * dalpha) / alpha
    positive = jnp.where(zero, 1, p)
    if q > 2:
        least = jnp.argmin(jnp.where(zero, jnp.inf, p), -1, keepdims=True)
        log_w = (2 - q) * jnp.log(positive)
        share = jnp.where(zero, 0, jnp.exp(log_w - jnp.take_along_axis(log_w, least, -1)))
        most = math.log(float(jnp.finfo(p.dtype).max) / p.shape[-1])  # a sum of them is finite
        w = jnp.where(zero, 0, jnp.exp(jnp.minimum(log_w, most)))
        u = jnp.where(zero, 0, v - jnp.take_along_axis(v, least, -1))
        total = jnp.sum(w * u, -1, keepdims=True)
        return p, w * u - share * (total / jnp.sum(share, -1, keepdims=True))
    w = jnp.where(zero, 0, positive ** (2 - q))
    mean = jnp.sum(w * v, -1, keepdims=True) / jnp.sum(w, -1, keepdims=True)
    return p, w * (v - mean)


@partial(jax.jit, static_argnums=0)
def entropy(q: float, p: Array) -> Array:
    """Omega_q(p) = sum_i p_i (1 - p_i^(q-1)) / (q (q - 1)) along the last axis of floats."""
    return jnp.sum(_entropy_terms(q, p), -1)


def _entropy_terms(q: float, p: Array) -> Array:
    if q == 2:
        return p * (1 - p) / 2
    log_p = jnp.log(jnp.where(p == 0, 1, p))
    return p * (-log_p if q == 1 else -jnp.expm1((q - 1) * log_p) / (q * (q - 1)))


@jax.custom_jvp
@jax.jit
def _threshold(z: Array) -> Array:
    def solve(z: Array, alpha: Array) -> Array:
        top, x = _shift(2.0, z, alpha)
        head, tail = _root(2.0, x)
        return (top + (head + tail))[..., 0, 0]

    return _by_blocks(solve, z, 1.0)


@_threshold.defjvp
def _threshold_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """d tau = the mean of v over the support."""
    (z,), (v,) = primals, tangents
    zero = maximizer(2.0, z, 1.0) == 0
    return _threshold(z), jnp.sum(jnp.where(zero, 0, v), -1) / jnp.sum(~zero, -1)


def _by_kernel(
    name: str, plain: Callable[..., Array], q: float, z: Array, alpha: ArrayLike
) -> Array:
    """plain(q, z, alpha); on a GPU by the kernel of this name, if there is one for such rows."""
    if jax.default_backend() != "gpu" or z.dtype != jnp.float32 or z.size == 0:
        return plain(q, z, alpha)
    from tsallax import simplex_pallas  # slow to import, and of no use elsewhere

    if q not in simplex_pallas.INDICES or z.shape[-1] > simplex_pallas.MAX_ROW_LENGTH:
        return plain(q, z, alpha)

    def fused(z: Array, alpha: Any) -> Array:
        flat = z.reshape(-1, z.shape[-1])
        out: Array = getattr(simplex_pallas, name)(q, flat, jnp.asarray(alpha, z.dtype))
        return out.reshape(z.shape[:-1] + out.shape[1:])

    result: Array = lax.platform_dependent(z, alpha, cuda=fused, default=partial(plain, q))
    return result


def _by_blocks(solve: Callable[[Array, Any], Array], z: Array, alpha: ArrayLike) -> Array:
    """solve(z, alpha) for every row of z; on a CPU in blocks of rows that stay in its cache."""
    n = z.shape[-1]
    if z.size == 0:
        row = jax.eval_shape(solve, jax.ShapeDtypeStruct((1, n), z.dtype), alpha)
        return jnp.zeros(z.shape[:-1] + row.shape[1:], row.dtype)
    block = max(1, BLOCK // n)
    flat = z.reshape(-1, n)
    if len(flat) <= block:
        return solve(z, alpha)

    def one_by_one(flat: Array, alpha: Any) -> Any:
        def put(i: Array, out: Array) -> Array:
            start = jnp.minimum(i * block, len(flat) - block)
            part = solve(lax.dynamic_slice_in_dim(flat, start, block), alpha)
            return lax.dynamic_update_slice_in_dim(out, part, start, 0)

        like = jax.eval_shape(solve, flat, alpha)
        varying = jnp.zeros_like(flat[0, 0]) + jnp.zeros_like(alpha)  # along all axes of a mesh
        out = jnp.zeros(like.shape, like.dtype) + varying
        return lax.fori_loop(0, -(-len(flat) // block), put, out)

    out: Array = lax.platform_dependent(flat, alpha, cpu=one_by_one, default=solve)
    return out.reshape(z.shape[:-1] + out.shape[1:])


def _fold(x: Array) -> Array:
    """Each row as (chunks, lanes), filled up with -inf; few chunks, so that sums vectorise."""
    n = x.shape[-1]
    lanes = LANES * -(-n // (CHUNKS * LANES))
    chunks = -(-n // lanes)
    ends = [(0, 0)] * (x.ndim - 1) + [(0, chunks * lanes - n)]
    return jnp.pad(x, ends, constant_values=-jnp.inf).reshape(*x.shape[:-1], chunks, lanes)


def _shift(q: float, z: Array, alpha: ArrayLike) -> tuple[Array, Array]:
    """max z and the folded x = (z - max z)/alpha; for q = 2 clipped at -1, below any threshold."""
    z = _fold(z)
    top = _max(z)
    x = (z - top) / alpha
    return top, lax.optimization_barrier(jnp.maximum(x, -1) if q == 2 else x)


def _sums(*terms: Array) -> tuple[Array, ...]:
    """The sum of each term over a folded row: all terms in one pass, over chunks, then lanes."""
    zeros = tuple(np.zeros((), y.dtype) for y in terms)

    def reduce(terms: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(lax.reduce(terms, zeros, _add, (terms[0].ndim - 2,)))

    lanes = reduce(terms)
    few = reduce(tuple(y.reshape(*y.shape[:-1], -1, LANES) for y in lanes))
    return tuple(y[..., None] for y in reduce(tuple(y[..., None] for y in few)))


def _add(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(x + y for x, y in zip(a, b))


def _sum(x: Array) -> Array:
    return _sums(x)[0]


def _origin(q: float) -> float:
    """1/(q-1) where t is sought as tau = t - 1/(q-1), for which p = ((q-1)(x - tau))^(1/(q-1))."""
    return 1 / (q - 1) if q > 1.25 else 0.0


def _log_density(q: float, x: Array, head: Array, tail: Array) -> Array:
    u = (x - head) - tail
    if q == 1:
        return u
    if _origin(q):
        return jnp.log((q - 1) * jnp.maximum(u, 0)) / (q - 1)
    return jnp.log1p(jnp.maximum((q - 1) * u, -1)) / (q - 1)


def _density(q: float, x: Array, head: Array, tail: Array) -> Array:
    """exp_q(x - t), the distribution once t is the root."""
    if q == 2:
        return jnp.maximum((x - head) - tail, 0)
    return jnp.exp(_log_density(q, x, head, tail))


def _distribution(q: float, z: Array, x: Array, alpha: ArrayLike) -> Array:
    """The folded maximiser for rows z and their folded x = (z - max z)/alpha."""
    p = _density_above_two(q, z, x, alpha) if q > 2 else _density(q, x, *_root(q, x))
    return p if q == 2 else p / _sum(p)


def _root(q: float, x: Array) -> tuple[Array, Array]:
    """The root of sum_i exp_q(x_i - t) = 1, less `_origin(q)`, as head + tail."""
    if q == 1:
        t = jnp.log(_sum(jnp.exp(x)))
        return t, jnp.zeros_like(t)
    return _newton_sparse(x) if q == 2 else _newton_tsallis(q, x)


def _newton_sparse(x: Array) -> tuple[Array, Array]:
    """tau by Michelot's method, first for the largest entry of each lane, then for all."""
    tau = jnp.full_like(x[..., :1, :1], -1)
    count = jnp.zeros_like(tau)
    if x.shape[-2] > 4:
        tau, count, _ = _michelot(_fold(jnp.max(x, -2)), tau, count)
    tau, _, delta = _michelot(x, tau, count)
    return tau, delta


def _michelot(x: Array, tau: Array, count: Array) -> tuple[Array, Array, Array]:
    """tau <- tau + delta, delta = (sum (x - tau)_+ - 1)/#{x > tau}, until the support is stable.

    From below tau only grows and the support only shrinks. The last delta is rounding, to be
    applied to x - tau rather than to tau.
    """

    def step(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        tau, count, delta, settled = state
        tau = jnp.where(settled, tau, tau + jnp.maximum(delta, 0))
        u = x - tau
        mass, size = _sums(jnp.maximum(u, 0), (u > 0).astype(x.dtype))
        return tau, size, (mass - 1) / size, size == count

    start = step((tau, count, jnp.zeros_like(tau), jnp.zeros(tau.shape, bool)))
    return lax.while_loop(lambda state: ~jnp.all(state[-1]), step, start)[:3]


def _newton_tsallis(q: float, x: Array) -> tuple[Array, Array]:
    """Newton's method on log_q(sum_i exp_q(x_i - t)), which is linear in t if all x_i are equal.

    From t = 0 it is monotone for q < 2, but for rounding: a step that leaves the bracket
    [t - left, t + right] becomes a bisection.
    """
    eps, tiny = float(jnp.finfo(x.dtype).eps), float(jnp.finfo(x.dtype).tiny)
    log_n = math.log(x.shape[-1] * x.shape[-2])
    width = -math.expm1((1 - q) * log_n) / (q - 1)
    if q > 1:
        width = min(width, (1 - tiny) / (q - 1))

    def step(state: Any) -> Any:
        n, done, head, tail, left, right, best_gap, best_head, best_tail = state
        log_p = _log_density(q, x, head, tail)
        p = jnp.exp(log_p)
        mass, slope = _sums(p, jnp.where(p > 0, jnp.exp((2 - q) * log_p), 0))
        gap = jnp.abs(jnp.log(mass))
        close = ~(gap > 16 * eps)
        up = mass > 1
        left, right = jnp.where(up, 0, left), jnp.where(up, right, 0)
        move = mass * -jnp.expm1((1 - q) * jnp.log(mass)) / ((q - 1) * slope)
        inside = (move > -left) & (move <= right * (1 + 4 * eps)) & (move != 0)
        move = jnp.where(inside, move, jnp.where(close, 0, (right - left) / 2))
        move = jnp.where(done, 0, move)
        new_head = head + (tail + move)
        new_tail = (tail + move) - (new_head - head)
        better = ~done & (gap < best_gap)
        best_gap = jnp.where(better, gap, best_gap)
        best_head = jnp.where(better, jnp.where(close, new_head, head), best_head)
        best_tail = jnp.where(better, jnp.where(close, new_tail, tail), best_tail)
        done = done | close | ((new_head == head) & (new_tail == tail))
        bracket = (left + move, right - move)
        return n + 1, done, new_head, new_tail, *bracket, best_gap, best_head, best_tail

    zero = jnp.zeros_like(x[..., :1, :1])
    head = zero - _origin(q)
    start = (0, zero != 0, head, zero, zero, zero + width, zero + jnp.inf, head, zero)
    state = lax.while_loop(lambda s: (s[0] < 200) & jnp.any(~s[1]), step, start)
    return state[-2], state[-1]


def _density_above_two(q: float, z: Array, x: Array, alpha: ArrayLike) -> Array:
    """exp_q(x - t) for q > 2, from the least positive probability r, that of the entry `edge`:

        p_i = (r^(q-1) + c_i^(q-1))^(1/(q-1)),   c_i = ((q - 1)(z_i - edge)/alpha)^(1/(q-1)).

    Each p_i is a convex function of r with a slope between 0 and 1, so that Newton's method for
    sum_i p_i = 1 decreases from r = 1/n to the root, which rounding hardly moves.
    """
    eps, tiny = float(jnp.finfo(x.dtype).eps), float(jnp.finfo(x.dtype).tiny)
    z = jnp.where((q - 1) * x > -1, _fold(z), -jnp.inf)

    def log_c(edge: Array) -> Array:
        return (math.log(q - 1) + jnp.log(jnp.maximum((z - edge) / alpha, 0))) / (q - 1)

    edge = _edge(z, log_c)
    inside = z >= edge
    log_c_edge = log_c(edge)

    def log_p(r: Array) -> Array:
        log_r = jnp.log(r)
        more, less = jnp.maximum(log_c_edge, log_r), jnp.minimum(log_c_edge, log_r)
        return more + jnp.log1p(jnp.exp((q - 1) * (less - more))) / (q - 1)

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        r, _ = state
        log = log_p(r)
        p, slope = jnp.exp(log), jnp.exp((q - 2) * (jnp.log(r) - log))
        mass, slopes = _sums(jnp.where(inside, p, 0), jnp.where(inside, slope, 0))
        new = jnp.maximum(r - (mass - 1) / slopes, tiny)
        return jnp.where(mass - 1 > 4 * eps, new, r), ~((mass - 1 > 4 * eps) & (new < r))

    start = 1 / _sum(inside.astype(x.dtype))
    r, _ = lax.while_loop(lambda state: ~jnp.all(state[1]), step, (start, start != start))
    nan_or_zero = _max(x)
    return jnp.where(inside, jnp.exp(log_p(r)), 0) + nan_or_zero


def _edge(z: Array, log_c: Callable[[Array], Array]) -> Array:
    """The least entry of the support: the least z_m with sum_i c_i < 1 for the edge z_m.

    A bisection between the least and the largest of the entries that are still undecided, those
    between `low`, which is outside of the support, and `high`, which is inside.
    """

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        low, high, _ = state
        undecided = (z > low) & (z < high)
        least = -_max(jnp.where(undecided, -z, -jnp.inf))
        pivot = least + (_max(jnp.where(undecided, z, -jnp.inf)) - least) / 2
        inside = _sum(jnp.exp(log_c(pivot))) < 1
        some = least < jnp.inf
        low, high = jnp.where(some & ~inside, pivot, low), jnp.where(some & inside, pivot, high)
        return low, high, ~some

    top = _max(z)
    start = (jnp.full_like(top, -jnp.inf), top, top != top)
    _, high, _ = lax.while_loop(lambda state: ~jnp.all(state[2]), step, start)
    return -_max(jnp.where(z >= high, -z, -jnp.inf))


def _max(x: Array) -> Array:
    """The maximum of a folded row."""
    return jnp.max(jnp.max(x, -2, keepdims=True), -1, keepdims=True)
