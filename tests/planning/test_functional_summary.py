"""The summary of a solution of a model from functions."""

import pytest

from planning.functional_models import stock_model
from tsallax import Sparse, performance_bound, solve
from tsallax.planning.functional_summary import functional_text, summarize_functional


def test_the_summary_has_the_numbers_of_the_solution():
    model = stock_model()
    solution = solve(model, Sparse(0.5))
    summary = summarize_functional("stock", solution)
    assert (summary.states, summary.actions, summary.post_decision_states) == (6, 4, 6)
    assert summary.error == solution.error <= summary.tolerance
    assert summary.support_ratio * summary.pairs == pytest.approx((solution.policy > 0).sum())
    assert summary.regularized_return == pytest.approx(solution.value.mean())
    assert summary.performance_bound == performance_bound(model, Sparse(0.5))
    lines = functional_text(summary).splitlines()
    assert lines[0] == "problem             stock, discount 0.9"
    assert lines[1].endswith("6 states, 4 actions, 6 post-decision states, 3 events")
    assert lines[2].endswith("sparse, alpha 0.5")
