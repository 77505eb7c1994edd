"""The linear systems of a fixed policy: its value (I - gamma T_pi) v = b and its visitation.

Solved by BiCGSTAB (van der Vorst 1992), preconditioned by an incomplete LU of the matrix with the
states numbered so that a step of the policy mostly leads to a later one.  BiCGSTAB stalls where a
policy moves in long cycles: use `PolicySystem.solve_exactly` there.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tsallax.planning.kernels import PARALLEL_TRANSITIONS, thread_blocks
from tsallax.planning.kernels import sparse_linear as kernel
from tsallax.planning.kernels.breadth_first import breadth_first_order
from tsallax.planning.kernels.mdp_arrays import Floats, MDPArrays

MAX_ITERATIONS = 100
"""Steps of BiCGSTAB before it is given up."""

_SYMMETRIC: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True},
}  # fmt: skip

Order = NDArray[np.uint32]
"""A numbering of the states: the i-th is order[i]."""
Map = Callable[[NDArray[Any], NDArray[Any]], None]
"""f(x, out)"""
Matrix = tuple[NDArray[np.unsignedinteger], NDArray[np.uint32], NDArray[Any]]
"""CSR arrays: where rows start, columns, numbers."""


def policy_matrix(
    m: MDPArrays, pi: Floats, precision: type[np.floating[Any]] = np.float64
) -> Matrix:
    """A = I - gamma T_pi, its rows not sorted."""
    matrix: Matrix = kernel.policy_matrix(m, pi, np.zeros(0, precision))
    return matrix


def order_to_ends(m: MDPArrays) -> Order:
    """The states by their distance to a terminal state, the farthest first."""
    nearest_first, _ = breadth_first_order(m, np.flatnonzero(m.pointer[1:] == m.pointer[:-1]))
    order: Order = nearest_first[::-1].copy()
    return order


def permuted(matrix: Matrix, order: Order) -> Matrix:
    """The matrix whose i-th row and column are those of order[i], its rows sorted."""
    rank, start = kernel.renumber(matrix[0], order)
    new = (start, np.empty_like(matrix[1]), np.empty_like(matrix[2]))
    if len(matrix[2]) < PARALLEL_TRANSITIONS:
        kernel.permute_rows(matrix, order, rank, 0, len(order), new)
    else:
        kernel.permute(matrix, order, rank, thread_blocks(), new)
    return new


class PolicySystem:
    """The matrix A = I - gamma T_pi of a policy, factored once and solved for any right side.

    `order` is a numbering of the states for which incomplete factors are good.
    """

    def __init__(
        self,
        m: MDPArrays,
        pi: Floats,
        order: Order,
        precision: type[np.floating[Any]] = np.float64,
    ) -> None:
        self._order = order
        self._matrix = matrix = permuted(policy_matrix(m, pi, precision), order)
        start, indices, data = matrix
        factor = data.copy()
        diagonal = kernel.incomplete_lu(start, indices, factor)
        # factors are applied in single precision, in half the time; they are computed in the
        # matrix's own, since with a discount near 1 pivots would cancel
        factors = (start, indices, factor.astype(np.float32, copy=False), diagonal)
        multiply = (
            partial(kernel.multiply_rows, *matrix, 0, len(order))
            if len(data) < PARALLEL_TRANSITIONS
            else partial(kernel.multiply, *matrix, thread_blocks())
        )
        multiply_transposed = partial(kernel.multiply_transposed, *matrix)
        self._maps: dict[bool, tuple[Map, Map]] = {
            False: (multiply, partial(kernel.solve_lu, *factors)),
            True: (multiply_transposed, partial(kernel.solve_lu_transposed, *factors)),
        }  # x -> Ax and the preconditioner, or those of A', by whether it is transposed

    def solve(self, b: Floats, tolerance: float, transposed: bool = False) -> tuple[Floats, float]:
        """v with max|b - Av| <= tolerance, or the best that was found, and about max|b - Av|.

        Both are to the matrix's precision; A is transposed if asked for.
        """
        size = float(kernel.max_abs(b))
        if not 0.0 < size < np.inf:
            return np.zeros_like(b), size
        vectors = np.empty((8, len(b)), self._matrix[2].dtype)
        vectors[0] = b[self._order] / size  # within the range of single precision
        with np.errstate(all="ignore"):  # a breakdown shows in the residual
            best, residual = bicgstab(*self._maps[transposed], vectors, tolerance / size)
        out = np.empty_like(b)
        out[self._order] = best
        out *= size
        return out, residual * size

    def solve_exactly(self, b: Floats, transposed: bool = False) -> Floats:
        """v with Av = b, or A'v = b, to the matrix's precision, by a complete factorisation.

        The matrix is diagonally dominant and needs no pivoting.
        """
        out = np.empty_like(b)
        out[self._order] = self._factors.solve(b[self._order], trans="T" if transposed else "N")
        return out

    def residual_transposed(self, b: Floats, x: Floats) -> Floats:
        """b - A'x."""
        out, product = np.empty_like(b), np.empty_like(b)
        kernel.multiply_transposed(*self._matrix, x[self._order], product)
        out[self._order] = b[self._order] - product
        return out

    def factorization_work(self, limit: float) -> float:
        """About the multiplications of a complete factorisation, infinite if more than `limit`.

        By a symbolic factorisation in the reverse Cuthill-McKee order, which takes no longer than
        the matrix is large or the limit allows.  `solve_exactly` orders by minimum degree, which
        needs fewer multiplications but, in random graphs, minutes to compute.
        """
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        pattern = abs(self._columns) + abs(self._columns).T
        order = reverse_cuthill_mckee(pattern.tocsr(), symmetric_mode=True)
        pattern = pattern.tocsr()[order][:, order].tocsr()
        return float(kernel.factorization_work(pattern.indptr, pattern.indices, limit))

    @cached_property
    def _columns(self) -> Any:
        """The matrix in double precision, as SciPy's CSC."""
        start, columns = (array.astype(np.int64) for array in self._matrix[:2])
        data = self._matrix[2].astype(np.float64, copy=False)
        return csr_array((data, columns, start), shape=(len(self._order),) * 2).tocsc()

    @cached_property
    def _factors(self) -> Any:
        from scipy.sparse.linalg import splu

        return splu(self._columns, **_SYMMETRIC)


def bicgstab(
    matrix: Map, precondition: Map, vectors: NDArray[Any], tolerance: float
) -> tuple[NDArray[Any], float]:
    """x with max|b - Ax| <= tolerance, or the best that was found, and max|b - Ax|; b = vectors[0].

    Ends after `MAX_ITERATIONS`, or where the residual diverges.  All eight vectors are overwritten.
    """
    best: NDArray[Any]
    r, x, best, shadow, p, v, y, t = vectors
    x[:] = best[:] = p[:] = v[:] = 0.0
    shadow[:] = r
    rho = alpha = omega = 1.0
    smallest = float(kernel.max_abs(r))
    for _ in range(MAX_ITERATIONS):
        if smallest <= tolerance:
            break
        rho, previous = kernel.dot(shadow, r), rho
        kernel.update_direction(r, (rho / previous) * (alpha / omega), omega, v, p)
        precondition(p, y)
        matrix(y, v)
        alpha = rho / _safe(kernel.dot(shadow, v))
        kernel.add_scaled(alpha, y, x)
        kernel.add_scaled(-alpha, v, r)
        precondition(r, y)
        matrix(y, t)
        omega = _safe(kernel.dot(t, r) / _safe(kernel.dot(t, t)))
        kernel.add_scaled(omega, y, x)
        kernel.add_scaled(-omega, t, r)
        norm = float(kernel.max_abs(r))
        if norm < smallest:
            best[:] = x
            smallest = norm
        if not norm < 1e8 * smallest:
            break
        if abs(rho) < 1e-280:  # r is orthogonal to the shadow residual: restart from r
            shadow[:] = r
            p[:] = v[:] = 0.0
            rho = alpha = omega = 1.0
    return best, smallest


def _safe(x: float) -> float:
    return x if x != 0.0 else 1e-300
