"""The default method: its solutions against the exact oracle, and when it changes."""

import numpy as np
import pytest

from solution_checks import covering, every_check
from tsallax import Hard, Soft, Sparse, problems, solve
from tsallax.planning.bellman import Bellman
from tsallax.planning.methods.automatic import Automatic
from tsallax.planning.methods.modified_policy_iteration import WARM_UP_POLICIES


@every_check
@covering("auto")
def test_the_default_method_keeps_its_promises(check, problem, choice):
    check(problem, choice, "auto")


def states(mdp, regularizer, steps=30):
    """The states of the method, step by step, until the error is 1e-6."""
    operator, method = Bellman(mdp, regularizer), Automatic(1e-6)
    iterate, state = operator.start(np.zeros(mdp.n_states)), method.init()
    found = []
    for _ in range(steps):
        certificate = operator.certify(iterate)
        if certificate.error <= 1e-6:
            break
        iterate, state = method.step(operator, certificate, state)
        found.append(state)
    return found


def test_quick_mixing_is_left_to_modified_policy_iteration():
    found = states(problems.garnet(500, 5, 5, discount=0.9), Sparse(0.1))
    assert not any(state.newton for state in found)
    assert all(len(state.history) <= WARM_UP_POLICIES + 1 for state in found)
    work = [state.history[-1][1] for state in found]
    assert work == sorted(work)


@pytest.mark.parametrize("regularizer", [Hard(), Sparse(1.0)], ids=str)
def test_long_ways_are_left_to_policy_iteration_for_good(regularizer):
    for discount in (0.99, 0.999):
        mdp = problems.maze(40, discount=discount)
        found = states(mdp, regularizer)
        newton = [state.newton for state in found]
        assert newton[-1]
        assert newton == sorted(newton)
        operator = Bellman(mdp, regularizer)
        spent = [state.history[-1][1] for state in found if not state.newton]
        assert max(spent) <= operator.newton_cost(1.0)


@pytest.mark.parametrize("discount", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("regularizer", [Hard(), Sparse(0.1)], ids=str)
def test_a_slow_start_is_not_held_against_modified_policy_iteration(discount, regularizer):
    """The error hardly falls until rewards have spread, and then at once."""
    found = states(problems.unicycle(discount=discount), regularizer)
    assert not any(state.newton for state in found)


@pytest.mark.parametrize("regularizer", [Hard(), Sparse(0.1), Soft(0.1)], ids=str)
def test_long_ways_are_left_to_policy_iteration_with_a_small_discount_too(regularizer):
    found = states(problems.maze(60, discount=0.9), regularizer)
    assert found[-1].newton


@pytest.mark.parametrize("size", [20, 60])
def test_it_needs_hardly_more_sweeps_than_the_best_method(size):
    mdp = problems.maze(size, discount=0.999)
    sweeps = {
        method: solve(mdp, Sparse(0.1), 1e-6, method).sweeps
        for method in ("auto", "policy_iteration")
    }
    assert sweeps["auto"] <= sweeps["policy_iteration"] + 3 * WARM_UP_POLICIES
