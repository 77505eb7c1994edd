"""The Bellman sweep, compiled: v -> Uv with its greedy policy, one pass over the transitions.

One sweep costs about one SciPy `csr @ v`.
"""

import math
from typing import Any

import numpy as np
from numba import prange

from tsallax.planning.kernels.compilation import njit
from tsallax.planning.kernels.mdp_arrays import best_action, row_values
from tsallax.planning.kernels.row import (
    regularized_maximum,
    sparse_excess,
    sparse_policy,
    sparse_threshold,
)
from tsallax.planning.kernels.vectors import padded_length

_ONE = np.uint64(1)
_MAX_STATES, _MAX_VALUES = 32, 2048  # states, and action values, of one block of a sparse sweep


@njit()
def sweep_range(
    m: Any, alpha: Any, q: Any, width: Any, begin: Any, end: Any, v: Any, start: Any, out: Any,
    pi: Any,
) -> Any:  # fmt: skip
    """out = Uv and its greedy policy pi, for the states begin..end.

    alpha is None for the hard operator, and q for the sparse one: Numba then compiles no other.
    The search for the threshold of state s starts from start[s].
    Returns min and max of out - v, NaN where a value is not finite, and about how many pairs the
    policy uses.
    """
    if alpha is None:
        return _hard_range(m, begin, end, v, out, pi)
    if q is None:
        return _sparse_range(m, alpha, width, begin, end, v, start, out, pi)
    return _tsallis_range(m, alpha, q, width, begin, end, v, start, out, pi)


@njit()
def _hard_range(m: Any, begin: Any, end: Any, v: Any, out: Any, pi: Any) -> Any:
    """`sweep_range` of the hard operator."""
    low, high, bad = math.inf, -math.inf, False
    used = 0
    for s in range(begin, end):
        first, last = m.pointer[s], m.pointer[s + 1]
        if first == last:
            out[s] = 0.0
            pi.rewards[s] = 0.0
            continue
        value, best = best_action(m, s, v)
        for i in range(first, last):
            pi.weights[i] = 1.0 if i == best else 0.0
        pi.rewards[s] = m.rewards[best]
        used += 1
        out[s] = value
        change = value - v[s]
        bad |= not math.isfinite(change)
        low = min(low, change)
        high = max(high, change)
    return (math.nan, math.nan, used) if bad else (low, high, used)


@njit()
def _tsallis_range(
    m: Any, alpha: Any, q: Any, width: Any, begin: Any, end: Any, v: Any, start: Any, out: Any,
    pi: Any,
) -> Any:  # fmt: skip
    """`sweep_range` at any q."""
    row = np.empty(width)
    p = np.empty(padded_length(width))
    at = np.empty(width, np.uint32)
    low, high, bad = math.inf, -math.inf, False
    searched = len(start) > 0
    used = 0
    for s in range(begin, end):
        first, last = m.pointer[s], m.pointer[s + 1]
        n = last - first
        guess = start[s] if searched else 0.0
        if n == 0:
            out[s] = 0.0
            pi.rewards[s] = 0.0
            if searched:
                pi.thresholds[s] = guess
            continue
        top = row_values(m, s, v, row)
        t, value, entropy, k = regularized_maximum(row, n, top, alpha, q, guess, p, at)
        if searched:
            pi.thresholds[s] = t
        for i in range(first, last):
            pi.weights[i] = 0.0
        total = alpha * entropy
        for i in range(k):
            total += p[i] * m.rewards[first + at[i]]
            pi.weights[first + at[i]] = p[i]
        pi.rewards[s] = total
        used += k
        out[s] = value
        change = value - v[s]
        bad |= not math.isfinite(change)
        low = min(low, change)
        high = max(high, change)
    return (math.nan, math.nan, int(used)) if bad else (low, high, int(used))


@njit(error_model="numpy")
def _sparse_range(
    m: Any, alpha: Any, width: Any, begin: Any, end: Any, v: Any, start: Any, out: Any, pi: Any
) -> Any:
    """`sweep_range` at q=2, on its own because a row's maximum must not cost more than the row.

    Newton takes one step from start[s], which mostly finds the threshold: then the policy sums to
    one.  The states are handled in blocks, so that a processor can work on several at a time.
    """
    states = max(1, min(_MAX_STATES, _MAX_VALUES // width))
    rows = np.empty((states, width))
    tops = np.empty(states)
    thresholds = np.empty(states)
    low, high, bad = math.inf, -math.inf, False
    used = 0.0
    for here in range(begin, end, states):
        last = min(here + states, end)
        for s in range(here, last):
            tops[s - here] = row_values(m, s, v, rows[s - here])
        for s in range(here, last):
            n, t = m.pointer[s + 1] - m.pointer[s], start[s]
            excess, size = sparse_excess(rows[s - here], n, tops[s - here], t)
            thresholds[s - here] = max(t + (excess - alpha) / size, -alpha)
            used += size
        for s in range(here, last):
            first, row, top, t = m.pointer[s], rows[s - here], tops[s - here], thresholds[s - here]
            n = m.pointer[s + 1] - first
            if n == 0:
                out[s] = 0.0
                pi.rewards[s] = 0.0
                pi.thresholds[s] = start[s]
                continue
            total, mean, square = sparse_policy(row, n, top, t, alpha, m.rewards, pi.weights, first)
            if not total <= 1.0 + 2.0**-53 * (n + 4.0):
                t = sparse_threshold(row, n, top, alpha, t)
                total, mean, square = sparse_policy(
                    row, n, top, t, alpha, m.rewards, pi.weights, first
                )
            if square > 1.0 - 2.0**-50:  # one action alone: make that exact
                for i in range(first, first + n):
                    pi.weights[i] = 1.0 if pi.weights[i] > 0.5 else 0.0
            pi.thresholds[s] = t
            pi.rewards[s] = mean + 0.5 * alpha * (1.0 - square)
            value = top + (t + 0.5 * alpha * (square + 1.0))
            out[s] = value
            change = value - v[s]
            bad |= not math.isfinite(change)
            low = min(low, change)
            high = max(high, change)
    return (math.nan, math.nan, int(used)) if bad else (low, high, int(used))


@njit(parallel=True)
def sweep(
    m: Any, alpha: Any, q: Any, width: Any, blocks: Any, v: Any, start: Any, out: Any, pi: Any
) -> Any:
    """`sweep_range` for all states, on all threads."""
    states = len(m.pointer) - 1
    low = np.empty(blocks)
    high = np.empty(blocks)
    used = np.empty(blocks, np.int64)
    for b in prange(blocks):
        low[b], high[b], used[b] = sweep_range(
            m, alpha, q, width, b * states // blocks, (b + 1) * states // blocks, v, start, out, pi
        )
    return (*extremes(low, high), _total(used))


@njit()
def extremes(low: Any, high: Any) -> Any:
    """(the least of low, the largest of high), NaN where one is.

    `low.min()` in a parallel function would start threads, and take long to compile.
    """
    least, largest = math.inf, -math.inf
    for i in range(len(low)):
        if math.isnan(low[i]) or math.isnan(high[i]):
            return math.nan, math.nan
        least = min(least, low[i])
        largest = max(largest, high[i])
    return least, largest


@njit()
def _total(counts: Any) -> Any:
    total = 0
    for count in counts:
        total += count
    return total


@njit()
def relax(m: Any, alpha: Any, q: Any, width: Any, order: Any, v: Any) -> None:
    """One Gauss-Seidel sweep of v <- Uv, visiting the states in `order`.

    Each state's equation is solved for its greedy policy, self-transitions included, which from
    below does not exceed its solution.  alpha and q may be None as in `sweep_range`.
    """
    row = np.empty(width)
    p = np.empty(padded_length(width))
    at = np.empty(width, np.uint32)
    for j in range(len(order)):
        s = order[j]
        first = m.pointer[s]
        n = m.pointer[s + _ONE] - first
        if n == 0:
            continue
        loop = 0.0
        if alpha is None:
            value, best = best_action(m, s, v)
            loop = _self_transition(m, best, s)
        else:
            top = row_values(m, s, v, row)
            index = 2.0 if q is None else q
            _, value, _, k = regularized_maximum(row, n, top, alpha, index, 0.0, p, at)
            for i in range(k):
                loop += p[i] * _self_transition(m, first + at[i], s)
        v[s] += (value - v[s]) / (1.0 - m.discount * min(loop, 1.0))


@njit()
def _self_transition(m: Any, i: Any, s: Any) -> Any:
    """T_i(s) of pair i."""
    total = 0.0
    for k in range(m.indptr[i], m.indptr[i + _ONE]):
        total += m.data[k] if m.indices[k] == s else 0.0
    return total
