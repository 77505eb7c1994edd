"""One state's regularised maximum, compiled: the four functions of a regulariser for one row.

The family is a shape and a threshold.  With x_i = (row_i - max row)/alpha and the deformed
exponential exp_q(u) = [1 + (q-1)u]₊^(1/(q-1)), which is exp at q=1 and [1+u]₊ at q=2,

    policy   p_i = exp_q(x_i - t),  t such that sum p = 1,
    value    max row + alpha (t + (sum p^q - 1)/q),
    entropy  Omega(p) = (1 - sum p^q)/(q(q-1))   or   -sum p log p.

The value is stationary in t, so an error in t enters it only squared.  alpha = 0 is the maximum.
"""

import math
from typing import Any

import numpy as np

from tsallax.planning.kernels import vectors
from tsallax.planning.kernels.compilation import njit

_NONE, _ONE = np.uint64(0), np.uint64(1)


@njit()
def regularized_maximum(
    row: Any, n: Any, top: Any, alpha: Any, q: Any, guess: Any, p: Any, at: Any
) -> Any:
    """(t, value, entropy, k) of row[:n], whose maximum is `top`.

    The policy gives p[i] to action at[i], i < k, and 0 to any other; p is a buffer of
    `vectors.padded_length(n)` numbers, at one of n.  The search for t starts from `guess`.
    """
    if alpha == 0.0 or n == _ONE:
        k = _NONE
        while k + _ONE < n and row[k] != top:
            k += _ONE
        p[0], at[0] = 1.0, k
        return 0.0, top, 0.0, _ONE
    if q == 2.0:
        return _sparse(row, n, top, alpha, p, at)
    for i in range(n):
        p[i] = (row[i] - top) / alpha
        at[i] = i
    for i in range(n, vectors.padded_length(n)):
        p[i] = -math.inf
    if q == 1.0:
        t, gain, entropy, k = _soft(p, at, n)
    else:
        t, gain, entropy, k = _tsallis(p, at, n, q, guess)
    return t, top + alpha * gain, entropy, k


@njit(forceinline=True)
def _soft(x: Any, at: Any, n: Any) -> Any:
    """(t, value, entropy, k) at q=1, with alpha=1 and a maximum of 0; x becomes the policy."""
    sums, means, sizes = vectors.broadcast(0.0), vectors.broadcast(0.0), vectors.broadcast(0.0)
    i = _NONE
    while i < n:
        lane = vectors.maximum(vectors.load(x, i), vectors.broadcast(-1e3))
        p = vectors.exp(lane)
        vectors.store(x, i, p)
        sums = vectors.add(sums, p)
        means = vectors.add(means, vectors.mul(p, lane))
        sizes = vectors.add(sizes, vectors.is_positive(p))
        i += vectors.WIDTH
    total, k = vectors.lane_sum(sums), n
    if vectors.lane_sum(sizes) < n:  # some are too unlikely for float64
        k = _support(x, at, n)
    scale = 1.0 / total
    for j in range(k):
        x[j] *= scale
    t = math.log(total)
    return t, t, t - scale * vectors.lane_sum(means), k


@njit(forceinline=True)
def _support(p: Any, at: Any, n: Any) -> Any:
    """Move the positive entries of p to the front, with their indices; returns their number."""
    k = _NONE
    for i in range(n):
        x = p[i]
        p[k] = x
        at[k] = i
        k += np.uint64(x > 0.0)
    return k


@njit(error_model="numpy")
def _sparse(row: Any, n: Any, top: Any, alpha: Any, p: Any, at: Any) -> Any:
    """`regularized_maximum` at q=2, where t is 1 plus the threshold over alpha."""
    s = sparse_threshold(row, n, top, alpha, -alpha)
    k = _NONE
    total = square = 0.0
    for i in range(n):
        x = max(row[i] - top - s, 0.0) / alpha
        p[k] = x
        at[k] = i
        total += x
        square += x * x
        k += np.uint64(x > 0.0)
    for i in range(k):
        p[i] /= total
    return 1.0 + s / alpha, top + (s + 0.5 * alpha * (square + 1.0)), 0.5 * (1.0 - square), k


@njit(error_model="numpy")
def sparse_threshold(row: Any, n: Any, top: Any, alpha: Any, s: Any) -> Any:
    """s with sum [row - top - s]₊ = alpha, by Michelot's Newton method from a bound below it.

    The bound is at least -alpha.  Every pass reads the whole row: branches on its length are
    predictable, on that of a support not.
    """
    enough = alpha * (1.0 + 2.0**-53 * (n + 4.0))
    last = math.inf
    while True:
        excess, size = sparse_excess(row, n, top, s)
        if excess <= enough:
            return s
        s += (excess - alpha) / size
        if size >= last:
            return s
        last = size


@njit(forceinline=True)
def sparse_excess(row: Any, n: Any, top: Any, s: Any) -> Any:
    """(sum [row - top - s]₊, how many of its terms are not zero)."""
    sums, sizes = vectors.broadcast(0.0), vectors.broadcast(0.0)
    i = np.uint64(0)
    while i + vectors.WIDTH <= n:
        lane = vectors.sub(
            vectors.sub(vectors.load(row, i), vectors.broadcast(top)), vectors.broadcast(s)
        )
        sums = vectors.add(sums, vectors.positive_part(lane))
        sizes = vectors.add(sizes, vectors.is_positive(lane))
        i += vectors.WIDTH
    excess, size = vectors.lane_sum(sums), vectors.lane_sum(sizes)
    while i < n:
        x = row[i] - top - s
        excess += x if x > 0.0 else 0.0
        size += 1.0 if x > 0.0 else 0.0
        i += _ONE
    return excess, size


@njit(forceinline=True)
def sparse_policy(
    row: Any, n: Any, top: Any, s: Any, alpha: Any, rewards: Any, weights: Any, first: Any
) -> Any:
    """weights[first : first + n] = [row - top - s]₊ / alpha; (sum p, sum p rewards, sum p^2)."""
    scale = 1.0 / alpha
    sums, means, squares = vectors.broadcast(0.0), vectors.broadcast(0.0), vectors.broadcast(0.0)
    i = np.uint64(0)
    while i + vectors.WIDTH <= n:
        above = vectors.sub(
            vectors.sub(vectors.load(row, i), vectors.broadcast(top)), vectors.broadcast(s)
        )
        lane = vectors.mul(vectors.positive_part(above), vectors.broadcast(scale))
        vectors.store(weights, first + i, lane)
        means = vectors.add(means, vectors.mul(lane, vectors.load(rewards, first + i)))
        squares = vectors.add(squares, vectors.mul(lane, lane))
        sums = vectors.add(sums, lane)
        i += vectors.WIDTH
    whole, mean, square = vectors.lane_sum(sums), vectors.lane_sum(means), vectors.lane_sum(squares)
    while i < n:
        x = row[i] - top - s
        p = x * scale if x > 0.0 else 0.0
        weights[first + i] = p
        mean += p * rewards[first + i]
        square += p * p
        whole += p
        i += _ONE
    return whole, mean, square


@njit(error_model="numpy")
def _tsallis(x: Any, at: Any, n: Any, q: Any, guess: Any) -> Any:
    """(t, value, entropy, k) at any other q, with alpha=1 and a maximum of 0; x becomes the policy.

    Newton for t between 0 (one action) and ln_q n (all equal).  Below q = 2 the sum is convex in t,
    and Newton from the left is monotone.  Above, its slope is infinite where an action leaves the
    support: every other step bisects, until the bracket is `_next` wide, with sum p >= 1 at its
    left end.
    """
    low, high = 0.0, -math.expm1((1.0 - q) * math.log(n)) / (q - 1.0)
    power = _whole_power(q)
    close = 2.0**-53 * (n + 4.0) if q < 2.0 else 0.0
    t = min(max(guess, low), high)
    for turn in range(200):
        total, slope, powers, mean = _sums(x, n, q, power, t)
        if total >= 1.0:
            low = t
        else:
            high = t
        if abs(total - 1.0) <= close or high <= _next(low):
            break
        step = t + (total - 1.0) / slope
        if not (low < step < high) or (q > 2.0 and turn % 2 == 1):
            step = 0.5 * (low + high)
        t = step
    after, share = t, 1.0
    if q > 2.0:
        # sum p may jump across one within the last digit of t: mix the policies of both sides,
        # which are optimal to rounding, and so is their mixture
        t, after = low, _next(low)
        total, _, powers, _ = _sums(x, n, q, power, t)
        below = _sums(x, n, q, power, after)[0]
        if total > below:
            share = min(max((1.0 - below) / (total - below), 0.0), 1.0)
    i = _NONE
    while i < n:
        lane = vectors.load(x, i)
        p = _deformed_exp(vectors.sub(lane, vectors.broadcast(t)), q, power)[0]
        if share < 1.0:
            other = _deformed_exp(vectors.sub(lane, vectors.broadcast(after)), q, power)[0]
            p = vectors.mul(p, vectors.broadcast(share))
            p = vectors.add(p, vectors.mul(other, vectors.broadcast(1.0 - share)))
        vectors.store(x, i, p)
        i += vectors.WIDTH
    k = _support(x, at, n)
    total = 0.0
    for j in range(k):
        total += x[j]
    for j in range(k):
        x[j] /= total
    entropy = -mean / (q * total) if q < 2.0 else entropy_of(x, k, q)
    return t, t + (powers - 1.0) / q, entropy, k


@njit(forceinline=True)
def _sums(x: Any, n: Any, q: Any, power: Any, t: Any) -> Any:
    """(sum p, -d/dt sum p, sum p^q, sum p u) at t, u = x - t."""
    sums, slopes = vectors.broadcast(0.0), vectors.broadcast(0.0)
    powers, means = vectors.broadcast(0.0), vectors.broadcast(0.0)
    i = _NONE
    while i < n:
        u = vectors.sub(vectors.load(x, i), vectors.broadcast(t))
        p, lift = _deformed_exp(u, q, power)
        sums = vectors.add(sums, p)
        slopes = vectors.add(slopes, vectors.where_positive(p, vectors.div(p, lift)))
        powers = vectors.add(powers, vectors.where_positive(p, vectors.mul(p, lift)))
        means = vectors.add(means, vectors.where_positive(p, vectors.mul(p, u)))
        i += vectors.WIDTH
    return (
        vectors.lane_sum(sums),
        vectors.lane_sum(slopes),
        vectors.lane_sum(powers),
        vectors.lane_sum(means),
    )


@njit(forceinline=True)
def _deformed_exp(u: Any, q: Any, power: Any) -> Any:
    """(exp_q(u), 1 + z) for lanes of u <= 0, z = (q-1)u: exp(log(1 + z)/(q-1)), 0 at u=-inf.

    With `power`, not 0, it is (1 + z)^power.
    """
    one = vectors.broadcast(1.0)
    z = vectors.mul(u, vectors.broadcast(q - 1.0))
    lift = vectors.add(z, one)
    if power > 0:
        base = vectors.positive_part(lift)
        p = base
        for _ in range(power - 1):
            p = vectors.mul(p, base)
        return p, lift
    rounded = vectors.div(vectors.sub(z, vectors.sub(lift, one)), lift)  # of the sum 1 + z
    log = vectors.add(vectors.log(lift), rounded)
    p = vectors.exp(vectors.mul(log, vectors.broadcast(1.0 / (q - 1.0))))
    finite = vectors.add(u, vectors.broadcast(1e308))
    return vectors.where_positive(finite, vectors.where_positive(lift, p)), lift


@njit()
def _whole_power(q: Any) -> Any:
    """1/(q-1) where that is a small whole number, as at q = 1.5, and 0 elsewhere."""
    power = round(1.0 / (q - 1.0))
    close = abs(1.0 / (q - 1.0) - power) <= 2.0**-50 * power
    return power if close and power <= 10 else 0


@njit()
def _next(t: Any) -> Any:
    """The next t that differs in arithmetic around one."""
    return t + max(2.0**-56, 2.0**-52 * t)


@njit()
def entropy_of(weights: Any, n: Any, q: Any) -> Any:
    """Omega of the distribution weights[:n]."""
    total = 0.0
    if q == 2.0:
        for i in range(n):
            total += weights[i] * (1.0 - weights[i])
        return 0.5 * total
    if q == 1.0:
        for i in range(n):
            if weights[i] > 0.0:
                total -= weights[i] * math.log(weights[i])
        return total
    for i in range(n):
        if weights[i] > 0.0:
            total -= weights[i] * math.expm1((q - 1.0) * math.log(weights[i]))
    return total / (q * (q - 1.0))
