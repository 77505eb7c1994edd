"""The summary of a solution of a model from functions."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from planning.functional_models import stock_mdp, stock_model
from tsallax import (
    FunctionalSolution,
    Sparse,
    evaluate,
    gap_certificate,
    memory,
    performance_bound,
    solve,
)
from tsallax.planning import functional_summary
from tsallax.planning.accelerator.jax_bellman import GreedyPolicy
from tsallax.planning.functional_summary import functional_text, summarize_functional
from tsallax.planning.summary import as_json


@pytest.fixture(scope="module")
def solution():
    return solve(stock_model(), Sparse(2.0))


def test_the_summary_has_the_numbers_of_the_solution():
    model, value = stock_model(), np.arange(6.0)
    solution = FunctionalSolution(
        model, Sparse(0.5), value, value - 0.004, value + 0.004, converged=True, iterations=3,
        sweeps=7, seconds=0.5, method="auto", tolerance=0.01, greedy=GreedyPolicy(None, None, 0.25),
    )  # fmt: skip
    summary = summarize_functional("stock", solution, evaluated=False)
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
        "support ratio       0.2500 of 24 pairs, states times actions",
        "regularized return  2.500",
        "performance bound   1.875 (the most that the exact optimum's J can lose, by theorem)",
    ]


def test_the_return_and_the_gap_certificate_are_those_of_the_api(solution):
    summary = summarize_functional("stock", solution)
    found = evaluate(stock_mdp(), solution.policy)
    assert summary.expected_return == pytest.approx(found.expected_return, abs=solution.error)
    gap = solution.mdp.initial @ gap_certificate(solution.mdp, solution)
    assert summary.gap_certificate == pytest.approx(gap, rel=1e-12)
    *_, text = functional_text(summary).splitlines()
    assert text == f"gap certificate     {gap:.6g} (the most that J of this policy can lose)"
    assert json.loads(as_json(summary))["gap_certificate"] == summary.gap_certificate


@pytest.mark.parametrize("scarce", ["time", "memory"])
def test_an_evaluation_that_takes_too_much_is_given_up(solution, monkeypatch, scarce):
    if scarce == "time":
        monkeypatch.setattr(functional_summary, "MIN_SECONDS", 0.0)
    else:
        monkeypatch.setattr(memory, "available_bytes", lambda device=None: 100)
    summary = summarize_functional("stock", replace(solution, seconds=0.0))
    assert math.isnan(summary.gap_certificate)
    assert functional_text(summary).count("not computed: it would take longer than") == 2
    assert json.loads(as_json(summary))["gap_certificate"] is None
