"""The summary of a solution with a finite horizon: the numbers of the Python API."""

import json

import numpy as np
import pytest

from tsallax import Hard, Sparse, evaluate, gap_certificate, solve
from tsallax.planning.finite_horizon_summary import finite_horizon_text, summarize_finite_horizon
from tsallax.planning.summary import as_json
from tsallax.problems import forest, gridworld


@pytest.mark.parametrize("regularizer", [Hard(), Sparse(0.3)], ids=str)
def test_the_numbers_are_those_of_the_api(regularizer):
    mdp = gridworld(5, 4).with_discount(1.0)
    solution = solve(mdp, regularizer, horizon=12)
    summary = summarize_finite_horizon("grid", solution)
    found = evaluate(mdp, solution, regularizer)
    assert (summary.states, summary.pairs, summary.horizon) == (mdp.n_states, mdp.n_pairs, 12)
    assert summary.q == (None if regularizer == Hard() else 2.0)
    assert (summary.error, summary.converged) == (solution.error, True)
    assert summary.support_ratio == np.count_nonzero(solution.policy_at(0)) / mdp.n_pairs
    proven = solution.certified_support_at(0)
    certified = [np.count_nonzero(proven == sign) for sign in (1, -1)]
    assert [summary.certified_in, summary.certified_out] == certified
    assert summary.certified_ratio == sum(certified) / mdp.n_pairs
    assert summary.expected_return == pytest.approx(found.expected_return, rel=1e-12)
    assert summary.entropy == pytest.approx(found.entropy, rel=1e-12)
    assert summary.regularized_return == pytest.approx(solution.regularized_return, rel=1e-12)
    assert summary.gap_certificate == mdp.initial @ gap_certificate(mdp, solution)
    assert json.loads(as_json(summary))["value_max"] == solution.value.max()


def test_the_text_says_that_the_support_is_that_of_the_first_step():
    text = finite_horizon_text(summarize_finite_horizon("f", solve(forest(), Hard(), horizon=2)))
    rows = dict(line.split("  ", 1) for line in text.splitlines())
    assert rows["problem"].strip() == "f, discount 0.9, horizon 2 steps"
    assert rows["method"].strip().startswith("backward induction: 2 sweeps")
    assert rows["support ratio"].strip() == "0.5000 (3 of 6 pairs), in the first step"
    assert rows["certified"].endswith("in the first step")
