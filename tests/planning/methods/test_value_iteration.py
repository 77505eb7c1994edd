"""Value iteration: its solutions against the exact oracle, its iterates against U itself."""

import numpy as np
import pytest

from planning_problems import BY_NAME
from solution_checks import covering, every_check
from tsallax import Hard, Soft, Sparse, Tsallis, bellman, solve
from tsallax.planning.bellman import Bellman
from tsallax.planning.methods.value_iteration import ValueIteration


@every_check
@covering("value_iteration")
def test_value_iteration_keeps_its_promises(check, problem, choice):
    check(problem, choice, "value_iteration")


@pytest.mark.parametrize(
    "regularizer", [Hard(), Sparse(0.5), Soft(0.5), Tsallis(0.5, 3.0)], ids=str
)
def test_theorem_3_iterates_are_powers_of_the_operator_and_converge_geometrically(regularizer):
    mdp = BY_NAME["garnet"].mdp()
    optimum = solve(mdp, regularizer, 1e-11).value
    operator, method = Bellman(mdp, regularizer), ValueIteration(1e-9)
    expected = 5 * np.random.default_rng(0).normal(size=mdp.n_states)
    iterate, state = operator.start(expected), method.init()
    distance = np.abs(expected - optimum).max()
    for n in range(1, 40):
        iterate, state = method.step(operator, operator.certify(iterate), state)
        expected = bellman(mdp, regularizer, expected)
        np.testing.assert_allclose(iterate.value, expected, rtol=0, atol=1e-13)
        assert np.abs(iterate.value - optimum).max() <= mdp.discount**n * distance + 1e-10


def test_every_iteration_is_one_sweep():
    solution = solve(BY_NAME["garnet"].mdp(), Sparse(0.5), 1e-6, "value_iteration")
    assert solution.iterations == solution.sweeps
