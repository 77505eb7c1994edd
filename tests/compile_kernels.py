"""Compiles the kernels of planning once, for the processes that test them in parallel.

Two processes share the work; what one has compiled, the other reads from the cache.
"""

import multiprocessing
import sys

import numpy as np

from tsallax import (
    Hard,
    Soft,
    Sparse,
    Tsallis,
    evaluate,
    gap_certificate,
    problems,
    q_learning,
    simulate,
    solve,
)

METHODS = ("value_iteration", "modified_policy_iteration", "auto", "policy_iteration")


def compile_evaluation_and_learning() -> None:
    """Linear systems in single and in double precision, and tabular learning."""
    near_one = problems.garnet(35, 1, 1, discount=1 - 1e-5)  # needs double precision
    for mdp in (problems.gridworld(8), problems.unicycle(), near_one):
        evaluate(mdp, np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions), Sparse(0.1))
    q_learning(problems.forest(), Sparse(0.1), steps=100)


def compile_solvers() -> None:
    """Every method with every regulariser; the linear systems of policy iteration come last."""
    for method in METHODS:
        for mdp in (problems.gridworld(8), problems.unicycle())[: 1 + (method in METHODS[2:])]:
            for regularizer in (Hard(), Sparse(0.1), Soft(0.1), Tsallis(0.1, 1.5)):
                solution = solve(mdp, regularizer, method=method)
                assert solution.certified_support.shape == (mdp.n_states, mdp.n_actions)
    gap_certificate(mdp, solution)
    simulate(mdp, solution, 10, 0, max_steps=5)
    solve(problems.garnet(35, 1, 1, discount=1 - 1e-5), Hard(), 1e-3, "policy_iteration")


if __name__ == "__main__":
    other = multiprocessing.get_context("spawn").Process(target=compile_evaluation_and_learning)
    other.start()
    compile_solvers()
    other.join()
    sys.exit(other.exitcode)
