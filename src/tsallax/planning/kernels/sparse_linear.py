"""Sparse linear algebra for a fixed policy, compiled: the matrix I - gamma T_pi and its ILU(0).

The matrix is an M-matrix (its off-diagonal entries are not positive and its rows dominate), so the
incomplete factors exist and are stable.  Where the transitions form a tree and the states are
numbered from the leaves, they are the exact factors.
"""

from typing import Any

import numpy as np
from numba import prange

from tsallax.planning.kernels.compilation import njit

_ONE = np.uint64(1)


@njit()
def policy_matrix(m: Any, weight: Any, like: Any) -> Any:
    """I - gamma T_pi as CSR arrays, its rows not sorted, its numbers of the type of `like`.

    A plain tuple: Ctrl-C while Numba makes a named one, which runs Python, ends the process.
    """
    states = len(m.pointer) - 1
    start = np.zeros(states + 1, m.indptr.dtype)
    capacity = int(1.1 * states * (1.0 + len(m.data) / max(len(weight), 1)))  # an estimate
    indices = np.empty(capacity, np.uint32)
    data = np.empty(capacity, like.dtype)
    after = np.zeros(states, m.indptr.dtype)  # last position of each column, plus one
    end = np.uint64(0)
    for s in range(states):
        begin = end
        row = m.indptr[m.pointer[s + 1]] - m.indptr[m.pointer[s]]
        needed = np.int64(end) + np.int64(row) + 1
        if needed > len(indices):
            indices, data = _grown(indices, needed, end), _grown(data, needed, end)
        indices[end] = s
        data[end] = 1.0
        end += _ONE
        after[s] = end
        for i in range(m.pointer[s], m.pointer[s + 1]):
            if weight[i] > 0.0:
                scale = -m.discount * weight[i]
                for k in range(m.indptr[i], m.indptr[i + _ONE]):
                    j = m.indices[k]
                    if after[j] > begin:
                        data[after[j] - _ONE] += scale * m.data[k]
                    else:
                        indices[end] = j
                        data[end] = scale * m.data[k]
                        end += _ONE
                        after[j] = end
        start[s + 1] = end
    return start, indices[:end], data[:end]


@njit()
def _grown(array: Any, needed: Any, used: Any) -> Any:
    """A longer copy: 1.5 times the length, or `needed` where that is more."""
    out = np.empty(max(needed, len(array) + len(array) // 2), array.dtype)
    for i in range(used):
        out[i] = array[i]
    return out


@njit()
def renumber(start: Any, order: Any) -> Any:
    """(rank, start): the position of every state in `order`, and where its row then starts."""
    rank = np.empty(len(order), np.uint32)
    new_start = np.empty_like(start)
    new_start[0] = 0
    for i in range(len(order)):
        s = order[i]
        rank[s] = i
        new_start[i + 1] = new_start[i] + start[s + _ONE] - start[s]
    return rank, new_start


@njit()
def permute_rows(old: Any, order: Any, rank: Any, begin: Any, end: Any, new: Any) -> None:
    """Rows begin..end of the matrix with its i-th row and column those of order[i], sorted."""
    old_start, old_indices, old_data = old
    start, indices, data = new
    for i in range(begin, end):
        first = last = np.int64(start[i])
        for k in range(old_start[order[i]], old_start[order[i] + _ONE]):
            indices[last] = rank[old_indices[k]]
            data[last] = old_data[k]
            last += 1
        _sort(indices, data, first, last)


@njit(parallel=True)
def permute(old: Any, order: Any, rank: Any, blocks: Any, new: Any) -> None:
    """`permute_rows` for all rows, on all threads."""
    states = len(order)
    for b in prange(blocks):
        permute_rows(old, order, rank, b * states // blocks, (b + 1) * states // blocks, new)


@njit(forceinline=True)
def _sort(indices: Any, data: Any, begin: Any, end: Any) -> None:
    """Sort a row by its columns: Shell's sort, which for a short row is an insertion."""
    gap = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for j in range(begin + gap, end):
            column, x = indices[j], data[j]
            k = j
            while k >= begin + gap and indices[k - gap] > column:
                indices[k] = indices[k - gap]
                data[k] = data[k - gap]
                k -= gap
            indices[k] = column
            data[k] = x
        gap //= 3


@njit(error_model="numpy")
def incomplete_lu(start: Any, indices: Any, factor: Any) -> Any:
    """ILU(0), in place: L and U on the matrix's own pattern; returns where the diagonal is."""
    states = len(start) - 1
    diagonal = np.empty(states, start.dtype)
    after = np.zeros(states, start.dtype)  # position of each column in the row, plus one
    for i in range(states):
        for k in range(start[i], start[i + 1]):
            after[indices[k]] = k + _ONE
        left = np.uint64(start[i])
        while indices[left] < i:
            row = np.uint64(indices[left])
            factor[left] /= factor[diagonal[row]]
            for k in range(diagonal[row] + _ONE, start[row + _ONE]):
                at = after[indices[k]]
                if at > start[i]:
                    factor[at - _ONE] -= factor[left] * factor[k]
            left += _ONE
        diagonal[i] = left
    return diagonal


@njit(error_model="numpy")
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


@njit(error_model="numpy")
def solve_lu_transposed(
    start: Any, indices: Any, factor: Any, diagonal: Any, b: Any, x: Any
) -> None:
    """x = L⁻ᵀ U⁻ᵀ b."""
    states = len(b)
    for i in range(states):
        x[i] = b[i]
    for i in range(states):
        x[i] /= factor[diagonal[i]]
        for k in range(diagonal[i] + _ONE, start[i + 1]):
            x[indices[k]] -= factor[k] * x[i]
    for i in range(states - 1, -1, -1):
        for k in range(start[i], diagonal[i]):
            x[indices[k]] -= factor[k] * x[i]


@njit()
def factorization_work(start: Any, indices: Any, limit: Any) -> Any:
    """The multiplications of a complete LU of a matrix with a symmetric pattern, in its order.

    The sum of the squared lengths of the columns of L, counted along the elimination tree (Liu
    1990); infinite once it is known to exceed `limit`.
    """
    states = len(start) - 1
    parent = np.full(states, -1, np.int64)
    ancestor = np.full(states, -1, np.int64)
    for i in range(states):
        for k in range(start[i], start[i + 1]):
            j = np.int64(indices[k])
            while j != -1 and j < i:
                following = ancestor[j]
                ancestor[j] = i
                if following == -1:
                    parent[j] = i
                j = following
    visited = np.full(states, -1, np.int64)
    length = np.ones(states)
    work = 0.0
    for i in range(states):
        visited[i] = i
        for k in range(start[i], start[i + 1]):
            j = np.int64(indices[k])
            while j < i and visited[j] != i:
                visited[j] = i
                work += 2.0 * length[j] + 1.0
                length[j] += 1.0
                j = parent[j]
        if work > limit:
            return np.inf
    return work + states


@njit()
def multiply_rows(
    start: Any, indices: Any, data: Any, begin: Any, end: Any, x: Any, out: Any
) -> None:
    """out = A x in the rows begin..end."""
    for i in range(begin, end):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += data[k] * x[indices[k]]
        out[i] = total


@njit(parallel=True)
def multiply(start: Any, indices: Any, data: Any, blocks: Any, x: Any, out: Any) -> None:
    """out = A x, on all threads."""
    states = len(x)
    for b in prange(blocks):
        multiply_rows(
            start, indices, data, b * states // blocks, (b + 1) * states // blocks, x, out
        )


@njit()
def multiply_transposed(start: Any, indices: Any, data: Any, x: Any, out: Any) -> None:
    """out = Aᵀ x."""
    for i in range(len(out)):
        out[i] = 0.0
    for i in range(len(x)):
        for k in range(start[i], start[i + 1]):
            out[indices[k]] += data[k] * x[i]


@njit()
def dot(x: Any, y: Any) -> Any:
    """The sum of all x[i] y[i], in double precision and four running sums."""
    a = b = c = d = 0.0
    last = len(x) - len(x) % 4
    for i in range(0, last, 4):
        a += np.float64(x[i]) * y[i]
        b += np.float64(x[i + 1]) * y[i + 1]
        c += np.float64(x[i + 2]) * y[i + 2]
        d += np.float64(x[i + 3]) * y[i + 3]
    for i in range(last, len(x)):
        a += np.float64(x[i]) * y[i]
    return (a + b) + (c + d)


@njit()
def add_scaled(a: Any, x: Any, out: Any) -> None:
    """out += a x."""
    for i in range(len(out)):
        out[i] += a * x[i]


@njit()
def update_direction(r: Any, beta: Any, omega: Any, v: Any, p: Any) -> None:
    """p = r + beta (p - omega v)."""
    for i in range(len(p)):
        p[i] = r[i] + beta * (p[i] - omega * v[i])


@njit()
def max_abs(r: Any) -> Any:
    """max|r|, NaN where one is."""
    a = b = c = d = total = 0.0
    last = len(r) - len(r) % 4
    for i in range(0, last, 4):
        w, x, y, z = abs(r[i]), abs(r[i + 1]), abs(r[i + 2]), abs(r[i + 3])
        a, b, c, d = max(a, w), max(b, x), max(c, y), max(d, z)
        total += (w + x) + (y + z)
    for i in range(last, len(r)):
        a = max(a, abs(r[i]))
        total += abs(r[i])
    return max(a, b, c, d) if total == total else total
