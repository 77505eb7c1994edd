"""Sweeps in blocks, the Gauss-Seidel sweep, and numbers that are not finite."""

import math

import numpy as np
import pytest

from planning_problems import BY_NAME
from tsallax import Soft, Sparse, Tsallis, bellman, solve
from tsallax.planning.bellman import kernel_arrays
from tsallax.planning.kernels.bellman_sweep import extremes, relax, sweep, sweep_range
from tsallax.planning.kernels.mdp_arrays import Policy

KINDS = [(None, None), (0.5, None), (0.5, 1.0), (0.5, 1.5)]


def swept(mdp, alpha, q, v, blocks=None):
    start = np.full(mdp.n_states, -0.5 if q is None else 0.0)
    out = np.full(mdp.n_states, np.nan)
    policy = Policy(np.full(mdp.n_pairs, np.nan), out.copy(), out.copy())
    common = kernel_arrays(mdp), alpha, q, mdp.max_actions
    if blocks is None:
        found = sweep_range(*common, 0, mdp.n_states, v, start, out, policy)
    else:
        found = sweep(*common, blocks, v, start, out, policy)
    return found, out, policy


@pytest.mark.parametrize(("alpha", "q"), KINDS)
@pytest.mark.parametrize("name", ["terminal-ragged", "garnet"])
def test_blocks_change_no_bit_and_every_number_is_written(name, alpha, q):
    mdp = BY_NAME[name].mdp()
    v = np.where(mdp.terminal, 0.0, np.random.default_rng(1).normal(size=mdp.n_states))
    found, out, policy = swept(mdp, alpha, q, v)
    assert found[:2] == ((out - v)[~mdp.terminal].min(), (out - v)[~mdp.terminal].max())
    assert np.count_nonzero(policy.weights) <= found[2] + 2
    for blocks in (1, 3, 100):
        again, other, pi = swept(mdp, alpha, q, v, blocks)
        assert again == found
        assert np.array_equal(other, out)
        assert np.array_equal(pi.weights, policy.weights)
        assert np.array_equal(pi.rewards, policy.rewards)
        if alpha is not None and q != 1.0:
            assert np.array_equal(pi.thresholds, policy.thresholds)


@pytest.mark.parametrize(("alpha", "q"), KINDS)
def test_a_value_that_is_not_finite_shows_in_the_change(alpha, q):
    mdp = BY_NAME["garnet"].mdp()
    for bad in (np.nan, np.inf):
        v = np.zeros(mdp.n_states)
        v[2] = bad
        for blocks in (None, 3):
            low, high, _ = swept(mdp, alpha, q, v, blocks)[0]
            assert math.isnan(low)
            assert math.isnan(high)


def test_extremes_are_nan_where_one_is():
    assert extremes(np.array([1.0, -2.0]), np.array([3.0, 2.0])) == (-2.0, 3.0)
    assert np.isnan(extremes(np.array([1.0, np.nan]), np.array([3.0, 2.0]))).all()


@pytest.mark.parametrize("name", ["garnet", "terminal-ragged", "ending", "survival"])
def test_relax_solves_the_equation_of_each_state_in_turn(name):
    mdp = BY_NAME[name].mdp()
    v = np.where(mdp.terminal, 0.0, np.random.default_rng(2).normal(size=mdp.n_states))
    order = np.random.default_rng(3).permutation(mdp.n_states).astype(np.uint32)
    expected, rows = v.copy(), mdp.transitions.toarray()
    for s in order:
        pairs = range(mdp.pointer[s], mdp.pointer[s + 1])
        if pairs:
            values = [mdp.rewards[i] + mdp.discount * rows[i] @ expected for i in pairs]
            best = int(np.argmax(values))
            loop = rows[pairs[best], s]
            expected[s] += (values[best] - expected[s]) / (1 - mdp.discount * loop)
    relax(kernel_arrays(mdp), None, None, mdp.max_actions, order, v)
    np.testing.assert_allclose(v, expected, rtol=1e-13)


@pytest.mark.parametrize("regularizer", [Sparse(0.4), Soft(0.4), Tsallis(0.4, 1.5)], ids=str)
def test_relax_from_below_rises_and_stays_below_the_optimum(regularizer):
    mdp = BY_NAME["ending"].mdp()
    best = solve(mdp, regularizer, 1e-10)
    v = best.value - 3.0
    order = np.arange(mdp.n_states, dtype=np.uint32)
    q = None if regularizer.q == 2.0 else float(regularizer.q)
    alpha = float(regularizer.alpha)
    for _ in range(3):
        before, expected = v.copy(), bellman(mdp, regularizer, v)
        relax(kernel_arrays(mdp), alpha, q, mdp.max_actions, order, v)
        assert (v >= expected - 1e-12).all()
        assert (v >= before).all()
        assert (v <= best.upper + 1e-9).all()
