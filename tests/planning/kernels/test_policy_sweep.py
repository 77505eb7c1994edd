"""A policy's own sweeps against dense algebra, with and without copied rows and threads."""

import math

import numpy as np
import pytest

from planning_problems import BY_NAME, policy_transitions, random_policy
from tsallax import Soft, Sparse, Tsallis
from tsallax.planning.bellman import kernel_arrays
from tsallax.planning.kernels import policy_sweep
from tsallax.planning.kernels.mdp_arrays import Policy
from tsallax.problems import garnet

PROBLEMS = {
    "ragged": BY_NAME["terminal-ragged"].mdp(),
    "garnet": garnet(30, 3, 4, discount=0.9),
    "wide": garnet(5, 150, 2, discount=0.9),
}
every_problem = pytest.mark.parametrize("mdp", PROBLEMS.values(), ids=PROBLEMS.keys())


def ways(mdp, policy):
    """The three ways to sweep, as functions of (v, out, max_sweeps, max_span)."""
    m = kernel_arrays(mdp)
    yield lambda *rest: policy_sweep.policy_sweeps_serial(m, policy, *rest)
    for copy_rows in (False, True):
        yield lambda *rest, c=copy_rows: policy_sweep.policy_sweeps(m, policy, 3, c, *rest)


@every_problem
def test_sweeps_are_those_of_dense_algebra(mdp):
    pi, rng = random_policy(mdp, 1), np.random.default_rng(0)
    rewards, v = rng.normal(size=mdp.n_states), rng.normal(size=mdp.n_states)
    policy, matrix = Policy(pi, rewards, np.empty(0)), mdp.discount * policy_transitions(mdp, pi)
    for sweep in ways(mdp, policy):
        for sweeps in (1, 2, 5):
            x, other, expected = v.copy(), np.empty_like(v), v
            for _ in range(sweeps):
                before, expected = expected, rewards + matrix @ expected
            found, span = sweep(x, other, sweeps, -1.0)
            assert found == sweeps
            np.testing.assert_allclose(other if found % 2 else x, expected, rtol=0, atol=1e-13)
            assert span == pytest.approx(np.ptp(expected - before), abs=1e-13)


def test_sweeps_end_when_the_change_is_uniform():
    mdp = PROBLEMS["garnet"]
    policy = Policy(random_policy(mdp, 1), np.ones(30), np.empty(0))
    for sweep in ways(mdp, policy):
        found, span = sweep(np.zeros(30), np.empty(30), 50, 1e-12)
        assert (found, span) == (1, 0.0)
        found, span = sweep(np.arange(30.0), np.empty(30), 50, 1e-3)
        assert 1 < found < 50
        assert span <= 1e-3


@every_problem
def test_the_residual_is_that_of_dense_algebra(mdp):
    pi, rng = random_policy(mdp, 2), np.random.default_rng(0)
    b, v = rng.normal(size=mdp.n_states), rng.normal(size=mdp.n_states)
    out = np.empty_like(v)
    policy_sweep.policy_residual(kernel_arrays(mdp), pi, b, v, out)
    expected = b - v + mdp.discount * policy_transitions(mdp, pi) @ v
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("regularizer", [Sparse(1.0), Soft(1.0), Tsallis(1.0, 1.5)], ids=str)
def test_entropies_are_those_of_the_definition(regularizer):
    mdp = PROBLEMS["ragged"]
    pi, omega = random_policy(mdp, 3), np.full(mdp.n_states, np.nan)
    q = float(regularizer.q)
    policy_sweep.entropies(kernel_arrays(mdp).pointer, q, pi, omega)
    for s in range(mdp.n_states):
        p = [x for x in pi[mdp.pointer[s] : mdp.pointer[s + 1]] if x > 0]
        terms = [-x * math.log(x) if q == 1 else (x - x**q) / (q * (q - 1)) for x in p]
        assert omega[s] == pytest.approx(math.fsum(terms), abs=1e-14)
