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

from tsallax.kernels.row import entropy_of, policy_of, regularized_maximum, sparse_threshold

_ONE = np.uint64(1)
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
    """A policy by its support: the first size[s] entries from pointer[s] on are its actions'
    positions in the state and their probabilities; reward[s] = r_pi(s) + alpha Omega(pi(s))."""

    size: Index
    position: Index
    weight: Floats
    reward: Floats


@njit(cache=True, nogil=True)
def _expected(m: Any, i: Any, v: Any) -> Any:
    """sum_s' T_i(s') v(s') of pair i.

    One running sum on purpose: with two, LLVM vectorises the gather, and a sweep takes four times
    as long.
    """
    total = 0.0
    for k in range(m.indptr[i], m.indptr[i + 1]):
        total += m.data[k] * v[m.indices[k]]
    return total


@njit(cache=True, nogil=True)
def _action_values(m: Any, s: Any, v: Any, row: Any) -> Any:
    """row = r(s, .) + gamma * sum_s' T(s'|s, .) v(s'); returns its maximum."""
    first = m.pointer[s]
    top = -math.inf
    for i in range(first, m.pointer[s + 1]):
        value = m.rewards[i] + m.discount * _expected(m, i, v)
        row[i - first] = value
        top = top if value <= top else value
    return top


@njit(cache=True, nogil=True)
def _best_action(m: Any, s: Any, v: Any) -> Any:
    """(max, position) of the largest action value, the first if several are."""
    first = m.pointer[s]
    best, at = -math.inf, first
    for i in range(first, m.pointer[s + 1]):
        total = m.rewards[i] + m.discount * _expected(m, i, v)
        at = at if total <= best else i
        best = best if total <= best else total
    return best, at - first


@njit(cache=True, nogil=True)
def sweep_range(
    m: Any, alpha: Any, q: Any, width: Any, begin: Any, end: Any, v: Any, out: Any, pi: Any
) -> Any:
    """out = Uv and, unless pi is empty, its greedy policy, for the states begin..end.

    Returns min and max of out - v, NaN where a value is not finite.
    """
    if alpha > 0.0 and q == 2.0 and len(pi.size) > 0:
        return _sparse_range(m, alpha, width, begin, end, v, out, pi)
    row = np.empty(width)
    work = np.empty(width)
    at = np.empty(width, np.uint32)
    low, high, bad = math.inf, -math.inf, False
    keep = len(pi.size) > 0
    for s in range(begin, end):
        first = m.pointer[s]
        n = m.pointer[s + 1] - first
        if n == 0:
            out[s] = 0.0
            if keep:
                pi.size[s] = 0
                pi.reward[s] = 0.0
            continue
        if alpha == 0.0:
            value, best = _best_action(m, s, v)
            if keep:
                pi.size[s] = 1
                pi.position[first] = best
                pi.weight[first] = 1.0
                pi.reward[s] = m.rewards[first + best]
        else:
            top = _action_values(m, s, v, row)
            t, value, _ = regularized_maximum(row, n, top, alpha, q, work, at)
            if keep:
                weights = pi.weight[first : first + n]
                positions = pi.position[first : first + n]
                k = policy_of(row, n, top, t, alpha, q, positions, weights)
                total = alpha * entropy_of(weights, k, q)
                for i in range(k):
                    total += weights[i] * m.rewards[first + positions[i]]
                pi.size[s] = k
                pi.reward[s] = total
        out[s] = value
        change = value - v[s]
        bad |= not math.isfinite(change)
        low = min(low, change)
        high = max(high, change)
    return (math.nan, math.nan) if bad else (low, high)


@njit(cache=True, nogil=True, error_model="numpy")
def _sparse_range(
    m: Any, alpha: Any, width: Any, begin: Any, end: Any, v: Any, out: Any, pi: Any
) -> Any:
    """`sweep_range` at q=2, on its own because a row's maximum must not cost more than the row.

    Newton for the threshold starts at that of the state's last support: any set of actions has its
    threshold below that of all actions, and the last support is mostly the right one already.
    """
    row = np.empty(width)
    low, high, bad = math.inf, -math.inf, False
    scale = 1.0 / alpha
    for s in range(begin, end):
        first = m.pointer[s]
        n = m.pointer[s + 1] - first
        if n == 0:
            out[s] = 0.0
            pi.size[s] = 0
            pi.reward[s] = 0.0
            continue
        top = _action_values(m, s, v, row)
        weights = pi.weight[first : first + n]
        positions = pi.position[first : first + n]
        rewards = m.rewards[first : first + n]
        total = 0.0
        for i in range(pi.size[s]):
            total += row[positions[i]] - top
        guess = (total - alpha) / pi.size[s] if pi.size[s] > 0 else -alpha
        t = sparse_threshold(row, n, top, alpha, max(guess, -alpha))
        k = np.uint64(0)
        reward, square = 0.0, 0.0
        for i in range(n):
            p = max(row[i] - top - t, 0.0) * scale
            weights[k] = p
            positions[k] = i
            reward += p * rewards[i]
            square += p * p
            k += np.uint64(p > 0.0)
        weights[0] = 1.0 if k == 1 else weights[0]
        pi.size[s] = k
        pi.reward[s] = reward + 0.5 * alpha * (1.0 - square)
        value = top + (t + 0.5 * alpha * (square + 1.0))
        out[s] = value
        change = value - v[s]
        bad |= not math.isfinite(change)
        low = min(low, change)
        high = max(high, change)
    return (math.nan, math.nan) if bad else (low, high)


@njit(cache=True, parallel=True, nogil=True)
def sweep(m: Any, alpha: Any, q: Any, width: Any, blocks: Any, v: Any, out: Any, pi: Any) -> Any:
    """`sweep_range` for all states, on all threads."""
    states = len(m.pointer) - 1
    low = np.empty(blocks)
    high = np.empty(blocks)
    for b in prange(blocks):
        low[b], high[b] = sweep_range(
            m, alpha, q, width, b * states // blocks, (b + 1) * states // blocks, v, out, pi
        )
    return low.min(), high.max()


@njit(cache=True, nogil=True)
def action_values(m: Any, v: Any, out: Any) -> None:
    """out[i] = r_i + gamma * sum_s' T_i(s') v(s') for every pair i: Q from V."""
    for s in range(len(m.pointer) - 1):
        _action_values(m, s, v, out[m.pointer[s] : m.pointer[s + 1]])


@njit(cache=True, nogil=True)
def _expected_next(m: Any, pi: Any, s: Any, v: Any) -> Any:
    """sum_s' T_pi(s'|s) v(s')."""
    first = m.pointer[s]
    total = 0.0
    for j in range(first, first + pi.size[s]):
        i = first + pi.position[j]
        total += pi.weight[j] * _expected(m, i, v)
    return total


@njit(cache=True, nogil=True)
def policy_residual(m: Any, pi: Any, b: Any, v: Any, out: Any) -> None:
    """out = b - (I - gamma T_pi) v."""
    for s in range(len(v)):
        out[s] = b[s] - v[s] + m.discount * _expected_next(m, pi, s, v)


@njit(cache=True, nogil=True)
def compact_policy(pointer: Any, alpha: Any, q: Any, dense: Any, pi: Any, omega: Any) -> None:
    """Write a policy given for every pair into pi by its support, and its entropy into omega."""
    for s in range(len(pointer) - 1):
        first = pointer[s]
        k = first
        for i in range(first, pointer[s + 1]):
            if dense[i] > 0.0:
                pi.position[k] = i - first
                pi.weight[k] = dense[i]
                k += _ONE
        pi.size[s] = k - first
        omega[s] = entropy_of(pi.weight[first:k], k - first, q) if alpha > 0.0 else 0.0


@njit(cache=True, nogil=True)
def expand_policy(pointer: Any, pi: Any, dense: Any) -> None:
    """Write the probabilities of pi into `dense`, which is zero elsewhere."""
    for s in range(len(pointer) - 1):
        first = pointer[s]
        for j in range(first, first + pi.size[s]):
            dense[first + pi.position[j]] = pi.weight[j]


@njit(cache=True, nogil=True)
def _row_lengths(m: Any, pi: Any, begin: Any, end: Any, start: Any) -> None:
    """start[s + 1] = how many transitions the policy's actions have in state s."""
    for s in range(begin, end):
        first = m.pointer[s]
        total = 0
        for j in range(first, first + pi.size[s]):
            i = first + pi.position[j]
            total += m.indptr[i + 1] - m.indptr[i]
        start[s + 1] = total


@njit(cache=True, nogil=True)
def _gather(m: Any, pi: Any, begin: Any, end: Any, start: Any, indices: Any, data: Any) -> None:
    """The rows begin..end of gamma T_pi, one after the other."""
    for s in range(begin, end):
        first = m.pointer[s]
        at = start[s]
        for j in range(first, first + pi.size[s]):
            i = first + pi.position[j]
            scale = m.discount * pi.weight[j]
            for k in range(m.indptr[i], m.indptr[i + 1]):
                indices[at] = m.indices[k]
                data[at] = scale * m.data[k]
                at += 1


@njit(cache=True, nogil=True)
def _evaluate(
    start: Any, indices: Any, data: Any, reward: Any, begin: Any, end: Any, v: Any, out: Any
) -> Any:
    """out = reward + (gamma T_pi) v for the rows begin..end; min and max of out - v."""
    low, high = math.inf, -math.inf
    for s in range(begin, end):
        total = reward[s]
        for k in range(start[s], start[s + 1]):
            total += data[k] * v[indices[k]]
        out[s] = total
        low = min(low, total - v[s])
        high = max(high, total - v[s])
    return low, high


@njit(cache=True, parallel=True, nogil=True)
def follow_policy(m: Any, pi: Any, blocks: Any, v: Any, out: Any, most: Any, stop: Any) -> Any:
    """v <- r_pi + alpha Omega(pi) + gamma T_pi v until the change is constant to within `stop`.

    At most `most` times, using v and out in turn; returns how often (odd: the result is in out).
    The policy's rows are gathered first: read in order, they are three times as fast.
    """
    states = len(v)
    start = np.zeros(states + 1, np.int64)
    for b in prange(blocks):
        _row_lengths(m, pi, b * states // blocks, (b + 1) * states // blocks, start)
    for s in range(states):
        start[s + 1] += start[s]
    indices = np.empty(start[states], m.indices.dtype)
    data = np.empty(start[states])
    rows = start.view(np.uint64)
    for b in prange(blocks):
        _gather(m, pi, b * states // blocks, (b + 1) * states // blocks, start, indices, data)
    low = np.zeros(blocks)
    high = np.zeros(blocks)
    for i in range(most):
        for b in prange(blocks):
            low[b], high[b] = _evaluate(
                rows, indices, data, pi.reward,
                b * states // blocks, (b + 1) * states // blocks, v, out,
            )  # fmt: skip
        if high.max() - low.min() <= stop:
            return i + 1
        v, out = out, v
    return most


@njit(cache=True, nogil=True)
def follow_policy_serial(m: Any, pi: Any, v: Any, out: Any, most: Any, stop: Any) -> Any:
    """`follow_policy` on one thread and in place, for small problems."""
    for i in range(most):
        low, high = math.inf, -math.inf
        for s in range(len(v)):
            out[s] = pi.reward[s] + m.discount * _expected_next(m, pi, s, v)
            low = min(low, out[s] - v[s])
            high = max(high, out[s] - v[s])
        if high - low <= stop:
            return i + 1
        v, out = out, v
    return most


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
        for k in range(m.indptr[first + at], m.indptr[first + at + 1]):
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
    """verdict = +1 where low <= Q* <= high proves an action in the support, -1 where out of it."""
    row = np.empty(width)
    work = np.empty(width)
    at = np.empty(width, np.uint32)
    for s in range(len(m.pointer) - 1):
        first = m.pointer[s]
        n = m.pointer[s + 1] - first
        if n == 0:
            continue
        if alpha > 0.0 and (q <= 1.0 or n == 1):
            verdict[first : first + n] = 1
            continue
        if alpha == 0.0:
            # an optimal action: nothing can be above it
            out = low[first : first + n].max()
            best = high[first : first + n].argmax()
            second = -math.inf
            for i in range(n):
                if i != best:
                    second = max(second, high[first + i])
            for i in range(n):
                rest = second if i == best else high[first + best]
                verdict[first + i] = 1 if low[first + i] >= rest else 0
                if high[first + i] < out:
                    verdict[first + i] = -1
            continue
        guard = 1e-15 * (n + 8.0)
        row[:n] = low[first : first + n]
        top = row[:n].max()
        t, _, _ = regularized_maximum(row, n, top, alpha, q, work, at)
        out = top + alpha * (t - 1.0 / (q - 1.0)) - guard * (abs(top) + alpha)
        row[:n] = high[first : first + n]
        top = row[:n].max()
        t, _, _ = regularized_maximum(row, n, top, alpha, q, work, at)
        inside = top + alpha * (t - 1.0 / (q - 1.0)) + guard * (abs(top) + alpha)
        for i in range(n):
            if high[first + i] <= out:
                verdict[first + i] = -1
            elif low[first + i] > inside:
                verdict[first + i] = 1
