"""Compiles the kernels of planning once, for the processes that then test them side by side."""

from tsallax import Hard, Soft, Sparse, evaluate, gap_certificate, problems, q_learning, solve

if __name__ == "__main__":
    for mdp in (problems.gridworld(8), problems.unicycle()):
        for regularizer in (Hard(), Sparse(0.1), Soft(0.1)):
            solution = solve(mdp, regularizer)
            assert solution.certified_support.shape == (mdp.n_states, mdp.n_actions)
            solve(mdp, regularizer, method="policy_iteration")
            evaluate(mdp, solution.policy, regularizer)
            gap_certificate(mdp, solution)
    q_learning(problems.forest(), Sparse(0.1), steps=100)
