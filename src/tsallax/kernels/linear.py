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
def policy_matrix(m: Any, pi: Any, order: Any) -> Any:
    """I - gamma T_pi as CSR arrays, sorted and merged, its i-th row and column state order[i]."""
    states = len(order)
    rank = np.empty(states, np.uint32)
    bound = 0
    for i in range(states):
        s = np.int64(order[i])
        rank[s] = i
        bound += 1
        first = m.pointer[s]
        for j in range(first, first + pi.size[s]):
            k = first + pi.position[j]
            bound += m.indptr[k + 1] - m.indptr[k]
    start = np.zeros(states + 1, np.int64)
    indices = np.empty(bound, np.uint32)
    data = np.empty(bound)
    where = np.full(states, -1, np.int64)
    size = 0
    for i in range(states):
        s = np.int64(order[i])
        begin = size
        indices[size] = i
        data[size] = 1.0
        where[i] = size
        size += 1
        first = m.pointer[s]
        for j in range(first, first + pi.size[s]):
            pair = first + pi.position[j]
            scale = -m.discount * pi.weight[j]
            for k in range(m.indptr[pair], m.indptr[pair + 1]):
                column = rank[m.indices[k]]
                at = where[column]
                if at < begin:
                    at = size
                    where[column] = size
                    indices[size] = column
                    data[size] = 0.0
                    size += 1
                data[at] += scale * m.data[k]
        if size - begin <= 32:
            for j in range(begin + 1, size):
                column, value = indices[j], data[j]
                k = j
                while k > begin and indices[k - 1] > column:
                    indices[k] = indices[k - 1]
                    data[k] = data[k - 1]
                    k -= 1
                indices[k] = column
                data[k] = value
        else:
            by_column = np.argsort(indices[begin:size])
            indices[begin:size] = indices[begin:size][by_column]
            data[begin:size] = data[begin:size][by_column]
        start[i + 1] = size
    return start, indices[:size].copy(), data[:size].copy()


@njit(cache=True, nogil=True)
def incomplete_lu(start: Any, indices: Any, data: Any) -> Any:
    """ILU(0): L and U in one array on the matrix's own pattern, with the place of each diagonal."""
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
    return factor, diagonal


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def solve_lu_transposed(start: Any, indices: Any, factor: Any, diagonal: Any, b: Any, x: Any) -> None:
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


@njit(cache=True, parallel=True, nogil=True)
def multiply(start: Any, indices: Any, data: Any, blocks: Any, x: Any, out: Any) -> None:
    """out = A x."""
    states = len(x)
    for b in prange(blocks):
        for i in range(b * states // blocks, (b + 1) * states // blocks):
            total = 0.0
            for k in range(start[i], start[i + 1]):
                total += data[k] * x[indices[k]]
            out[i] = total


@njit(cache=True, nogil=True)
def multiply_transposed(start: Any, indices: Any, data: Any, x: Any, out: Any) -> None:
    """out = Aᵀ x."""
    out[:] = 0.0
    for i in range(len(x)):
        for k in range(start[i], start[i + 1]):
            out[indices[k]] += data[k] * x[i]
