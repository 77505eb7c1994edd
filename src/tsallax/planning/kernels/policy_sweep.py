"""A fixed policy's own sweeps, compiled: v -> r_pi + alpha Omega(pi) + gamma T_pi v."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from tsallax.planning.kernels.bellman_sweep import extremes
from tsallax.planning.kernels.compilation import njit
from tsallax.planning.kernels.mdp_arrays import Floats, Index, expected_value
from tsallax.planning.kernels.row import entropy_of
from tsallax.planning.kernels.vectors import positive_bits, trailing_zeros

_NONE, _ONE, _CHUNK = np.uint64(0), np.uint64(1), np.uint64(64)


class PolicyRows(NamedTuple):
    """The rows of gamma T_pi: that of state s is first[s] <= k < last[s]."""

    first: Index
    last: Index
    indices: Index
    data: Floats


@njit()
def _expected_next(m: Any, weights: Any, s: Any, v: Any) -> Any:
    """sum_s' T_pi(s'|s) v(s')."""
    total = 0.0
    for i in range(m.pointer[s], m.pointer[s + 1]):
        if weights[i] > 0.0:
            total += weights[i] * expected_value(m, i, v)
    return total


@njit()
def policy_residual(m: Any, weights: Any, b: Any, v: Any, out: Any) -> None:
    """out = b - (I - gamma T_pi) v."""
    for s in range(len(v)):
        out[s] = b[s] - v[s] + m.discount * _expected_next(m, weights, s, v)


@njit()
def entropies(pointer: Any, q: Any, weights: Any, omega: Any) -> None:
    """omega[s] = Omega of the policy in state s."""
    for s in range(len(pointer) - 1):
        first, last = pointer[s], pointer[s + 1]
        omega[s] = entropy_of(weights[first:last], last - first, q)


@njit()
def _sweep_range(m: Any, pi: Any, begin: Any, end: Any, v: Any, out: Any) -> Any:
    """out = r_pi + alpha Omega(pi) + gamma T_pi v in begin..end; min and max of out - v."""
    low, high = math.inf, -math.inf
    for s in range(begin, end):
        out[s] = pi.rewards[s] + m.discount * _expected_next(m, pi.weights, s, v)
        low = min(low, out[s] - v[s])
        high = max(high, out[s] - v[s])
    return low, high


@njit()
def _copy_and_sweep_range(
    m: Any, pi: Any, begin: Any, end: Any, v: Any, out: Any, rows: Any
) -> Any:
    """`_sweep_range` that also copies the rows of gamma T_pi, one after the other."""
    low, high = math.inf, -math.inf
    at = np.uint64(m.indptr[m.pointer[begin]])
    for s in range(begin, end):
        total = pi.rewards[s]
        rows.first[s] = at
        i, last = np.uint64(m.pointer[s]), np.uint64(m.pointer[s + 1])
        while i < last:
            bits = positive_bits(pi.weights, i, min(i + _CHUNK, last))
            while bits != _NONE:
                pair = i + trailing_zeros(bits)
                bits &= bits - _ONE
                scale = m.discount * pi.weights[pair]
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


@njit()
def _sweep_copied_range(rows: Any, pi: Any, begin: Any, end: Any, v: Any, out: Any) -> Any:
    """`_sweep_range` with the rows that `_copy_and_sweep_range` wrote."""
    low, high = math.inf, -math.inf
    for s in range(begin, end):
        total = pi.rewards[s]
        for k in range(rows.first[s], rows.last[s]):
            total += rows.data[k] * v[rows.indices[k]]
        out[s] = total
        low = min(low, total - v[s])
        high = max(high, total - v[s])
    return low, high


@njit(parallel=True)
def policy_sweeps(
    m: Any, pi: Any, blocks: Any, copy_rows: Any, v: Any, out: Any, max_sweeps: Any, max_span: Any
) -> Any:
    """v <- r_pi + alpha Omega(pi) + gamma T_pi v until the change spans at most `max_span`.

    At most `max_sweeps` times, using v and out in turn; returns the number of sweeps (odd: the
    result is in out) and the span, max - min over the states, of the last change.
    With `copy_rows`, the policy's rows are copied in the first sweep: read in order, they are three
    times as fast, where they are a small part of all rows.
    """
    states = len(v)
    size = len(m.data) if copy_rows else 0
    rows = PolicyRows(
        np.empty(states, np.uint64), np.empty(states, np.uint64),
        np.empty(size, m.indices.dtype), np.empty(size),
    )  # fmt: skip
    low = np.empty(blocks)
    high = np.empty(blocks)
    for i in range(max_sweeps):
        for b in prange(blocks):
            begin, end = b * states // blocks, (b + 1) * states // blocks
            if not copy_rows:
                low[b], high[b] = _sweep_range(m, pi, begin, end, v, out)
            elif i == 0:
                low[b], high[b] = _copy_and_sweep_range(m, pi, begin, end, v, out, rows)
            else:
                low[b], high[b] = _sweep_copied_range(rows, pi, begin, end, v, out)
        least, largest = extremes(low, high)
        if largest - least <= max_span or i + 1 == max_sweeps:
            return i + 1, largest - least
        v, out = out, v
    return 0, math.nan


@njit()
def policy_sweeps_serial(m: Any, pi: Any, v: Any, out: Any, max_sweeps: Any, max_span: Any) -> Any:
    """`policy_sweeps` on one thread and without copies, for small problems."""
    for i in range(max_sweeps):
        low, high = _sweep_range(m, pi, 0, len(v), v, out)
        if high - low <= max_span or i + 1 == max_sweeps:
            return i + 1, high - low
        v, out = out, v
    return 0, math.nan
