"""Compiles the kernels of planning once, for the processes that test them in parallel."""

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

METHODS = ("auto", "value_iteration", "modified_policy_iteration", "policy_iteration")

if __name__ == "__main__":
    for mdp in (problems.gridworld(8), problems.unicycle()):
        for regularizer in (Hard(), Sparse(0.1), Soft(0.1), Tsallis(0.1, 1.5)):
            for method in METHODS if mdp.n_states < 100 else METHODS[::3]:
                solution = solve(mdp, regularizer, method=method)
            assert solution.certified_support.shape == (mdp.n_states, mdp.n_actions)
            evaluate(mdp, solution.policy, regularizer)
            gap_certificate(mdp, solution)
            simulate(mdp, solution, 10, 0, max_steps=5)
    near_one = problems.garnet(35, 1, 1, discount=1 - 1e-5)
    solve(near_one, Hard(), 1e-3, "policy_iteration")  # linear systems in double precision
    q_learning(problems.forest(), Sparse(0.1), steps=100)
