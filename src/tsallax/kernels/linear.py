"""Sparse linear algebra for a fixed policy, compiled: the matrix I - gamma T_pi and its ILU(0).

The matrix is an M-matrix (its off-diagonal entries are not positive and its rows dominate), so the
incomplete factors exist and are stable.  Where the transitions form a tree and the states are
numbered from the leaves, they are the exact factors.
"""

from typing import Any

import numpy as np
from numba import njit, prange

_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def policy_matrix(m: Any, weight: Any, order: Any) -> Any:
    """I - gamma T_pi as CSR arrays, sorted and merged, its i-th row and column state order[i]."""
    states = len(order)
    rank = np.empty(states, np.uint32)
    bound = states
    for i in range(states):
        rank[order[i]] = i
        for pair in range(m.pointer[i], m.pointer[i + 1]):
            if weight[pair] > 0.0:
                bound += m.indptr[pair + 1] - m.indptr[pair]
    start = np.zeros(states + 1, np.int64)
    column = np.empty(bound, np.uint32)  # more than merged rows need, and never touched there
    value = np.empty(bound)
    where = np.full(states, -1, np.int64)
    size = 0
    for i in range(states):
        begin = size
        size = _add(column, value, where, begin, size, np.uint32(i), 1.0)
        s = order[i]
        for pair in range(m.pointer[s], m.pointer[s + _ONE]):
            if weight[pair] > 0.0:
                scale = -m.discount * weight[pair]
                for k in range(m.indptr[pair], m.indptr[pair + 1]):
                    j = rank[m.indices[k]]
                    size = _add(column, value, where, begin, size, j, scale * m.data[k])
        _sort(column, value, begin, size)
        start[i + 1] = size
    return start, column[:size], value[:size]


@njit(cache=True, nogil=True)
def _add(column: Any, value: Any, where: Any, begin: Any, size: Any, j: Any, x: Any) -> Any:
    """Add x to column j of the row that starts at `begin`; the size of all rows after it."""
    at = where[j]
    if at >= begin:
        value[at] += x
        return size
    where[j] = size
    column[size] = j
    value[size] = x
    return size + 1


@njit(cache=True, nogil=True)
def _sort(column: Any, value: Any, begin: Any, end: Any) -> None:
    """Sort a row by its columns."""
    if end - begin > 32:
        by_column = np.argsort(column[begin:end])
        column[begin:end] = column[begin:end][by_column]
        value[begin:end] = value[begin:end][by_column]
        return
    for j in range(begin + 1, end):
        c, x = column[j], value[j]
        k = j
        while k > begin and column[k - 1] > c:
            column[k] = column[k - 1]
            value[k] = value[k - 1]
            k -= 1
        column[k] = c
        value[k] = x


@njit(cache=True, nogil=True, error_model="numpy")
def incomplete_lu(start: Any, indices: Any, data: Any) -> Any:
    """ILU(0): L and U in one array on the matrix's own pattern, with the place of each diagonal.

    Kept in float32: it is only a preconditioner, and half the bytes are half the time to apply it.
    """
    states = len(start) - 1
    factor = data.copy()
    diagonal = np.empty(states, np.int64)
    where = np.full(states, -1, np.int64)
    for i in range(states):
        for k in range(start[i], start[i + 1]):
            where[indices[k]] = k
        k = start[i]
        while indices[k] < i:
            row = indices[k]
            factor[k] /= factor[diagonal[row]]
            for j in range(diagonal[row] + 1, start[row + 1]):
                at = where[indices[j]]
                if at >= start[i]:
                    factor[at] -= factor[k] * factor[j]
            k += 1
        diagonal[i] = k
    return factor.astype(np.float32), diagonal


@njit(cache=True, nogil=True, error_model="numpy")
def solve_lu(start: Any, indices: Any, factor: Any, diagonal: Any, b: Any, x: Any) -> None:
    """x = U⁻¹ L⁻¹ b."""
    states = len(b)
    for i in range(states):
        total = b[i]
        for k in range(start[i], diagonal[i]):
            total -= factor[k] * x[indices[k]]
        x[i] = total
    for i in range(states - 1, -1, -1):
        total = x[i]
        for k in range(diagonal[i] + _ONE, start[i + 1]):
            total -= factor[k] * x[indices[k]]
        x[i] = total / factor[diagonal[i]]


@njit(cache=True, nogil=True, error_model="numpy")
def solve_lu_transposed(
    start: Any, indices: Any, factor: Any, diagonal: Any, b: Any, x: Any
) -> None:
    """x = L⁻ᵀ U⁻ᵀ b."""
    x[:] = b
    states = len(b)
    for i in range(states):
        x[i] /= factor[diagonal[i]]
        for k in range(diagonal[i] + _ONE, start[i + 1]):
            x[indices[k]] -= factor[k] * x[i]
    for i in range(states - 1, -1, -1):
        for k in range(start[i], diagonal[i]):
            x[indices[k]] -= factor[k] * x[i]


@njit(cache=True, nogil=True)
def multiply_rows(
    start: Any, indices: Any, data: Any, begin: Any, end: Any, x: Any, out: Any
) -> None:
    """out = A x in the rows begin..end."""
    for i in range(begin, end):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += data[k] * x[indices[k]]
        out[i] = total


@njit(cache=True, parallel=True, nogil=True)
def multiply(start: Any, indices: Any, data: Any, blocks: Any, x: Any, out: Any) -> None:
    """out = A x, on all threads."""
    states = len(x)
    for b in prange(blocks):
        multiply_rows(
            start, indices, data, b * states // blocks, (b + 1) * states // blocks, x, out
        )


@njit(cache=True, nogil=True)
def multiply_transposed(start: Any, indices: Any, data: Any, x: Any, out: Any) -> None:
    """out = Aᵀ x."""
    out[:] = 0.0
    for i in range(len(x)):
        for k in range(start[i], start[i + 1]):
            out[indices[k]] += data[k] * x[i]


@njit(cache=True, nogil=True)
def add_scaled(a: Any, x: Any, out: Any) -> None:
    """out += a x."""
    for i in range(len(out)):
        out[i] += a * x[i]


@njit(cache=True, nogil=True)
def renew(r: Any, beta: Any, omega: Any, v: Any, p: Any) -> None:
    """p = r + beta (p - omega v)."""
    for i in range(len(p)):
        p[i] = r[i] + beta * (p[i] - omega * v[i])


@njit(cache=True, nogil=True)
def largest(r: Any) -> Any:
    """max|r|, NaN where one is."""
    most = 0.0
    for i in range(len(r)):
        size = abs(r[i])
        most = most if size <= most else size
        if size != size:
            return size
    return most
