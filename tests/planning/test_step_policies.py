"""What may act in an MDP: solutions, policies, and functions of the step."""

import numpy as np
import pytest

from tsallax import InvalidInput, Sparse, evaluate, problems, simulate, solve
from tsallax.planning.step_policies import read_policies, read_stationary

FOREST = problems.forest()
FINITE = solve(FOREST, Sparse(1.0), horizon=4)
INFINITE = solve(FOREST, Sparse(1.0))


def test_a_solution_of_an_equal_mdp_is_its_policy():
    equal = problems.forest()
    np.testing.assert_array_equal(read_stationary(equal, INFINITE), INFINITE.pair_policy)
    of_step = read_policies(equal, FINITE, 4)
    np.testing.assert_array_equal(of_step(1), FINITE.pair_policy_at(1))


def test_solutions_of_models_from_functions_and_of_stored_ones_are_told_apart():
    model = problems.inventory(capacity=4, lead_time=1, max_order=2, discount=0.9)
    stored = model.to_mdp()
    of_functions, of_stored = solve(model, Sparse(1.0)), solve(stored, Sparse(1.0))
    for run in (
        lambda: evaluate(stored, of_functions),
        lambda: simulate(stored, of_functions, 10, seed=0),
    ):
        with pytest.raises(InvalidInput, match="model from functions: pass solution"):
            run()
    with pytest.raises(InvalidInput, match="of a stored MDP: pass solution"):
        evaluate(model, of_stored)
    with pytest.raises(InvalidInput, match=r"of a stored MDP: use model\.to_mdp"):
        evaluate(model, solve(stored, Sparse(1.0), horizon=3))
    same = evaluate(stored, of_functions.policy).value
    np.testing.assert_allclose(same, evaluate(model, of_stored.policy).value, atol=1e-4)


def test_a_stationary_policy_serves_all_steps():
    of_step = read_policies(FOREST, INFINITE.policy, 3)
    np.testing.assert_allclose(of_step(0), INFINITE.pair_policy)
    np.testing.assert_array_equal(of_step(0), of_step(2))


def test_a_function_gives_the_policy_of_each_step():
    of_step = read_policies(FOREST, lambda step: np.full(3, step % 2), 3)
    assert of_step(0).tolist() == [1, 0] * 3
    assert of_step(1).tolist() == [0, 1] * 3


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: read_policies(FOREST, FINITE, 5), "the policy has 4 steps, not 5"),
        (lambda: read_stationary(FOREST, FINITE), "this policy has 4 steps: give horizon"),
        (lambda: read_stationary(FOREST, lambda t: 0), "depends on the step needs a horizon"),
        (
            lambda: read_policies(FOREST, lambda t: [9, 9, 9], 2)(0),
            "step 0: state 0 has no action 9",
        ),
        (
            lambda: read_stationary(FOREST.with_discount(0.5), INFINITE),
            r"another MDP: pass solution\.policy",
        ),
        (lambda: read_stationary(problems.forest(4), INFINITE), "is of another MDP"),
    ],
)
def test_what_is_no_policy_of_the_mdp_is_refused(read, message):
    with pytest.raises(InvalidInput, match=message):
        read()
