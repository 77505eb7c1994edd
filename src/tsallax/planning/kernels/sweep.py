"""Passes over the transitions of an MDP, compiled: the Bellman sweep and a policy's own operators.

Everything is summed in a fixed order and without `fastmath`, so that a result does not depend on
the number of threads.  Index arrays come as unsigned views: Numba then omits its test for negative
indices, which makes a sweep 2.4 times faster.  One sweep costs about one SciPy `csr @ v`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from tsallax.planning.kernels.row import (
    entropy_of,
    regularized_maximum,
    sparse_excess,
    sparse_policy,
    sparse_threshold,
)
from tsallax.planning.kernels.vectors import bits_above, lowest, room

_NONE, _ONE, _CHUNK = np.uint64(0), np.uint64(1), np.uint64(64)
_STATES, _VALUES = 32, 2048  # how many states, or values of actions, a sparse sweep has in hand
Floats = NDArray[np.float64]
Index = NDArray[Any]


class Arrays(NamedTuple):
    """An MDP as the kernels see it: pair i of state s has pointer[s] <= i < pointer[s + 1]."""

    indptr: Index
    indices: Index
    data: Floats
    rewards: Floats
    pointer: Index
    discount: float


class Policy(NamedTuple):
    """A policy: weight[i] of every pair, and reward[s] = r_pi(s) + alpha Omega(pi(s)).

    threshold[s], the last one found, is where the search for the next one starts.
    """

    weight: Floats
    reward: Floats
    threshold: Floats


@njit(cache=True, nogil=True, forceinline=True)
def _expected(m: Any, i: Any, v: Any) -> Any:
    """sum_s' T_i(s') v(s') of pair i.

    One running sum on purpose: with two, LLVM vectorises the gather, and a sweep takes four times
    as long.
    """
    total = 0.0
    for k in range(m.indptr[i], m.indptr[i + 1]):
        total += m.data[k] * v[m.indices[k]]
    return total


@njit(cache=True, nogil=True, forceinline=True)
def _action_values(m: Any, s: Any, v: Any, row: Any) -> Any:
    """row = r(s, .) + gamma * sum_s' T(s'|s, .) v(s'); returns its maximum."""
    first = m.pointer[s]
    top = -math.inf
    for i in range(first, m.pointer[s + 1]):
        value = m.rewards[i] + m.discount * _expected(m, i, v)
        row[i - first] = value
        top = top if value <= top else value
    return top


@njit(cache=True, nogil=True, forceinline=True)
def _best_action(m: Any, s: Any, v: Any) -> Any:
    """(max, pair) of the largest action value, the first if several are."""
    first = m.pointer[s]
    best, at = -math.inf, first
    for i in range(first, m.pointer[s + 1]):
        total = m.rewards[i] + m.discount * _expected(m, i, v)
        at = at if total <= best else i
        best = best if total <= best else total
    return best, at


@njit(cache=True, nogil=True)
def sweep_range(
    m: Any, alpha: Any, q: Any, width: Any, begin: Any, end: Any, v: Any, out: Any, pi: Any
) -> Any:
    """out = Uv and its greedy policy, for the states begin..end.

    alpha is None for the hard operator, and q for the sparse one: Numba then compiles no other.
    Returns min and max of out - v, NaN where a value is not finite, and about how many pairs the
    policy uses.
    """
    if alpha is None:
        return _hard_range(m, begin, end, v, out, pi)
    if q is None:
        return _sparse_range(m, alpha, width, begin, end, v, out, pi)
    return _tsallis_range(m, alpha, q, width, begin, end, v, out, pi)


@njit(cache=True, nogil=True)
def _hard_range(m: Any, begin: Any, end: Any, v: Any, out: Any, pi: Any) -> Any:
    """`sweep_range` of the hard operator."""
    low, high, bad = math.inf, -math.inf, False
    used = 0
    for s in range(begin, end):
        first, last = m.pointer[s], m.pointer[s + 1]
        if first == last:
            out[s] = 0.0
            pi.reward[s] = 0.0
            continue
        value, best = _best_action(m, s, v)
        for i in range(first, last):
            pi.weight[i] = 0.0
        pi.weight[best] = 1.0
        pi.reward[s] = m.rewards[best]
        used += 1
        out[s] = value
        change = value - v[s]
        bad |= not math.isfinite(change)
        low = min(low, change)
        high = max(high, change)
    return (math.nan, math.nan, used) if bad else (low, high, used)


@njit(cache=True, nogil=True)
def _tsallis_range(
    m: Any, alpha: Any, q: Any, width: Any, begin: Any, end: Any, v: Any, out: Any, pi: Any
) -> Any:
    """`sweep_range` at any q."""
    row = np.empty(width)
    p = np.empty(room(width))
    at = np.empty(width, np.uint32)
    low, high, bad = math.inf, -math.inf, False
    searched = len(pi.threshold) > 0
    used = 0
    for s in range(begin, end):
        first, last = m.pointer[s], m.pointer[s + 1]
        n = last - first
        if n == 0:
            out[s] = 0.0
            pi.reward[s] = 0.0
            continue
        top = _action_values(m, s, v, row)
        guess = pi.threshold[s] if searched else 0.0
        t, value, entropy, k = regularized_maximum(row, n, top, alpha, q, guess, p, at)
        if searched:
            pi.threshold[s] = t
        for i in range(first, last):
            pi.weight[i] = 0.0
        total = alpha * entropy
        for i in range(k):
            total += p[i] * m.rewards[first + at[i]]
            pi.weight[first + at[i]] = p[i]
        pi.reward[s] = total
        used += k
        out[s] = value
        change = value - v[s]
        bad |= not math.isfinite(change)
        low = min(low, change)
        high = max(high, change)
    return (math.nan, math.nan, int(used)) if bad else (low, high, int(used))


@njit(cache=True, nogil=True, error_model="numpy")
def _sparse_range(
    m: Any, alpha: Any, width: Any, begin: Any, end: Any, v: Any, out: Any, pi: Any
) -> Any:
    """`sweep_range` at q=2, on its own because a row's maximum must not cost more than the row.

    Newton for the threshold takes one step from the state's last one, which mostly finds it, and
    the sum of the policy tells.  Some states at a time, so that a processor can work on several.
    """
    states = max(1, min(_STATES, _VALUES // width))
    rows = np.empty((states, width))
    tops = np.empty(states)
    thresholds = np.empty(states)
    low, high, bad = math.inf, -math.inf, False
    used = 0.0
    for here in range(begin, end, states):
        last = min(here + states, end)
        for s in range(here, last):
            tops[s - here] = _action_values(m, s, v, rows[s - here])
        for s in range(here, last):
            n, t = m.pointer[s + 1] - m.pointer[s], pi.threshold[s]
            excess, size = sparse_excess(rows[s - here], n, tops[s - here], t)
            thresholds[s - here] = max(t + (excess - alpha) / size, -alpha)
            used += size
        for s in range(here, last):
            first, row, top, t = m.pointer[s], rows[s - here], tops[s - here], thresholds[s - here]
            n = m.pointer[s + 1] - first
            if n == 0:
                out[s] = 0.0
                pi.reward[s] = 0.0
                continue
            total, mean, square = sparse_policy(row, n, top, t, alpha, m.rewards, pi.weight, first)
            if not total <= 1.0 + 2.0**-53 * (n + 4.0):
                t = sparse_threshold(row, n, top, alpha, t)
                total, mean, square = sparse_policy(
                    row, n, top, t, alpha, m.rewards, pi.weight, first
                )
            if square > 1.0 - 2.0**-50:  # one action alone: make that exact
                for i in range(first, first + n):
                    pi.weight[i] = 1.0 if pi.weight[i] > 0.5 else 0.0
            pi.threshold[s] = t
            pi.reward[s] = mean + 0.5 * alpha * (1.0 - square)
            value = top + (t + 0.5 * alpha * (square + 1.0))
            out[s] = value
            change = value - v[s]
            bad |= not math.isfinite(change)
            low = min(low, change)
            high = max(high, change)
    return (math.nan, math.nan, int(used)) if bad else (low, high, int(used))


@njit(cache=True, parallel=True, nogil=True)
def sweep(m: Any, alpha: Any, q: Any, width: Any, blocks: Any, v: Any, out: Any, pi: Any) -> Any:
    """`sweep_range` for all states, on all threads."""
    states = len(m.pointer) - 1
    low = np.empty(blocks)
    high = np.empty(blocks)
    used = np.empty(blocks, np.int64)
    for b in prange(blocks):
        low[b], high[b], used[b] = sweep_range(
            m, alpha, q, width, b * states // blocks, (b + 1) * states // blocks, v, out, pi
        )
    return (*_ends(low, high), _total(used))


@njit(cache=True, nogil=True)
def _ends(low: Any, high: Any) -> Any:
    """(the least of low, the largest of high), NaN where one is.

    Not as low.min() in a parallel function, for which Numba starts its threads, and compiles long.
    """
    least, largest = math.inf, -math.inf
    for i in range(len(low)):
        if math.isnan(low[i]) or math.isnan(high[i]):
            return math.nan, math.nan
        least = min(least, low[i])
        largest = max(largest, high[i])
    return least, largest


@njit(cache=True, nogil=True)
def _total(counts: Any) -> Any:
    total = 0
    for count in counts:
        total += count
    return total


@njit(cache=True, nogil=True)
def action_values(m: Any, v: Any, out: Any) -> None:
    """out[i] = r_i + gamma * sum_s' T_i(s') v(s') for every pair i: Q from V."""
    for s in range(len(m.pointer) - 1):
        _action_values(m, s, v, out[m.pointer[s] : m.pointer[s + 1]])


@njit(cache=True, nogil=True)
def _expected_next(m: Any, weight: Any, s: Any, v: Any) -> Any:
    """sum_s' T_pi(s'|s) v(s')."""
    total = 0.0
    for i in range(m.pointer[s], m.pointer[s + 1]):
        if weight[i] > 0.0:
            total += weight[i] * _expected(m, i, v)
    return total


@njit(cache=True, nogil=True)
def policy_residual(m: Any, weight: Any, b: Any, v: Any, out: Any) -> None:
    """out = b - (I - gamma T_pi) v."""
    for s in range(len(v)):
        out[s] = b[s] - v[s] + m.discount * _expected_next(m, weight, s, v)


@njit(cache=True, nogil=True)
def entropies(pointer: Any, q: Any, weight: Any, omega: Any) -> None:
    """omega[s] = Omega of the policy in state s."""
    for s in range(len(pointer) - 1):
        first, last = pointer[s], pointer[s + 1]
        omega[s] = entropy_of(weight[first:last], last - first, q)


@njit(cache=True, nogil=True)
def _follow_range(m: Any, pi: Any, begin: Any, end: Any, v: Any, out: Any) -> Any:
    """out = r_pi + alpha Omega(pi) + gamma T_pi v in begin..end; min and max of out - v."""
    low, high = math.inf, -math.inf
    for s in range(begin, end):
        out[s] = pi.reward[s] + m.discount * _expected_next(m, pi.weight, s, v)
        low = min(low, out[s] - v[s])
        high = max(high, out[s] - v[s])
    return low, high


@njit(cache=True, nogil=True)
def _gather_range(m: Any, pi: Any, begin: Any, end: Any, v: Any, out: Any, rows: Any) -> Any:
    """`_follow_range` that also writes down the rows of gamma T_pi, one after the other."""
    low, high = math.inf, -math.inf
    at = np.uint64(m.indptr[m.pointer[begin]])
    for s in range(begin, end):
        total = pi.reward[s]
        rows.first[s] = at
        i, last = np.uint64(m.pointer[s]), np.uint64(m.pointer[s + 1])
        while i < last:
            bits = bits_above(pi.weight, i, min(i + _CHUNK, last))
            while bits != _NONE:
                pair = i + lowest(bits)
                bits &= bits - _ONE
                scale = m.discount * pi.weight[pair]
                for k in range(m.indptr[pair], m.indptr[pair + _ONE]):
                    x, j = scale * m.data[k], m.indices[k]
                    rows.data[at] = x
                    rows.indices[at] = j
                    total += x * v[j]
                    at += _ONE
            i += _CHUNK
        rows.last[s] = at
        out[s] = total
        low = min(low, total - v[s])
        high = max(high, total - v[s])
    return low, high


@njit(cache=True, nogil=True)
def _gathered_range(rows: Any, pi: Any, begin: Any, end: Any, v: Any, out: Any) -> Any:
    """`_follow_range` with the rows that `_gather_range` wrote."""
    low, high = math.inf, -math.inf
    for s in range(begin, end):
        total = pi.reward[s]
        for k in range(rows.first[s], rows.last[s]):
            total += rows.data[k] * v[rows.indices[k]]
        out[s] = total
        low = min(low, total - v[s])
        high = max(high, total - v[s])
    return low, high


class Rows(NamedTuple):
    """The rows of gamma T_pi: that of state s is first[s] <= k < last[s]."""

    first: Index
    last: Index
    indices: Index
    data: Floats


@njit(cache=True, parallel=True, nogil=True)
def follow_policy(
    m: Any, pi: Any, blocks: Any, gather: Any, v: Any, out: Any, most: Any, stop: Any
) -> Any:
    """v <- r_pi + alpha Omega(pi) + gamma T_pi v until the change is constant to within `stop`.

    At most `most` times, using v and out in turn; returns how often (odd: the result is in out),
    and how far the last change was from constant.
    With `gather`, the policy's rows are copied on the way: read in order, they are three times as
    fast, where they are a small part of all rows.
    """
    states = len(v)
    size = len(m.data) if gather else 0
    rows = Rows(
        np.empty(states, np.uint64), np.empty(states, np.uint64),
        np.empty(size, m.indices.dtype), np.empty(size),
    )  # fmt: skip
    low = np.empty(blocks)
    high = np.empty(blocks)
    for i in range(most):
        for b in prange(blocks):
            begin, end = b * states // blocks, (b + 1) * states // blocks
            if not gather:
                low[b], high[b] = _follow_range(m, pi, begin, end, v, out)
            elif i == 0:
                low[b], high[b] = _gather_range(m, pi, begin, end, v, out, rows)
            else:
                low[b], high[b] = _gathered_range(rows, pi, begin, end, v, out)
        least, largest = _ends(low, high)
        if largest - least <= stop or i + 1 == most:
            return i + 1, largest - least
        v, out = out, v
    return 0, math.nan


@njit(cache=True, nogil=True)
def follow_policy_serial(m: Any, pi: Any, v: Any, out: Any, most: Any, stop: Any) -> Any:
    """`follow_policy` on one thread and in place, for small problems."""
    for i in range(most):
        low, high = _follow_range(m, pi, 0, len(v), v, out)
        if high - low <= stop or i + 1 == most:
            return i + 1, high - low
        v, out = out, v
    return 0, math.nan


@njit(cache=True, nogil=True)
def relax(m: Any, order: Any, v: Any) -> None:
    """One Gauss-Seidel sweep of v <- Uv, U the hard operator, visiting the states in `order`.

    Each state's own equation is solved for its best action: its chance to stay is divided out.
    """
    for j in range(len(order)):
        s = order[j]
        first = m.pointer[s]
        if first == m.pointer[s + 1]:
            continue
        value, at = _best_action(m, s, v)
        loop = 0.0
        for k in range(m.indptr[at], m.indptr[at + _ONE]):
            loop += m.data[k] if m.indices[k] == s else 0.0
        v[s] += (value - v[s]) / (1.0 - m.discount * min(loop, 1.0))


@njit(cache=True, nogil=True)
def reach(m: Any, sources: Any) -> Any:
    """(order, steps): the states, breadth first, by how few steps may take them to a source.

    States that cannot reach one come last, as if one step further than all others.
    """
    states = len(m.pointer) - 1
    seen = np.full(states, -1, np.int64)
    start = np.zeros(states + 1, np.int64)
    for s in range(states):
        for k in range(m.indptr[m.pointer[s]], m.indptr[m.pointer[s + 1]]):
            j = m.indices[k]
            if seen[j] != s:
                seen[j] = s
                start[j + 1] += 1
    for s in range(states):
        start[s + 1] += start[s]
    filled = start[:-1].copy()
    before = np.empty(start[states], np.uint32)
    seen[:] = -1
    for s in range(states):
        for k in range(m.indptr[m.pointer[s]], m.indptr[m.pointer[s + 1]]):
            j = m.indices[k]
            if seen[j] != s:
                seen[j] = s
                before[filled[j]] = s
                filled[j] += 1
    order = np.empty(states, np.uint32)
    steps = np.full(states, -1, np.int32)
    size = 0
    for s in sources:
        order[size] = s
        steps[s] = 0
        size += 1
    head = 0
    while head < size:
        here = np.int64(order[head])
        head += 1
        for k in range(start[here], start[here + 1]):
            j = before[k]
            if steps[j] < 0:
                steps[j] = steps[here] + 1
                order[size] = j
                size += 1
    last = 0 if size == 0 else steps[order[size - 1]] + 1
    for s in range(states):
        if steps[s] < 0:
            steps[s] = last
            order[size] = s
            size += 1
    return order, steps


@njit(cache=True, nogil=True)
def certify_support(
    m: Any, alpha: Any, q: Any, width: Any, low: Any, high: Any, verdict: Any
) -> None:
    """verdict = +1 where low <= Q* <= high proves an action in the support, -1 where out of it.

    alpha and q may be None as in `sweep_range`; q is not 1 or less, where all are in.
    """
    if alpha is None:
        _certify_best(m, low, high, verdict)
    else:
        _certify_threshold(m, alpha, q, width, low, high, verdict)


@njit(cache=True, nogil=True)
def _certify_best(m: Any, low: Any, high: Any, verdict: Any) -> None:
    """`certify_support` of the hard operator: in are the best actions."""
    for s in range(len(m.pointer) - 1):
        first, last = m.pointer[s], m.pointer[s + 1]
        if first == last:
            continue
        out = low[first:last].max()
        best = first + np.uint64(high[first:last].argmax())
        second = -math.inf
        for i in range(first, last):
            if i != best:
                second = max(second, high[i])
        for i in range(first, last):
            rest = second if i == best else high[best]
            verdict[i] = 1 if low[i] >= rest else 0
            if high[i] < out:
                verdict[i] = -1


@njit(cache=True, nogil=True)
def _certify_threshold(
    m: Any, alpha: Any, q: Any, width: Any, low: Any, high: Any, verdict: Any
) -> None:
    p = np.empty(room(width))
    at = np.empty(width, np.uint32)
    for s in range(len(m.pointer) - 1):
        first, last = m.pointer[s], m.pointer[s + 1]
        if last - first == 1:
            verdict[first] = 1
            continue
        if first == last:
            continue
        below, slack = _threshold(low[first:last], alpha, q, p, at)
        out = below - slack
        above, slack = _threshold(high[first:last], alpha, q, p, at)
        inside = above + slack
        for i in range(first, last):
            if high[i] <= out:
                verdict[i] = -1
            elif low[i] > inside:
                verdict[i] = 1


@njit(cache=True, nogil=True)
def _threshold(row: Any, alpha: Any, q: Any, p: Any, at: Any) -> Any:
    """(what an action must be worth to be in the support, its rounding)."""
    n = np.uint64(len(row))
    top = row.max()
    rounding = 1e-15 * (n + 8.0) * (abs(top) + alpha)
    if q is None:
        return top + sparse_threshold(row, n, top, alpha, -alpha), rounding
    t, _, _, _ = regularized_maximum(row, n, top, alpha, q, 0.0, p, at)
    return top + alpha * (t - 1.0 / (q - 1.0)), rounding
