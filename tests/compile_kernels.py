"""Compiles the kernels of planning once, for the processes that test them in parallel.

`sweeps` compiles those of iteration, `systems` those of linear systems, of learning and of
simulation. The second reads from the cache what the first has compiled by then.
"""

import gc
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

REGULARIZERS = (Hard(), Sparse(0.1), Soft(0.1), Tsallis(0.1, 1.5))


def compile_methods(*methods: str) -> None:
    """Each method with every regulariser, in one thread and in several."""
    for method in methods:
        for mdp in (problems.gridworld(8), problems.unicycle()):
            for regularizer in REGULARIZERS:
                solution = solve(mdp, regularizer, method=method)
                assert solution.certified_support.shape == (mdp.n_states, mdp.n_actions)
    gap_certificate(mdp, solution)


def compile_sweeps() -> None:
    """Iteration."""
    compile_methods("modified_policy_iteration")
    solve(problems.gridworld(8), Sparse(0.1), method="value_iteration")


def compile_systems() -> None:
    """Linear systems in single and in double precision, tabular learning, simulation."""
    near_one = problems.garnet(35, 1, 1, discount=1 - 1e-5)  # needs double precision
    for mdp in (problems.gridworld(8), problems.unicycle(), near_one):
        evaluate(mdp, np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions), Sparse(0.1))
    q_learning(problems.forest(), Sparse(0.1), steps=100)
    forest = problems.forest()
    simulate(forest, solve(forest, Sparse(0.1)), 10, 0, max_steps=5)
    solve(near_one, Hard(), 1e-3, "policy_iteration")
    compile_methods("auto", "policy_iteration")


if __name__ == "__main__":
    gc.disable()  # a fifteenth of the time
    {"sweeps": compile_sweeps, "systems": compile_systems}[sys.argv[1]]()
