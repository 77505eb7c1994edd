"""The linear systems of a policy against dense algebra."""

import numpy as np
import pytest

from planning_problems import policy_transitions, random_policy
from tsallax.planning.bellman import kernel_arrays
from tsallax.planning.kernels import sparse_linear as kernel
from tsallax.planning.linear_systems import PolicySystem, permuted, policy_matrix
from tsallax.planning.mdp import MDP
from tsallax.problems import garnet

ROWS = [1, 3, 12, 60]
"""Successors of a pair: merged rows have up to 60 columns, three passes of Shell's sort."""


def dense(mdp, pi):
    return np.eye(mdp.n_states) - mdp.discount * policy_transitions(mdp, pi)


def as_dense(matrix):
    start, indices, data = matrix
    out = np.zeros((len(start) - 1, len(start) - 1))
    for i in range(len(out)):
        columns = indices[start[i] : start[i + 1]]
        assert (np.diff(columns.astype(np.int64)) > 0).all(), "sorted, and each column once"
        out[i, columns] = data[start[i] : start[i + 1]]
    return out


@pytest.mark.parametrize("successors", ROWS)
def test_the_matrix_of_a_policy_in_any_order_is_that_of_dense_algebra(successors):
    mdp = garnet(60, 4, successors, discount=0.9, seed=successors)
    pi = random_policy(mdp, successors)
    order = np.random.default_rng(1).permutation(60).astype(np.uint32)
    expected = dense(mdp, pi)[np.ix_(order, order)]
    old = policy_matrix(kernel_arrays(mdp), pi)
    assert np.allclose(as_dense(permuted(old, order)), expected, rtol=0, atol=1e-15)
    rank, start = kernel.renumber(old[0], order)
    new = (start, np.empty_like(old[1]), np.empty_like(old[2]))
    kernel.permute(old, order, rank, 100, new)  # on all threads, and more blocks than states
    assert np.array_equal(as_dense(new), as_dense(permuted(old, order)))


@pytest.mark.parametrize(("precision", "accuracy"), [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_a_system_is_solved_to_its_precision_at_any_scale(precision, accuracy, scale):
    mdp = garnet(60, 4, 5, discount=0.95)
    pi, order = random_policy(mdp, 0), np.arange(60, dtype=np.uint32)[::-1].copy()
    system = PolicySystem(kernel_arrays(mdp), pi, order, precision)
    b = scale * np.random.default_rng(0).normal(size=60)
    stop = accuracy * float(np.abs(b).max())
    assert np.abs(b - dense(mdp, pi) @ system.solve(b, stop)[0]).max() < 10 * stop
    assert (
        np.abs(b - dense(mdp, pi).T @ system.solve(b, stop, transposed=True)[0]).max() < 10 * stop
    )


def test_bicgstab_restarts_where_the_residual_is_orthogonal_to_the_shadow_residual():
    """As from a state that no other leads to, at once."""
    n = 400
    rows = np.zeros((n + 1, 1, n + 1))
    rows[0, 0, 1] = 1.0
    rows[1:, 0, 1:] = garnet(n, 1, 3, discount=0.99).transitions.toarray()
    mdp = MDP(rows, np.zeros((n + 1, 1)), 0.99)
    pi, order = np.ones(n + 1), np.arange(n + 1, dtype=np.uint32)
    system = PolicySystem(kernel_arrays(mdp), pi, order)
    start = np.eye(n + 1)[0]
    found, _ = system.solve(start, 1e-10, transposed=True)
    assert np.abs(start - dense(mdp, pi).T @ found).max() < 1e-9
