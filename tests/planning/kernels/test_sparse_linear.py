"""Sparse linear algebra of a policy against NumPy."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from planning_problems import policy_transitions
from tsallax.planning.bellman import kernel_arrays
from tsallax.planning.kernels import sparse_linear as kernel
from tsallax.problems import garnet


def csr(dense):
    matrix = csr_array(dense)
    return matrix.indptr.astype(np.uint32), matrix.indices.astype(np.uint32), matrix.data


def dominant(n, density, seed):
    """I - 0.9 T of a random substochastic matrix T."""
    rng = np.random.default_rng(seed)
    t = rng.random((n, n)) * (rng.random((n, n)) < density)
    return np.eye(n) - 0.9 * t / np.maximum(t.sum(axis=1, keepdims=True), 1.0)


def tridiagonal(n):
    return np.eye(n) - 0.45 * (np.eye(n, k=1) + np.eye(n, k=-1))


def test_incomplete_factors_of_a_tree_are_exact():
    dense = tridiagonal(40)
    start, indices, data = csr(dense)
    factor = data.copy()
    diagonal = kernel.incomplete_lu(start, indices, factor)
    assert np.array_equal(indices[diagonal], np.arange(40))
    b, x = np.random.default_rng(0).normal(size=40), np.empty(40)
    kernel.solve_lu(start, indices, factor, diagonal, b, x)
    np.testing.assert_allclose(dense @ x, b, rtol=0, atol=1e-14)
    kernel.solve_lu_transposed(start, indices, factor, diagonal, b, x)
    np.testing.assert_allclose(dense.T @ x, b, rtol=0, atol=1e-14)


def test_incomplete_factors_have_no_error_on_the_pattern():
    """(LU)_ij = A_ij wherever A is not 0, which defines ILU(0)."""
    dense = dominant(30, 0.2, 1)
    start, indices, data = csr(dense)
    factor = data.copy()
    kernel.incomplete_lu(start, indices, factor)
    packed = csr_array((factor, indices.astype(int), start.astype(int)), shape=(30, 30)).toarray()
    product = (np.tril(packed, -1) + np.eye(30)) @ np.triu(packed)
    np.testing.assert_allclose(product[dense != 0], dense[dense != 0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("blocks", [1, 3, 50])
def test_products_are_those_of_numpy(blocks):
    dense = dominant(30, 0.2, 2)
    x, out = np.random.default_rng(0).normal(size=30), np.empty(30)
    kernel.multiply(*csr(dense), blocks, x, out)
    np.testing.assert_allclose(out, dense @ x, rtol=0, atol=1e-14)
    kernel.multiply_transposed(*csr(dense), x, out)
    np.testing.assert_allclose(out, dense.T @ x, rtol=0, atol=1e-14)


def test_a_matrix_longer_than_estimated_grows():
    """A uniform policy over many actions merges more entries than an average row has."""
    mdp = garnet(50, 30, 2, discount=0.9)
    pi = np.full(mdp.n_pairs, 1 / 30)
    start, indices, data = kernel.policy_matrix(kernel_arrays(mdp), pi, np.zeros(0))
    assert len(data) > 1.1 * 50 * (1 + mdp.transitions.nnz / mdp.n_pairs)
    found = csr_array((data, indices.astype(int), start.astype(int)), shape=(50, 50)).toarray()
    expected = np.eye(50) - 0.9 * policy_transitions(mdp, pi)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 9])
def test_sums_and_updates_of_any_length(n):
    rng = np.random.default_rng(n)
    x, y, p = rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)
    assert kernel.dot(x, y) == pytest.approx(x @ y, abs=1e-15)
    assert kernel.max_abs(x) == (np.abs(x).max() if n else 0.0)
    out = y.copy()
    kernel.add_scaled(0.5, x, out)
    np.testing.assert_allclose(out, y + 0.5 * x, rtol=1e-15)
    out = p.copy()
    kernel.update_direction(x, 0.5, 0.25, y, out)
    np.testing.assert_allclose(out, x + 0.5 * (p - 0.25 * y), rtol=0, atol=1e-15)


@pytest.mark.parametrize("at", range(6))
def test_a_norm_with_nan_is_nan(at):
    x = np.ones(6)
    x[at] = np.nan
    assert np.isnan(kernel.max_abs(x))


@pytest.mark.parametrize("seed", range(4))
def test_the_work_of_a_factorisation_is_counted_exactly(seed):
    dense = dominant(25, 0.08, seed)
    pattern = (dense != 0) | (dense != 0).T
    matrix = csr_array(pattern)
    filled = pattern.copy()
    for k in range(25):
        below = np.flatnonzero(filled[k + 1 :, k]) + k + 1
        filled[np.ix_(below, below)] = True
    columns = np.tril(filled).sum(axis=0).astype(float)
    work = (columns**2).sum()
    assert kernel.factorization_work(matrix.indptr, matrix.indices, work) == work
    assert kernel.factorization_work(matrix.indptr, matrix.indices, 0.5 * work) == np.inf
