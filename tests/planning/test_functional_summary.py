"""The summary of a solution of a model from functions."""

import numpy as np
import pytest

from planning.functional_models import stock_model
from tsallax import FunctionalSolution, Sparse, performance_bound
from tsallax.planning.accelerator.jax_bellman import GreedyPolicy
from tsallax.planning.functional_summary import functional_text, summarize_functional


def test_the_summary_has_the_numbers_of_the_solution():
    model, value = stock_model(), np.arange(6.0)
    solution = FunctionalSolution(
        model, Sparse(0.5), value, value - 0.004, value + 0.004, converged=True, iterations=3,
        sweeps=7, seconds=0.5, method="auto", tolerance=0.01, greedy=GreedyPolicy(None, None, 0.25),
    )  # fmt: skip
    summary = summarize_functional("stock", solution)
    assert (summary.states, summary.actions, summary.post_decision_states) == (6, 4, 6)
    assert summary.error == pytest.approx(0.004)
    assert summary.regularized_return == pytest.approx(2.5)
    assert summary.performance_bound == performance_bound(model, Sparse(0.5))
    assert functional_text(summary).splitlines() == [
        "problem             stock, discount 0.9",
        "size                6 states, 4 actions, 6 post-decision states, 3 events",
        "regularizer         sparse, alpha 0.5",
        "method              auto: 3 iterations, 7 sweeps, 0.5 s",
        "value               0.000 to 5.000",
        "error               0.004 at most (tolerance 0.01; enclosure width 0.008)",
        "support ratio       0.2500 of 24 pairs",
        "regularized return  2.500",
        "performance bound   1.875 (the most that the exact optimum's J can lose, by theorem)",
    ]
