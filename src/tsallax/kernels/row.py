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
from numba import njit

from tsallax.kernels import lanes

_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def deformed_exp(u: Any, q: Any) -> Any:
    """exp_q(u) = [1 + (q-1)u]₊^(1/(q-1))."""
    if q == 2.0:
        return max(1.0 + u, 0.0)
    if q == 1.0:
        return math.exp(u)
    if 1.0 + (q - 1.0) * u <= 0.0:
        return 0.0
    return math.exp(math.log1p((q - 1.0) * u) / (q - 1.0))


@njit(cache=True, nogil=True)
def regularized_maximum(row: Any, n: Any, top: Any, alpha: Any, q: Any, work: Any, at: Any) -> Any:
    """(t, value, k) of row[:n], whose maximum is `top`; `work` and `at` are scratch as long as it.

    At q=2, k is the size of the support, at[:k] its positions and work[:k] alpha times its
    probabilities, which spares `policy_of`; elsewhere k is 0.
    """
    none = np.uint64(0)
    if alpha == 0.0 or n == _ONE:
        return 0.0, top, none
    if q == 2.0:
        return _sparse(row, n, top, alpha, work, at)
    if q == 1.0:
        total = 0.0
        for i in range(n):
            total += math.exp((row[i] - top) / alpha)
        t = math.log(total)
        return t, top + alpha * t, none
    t, gain = _tsallis(row, n, top, alpha, q)
    return t, top + gain, none


@njit(cache=True, nogil=True, error_model="numpy")
def _sparse(row: Any, n: Any, top: Any, alpha: Any, work: Any, at: Any) -> Any:
    """(t, value, k) at q=2, where t is 1 plus the threshold over alpha."""
    s = sparse_threshold(row, n, top, alpha, -alpha)
    k = np.uint64(0)
    square = 0.0
    for i in range(n):
        x = max(row[i] - top - s, 0.0)
        work[k] = x
        at[k] = i
        square += x * x
        k += np.uint64(x > 0.0)
    return 1.0 + s / alpha, top + (s + 0.5 * (square / alpha + alpha)), k


@njit(cache=True, nogil=True, error_model="numpy")
def sparse_threshold(row: Any, n: Any, top: Any, alpha: Any, s: Any) -> Any:
    """s with sum [row - top - s]₊ = alpha, by Michelot's Newton from -alpha <= s, not above it.

    Every pass reads the whole row: processors foresee its length, and not that of a support.
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


@njit(cache=True, nogil=True, forceinline=True)
def sparse_excess(row: Any, n: Any, top: Any, s: Any) -> Any:
    """(sum [row - top - s]₊, how many of its terms are not zero)."""
    sums, sizes = lanes.spread(0.0), lanes.spread(0.0)
    i = np.uint64(0)
    while i + lanes.WIDTH <= n:
        lane = lanes.sub(lanes.sub(lanes.load(row, i), lanes.spread(top)), lanes.spread(s))
        sums = lanes.add(sums, lanes.positive(lane))
        sizes = lanes.add(sizes, lanes.above(lane))
        i += lanes.WIDTH
    excess, size = lanes.total(sums), lanes.total(sizes)
    while i < n:
        x = row[i] - top - s
        excess += x if x > 0.0 else 0.0
        size += 1.0 if x > 0.0 else 0.0
        i += _ONE
    return excess, size


@njit(cache=True, nogil=True, forceinline=True)
def sparse_policy(
    row: Any, n: Any, top: Any, s: Any, alpha: Any, rewards: Any, weights: Any, first: Any
) -> Any:
    """weights[first : first + n] = [row - top - s]₊ / alpha; (sum p, sum p rewards, sum p^2)."""
    scale = 1.0 / alpha
    sums, means, squares = lanes.spread(0.0), lanes.spread(0.0), lanes.spread(0.0)
    i = np.uint64(0)
    while i + lanes.WIDTH <= n:
        above = lanes.sub(lanes.sub(lanes.load(row, i), lanes.spread(top)), lanes.spread(s))
        lane = lanes.mul(lanes.positive(above), lanes.spread(scale))
        lanes.store(weights, first + i, lane)
        means = lanes.add(means, lanes.mul(lane, lanes.load(rewards, first + i)))
        squares = lanes.add(squares, lanes.mul(lane, lane))
        sums = lanes.add(sums, lane)
        i += lanes.WIDTH
    whole, mean, square = lanes.total(sums), lanes.total(means), lanes.total(squares)
    while i < n:
        x = row[i] - top - s
        p = x * scale if x > 0.0 else 0.0
        weights[first + i] = p
        mean += p * rewards[first + i]
        square += p * p
        whole += p
        i += _ONE
    return whole, mean, square


@njit(cache=True, nogil=True)
def _tsallis(row: Any, n: Any, top: Any, alpha: Any, q: Any) -> Any:
    """Newton for t between 0 (one action) and ln_q n (all equal), with sum p >= 1 at the end.

    Below q = 2 the sum is convex in t, and Newton from the left is monotone.  Above, its slope is
    infinite where an action leaves the support: every other step bisects, until the bracket is
    `_next` wide.
    """
    low, high = 0.0, -math.expm1((1.0 - q) * math.log(n)) / (q - 1.0)
    t = 0.0
    for turn in range(200):
        total, slope, _ = _sums(row, n, top, alpha, q, t)
        if total >= 1.0:
            low = t
        else:
            high = t
        step = t + (total - 1.0) / slope
        if q < 2.0 and abs(step - t) <= 4e-16 * abs(t):
            break
        if q > 2.0 and (total == 1.0 or high <= _next(low)):
            break
        if not (low < step < high) or (q > 2.0 and turn % 2 == 1):
            step = 0.5 * (low + high)
        t = step
    if q > 2.0:
        t = low
    return t, alpha * (t + (_sums(row, n, top, alpha, q, t)[2] - 1.0) / q)


@njit(cache=True, nogil=True)
def _sums(row: Any, n: Any, top: Any, alpha: Any, q: Any, t: Any) -> Any:
    """(sum p, -d/dt sum p, sum p^q) at t."""
    total = 0.0
    slope = 0.0
    power = 0.0
    for i in range(n):
        u = (row[i] - top) / alpha - t
        p = deformed_exp(u, q)
        if p > 0.0:
            lift = 1.0 + (q - 1.0) * u
            total += p
            slope += p / lift
            power += p * lift
    return total, slope, power


@njit(cache=True, nogil=True)
def _next(t: Any) -> Any:
    """The next t that is worth telling apart, in arithmetic around one."""
    return t + max(2.0**-56, 2.0**-52 * t)


@njit(cache=True, nogil=True)
def policy_of(
    row: Any, n: Any, top: Any, t: Any, alpha: Any, q: Any, pairs: Any, weights: Any
) -> Any:
    """Write the support of the policy, as positions in the row, and its probabilities; its size."""
    k = np.uint64(0)
    if alpha == 0.0 or n == _ONE:
        for i in range(n):
            if row[i] == top:
                pairs[0] = i
                weights[0] = 1.0
                return _ONE
        return k
    # sum p may jump across one within the last digit of t where q > 2: mix the policies of both
    # sides, which are optimal to rounding, and so is their mixture
    after, share = t, 1.0
    if q > 2.0:
        after = _next(t)
        above, below = _sums(row, n, top, alpha, q, t)[0], _sums(row, n, top, alpha, q, after)[0]
        if above > below:
            share = min(max((1.0 - below) / (above - below), 0.0), 1.0)
    total = 0.0
    for i in range(n):
        x = (row[i] - top) / alpha
        p = share * deformed_exp(x - t, q)
        if share < 1.0:
            p += (1.0 - share) * deformed_exp(x - after, q)
        if p > 0.0:
            pairs[k] = i
            weights[k] = p
            total += p
            k += _ONE
    for i in range(k):
        weights[i] /= total
    return k


@njit(cache=True, nogil=True)
def entropy_of(weights: Any, n: Any, q: Any) -> Any:
    """Omega of the distribution weights[:n]."""
    total = 0.0
    if q == 2.0:
        for i in range(n):
            total += weights[i] * (1.0 - weights[i])
        return 0.5 * total
    if abs(q - 1.0) < 1e-9:
        for i in range(n):
            if weights[i] > 0.0:
                total -= weights[i] * math.log(weights[i])
        return total
    for i in range(n):
        if weights[i] > 0.0:
            total -= weights[i] * math.expm1((q - 1.0) * math.log(weights[i]))
    return total / (q * (q - 1.0))
