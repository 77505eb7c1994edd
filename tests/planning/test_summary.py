"""The summary of a solution: the numbers of the Python API, as JSON and as text."""

import json
import math

import numpy as np
import pytest

from tsallax import Hard, Sparse, Tsallis, evaluate, gap_certificate, performance_bound, solve
from tsallax.planning.summary import as_json, as_text, summarize
from tsallax.problems import forest, gridworld


@pytest.mark.parametrize("regularizer", [Hard(), Sparse(0.3), Tsallis(0.3, 1.5)], ids=str)
def test_the_numbers_are_those_of_the_api(regularizer):
    mdp = gridworld(5, 4)
    solution = solve(mdp, regularizer)
    summary = summarize("grid", solution)
    found = evaluate(mdp, solution.policy, regularizer)
    assert (summary.states, summary.pairs) == (mdp.n_states, mdp.n_pairs)
    assert (summary.iterations, summary.sweeps) == (solution.iterations, solution.sweeps)
    assert summary.q == (None if regularizer == Hard() else regularizer.q)
    assert summary.error == solution.error
    certified = [np.count_nonzero(solution.certified_support == sign) for sign in (1, -1)]
    assert [summary.certified_in, summary.certified_out] == certified
    assert summary.expected_return == pytest.approx(found.expected_return, rel=1e-12)
    assert summary.regularized_return == pytest.approx(found.regularized_return, rel=1e-12)
    assert summary.performance_bound == performance_bound(mdp, regularizer)
    gap = mdp.initial @ gap_certificate(mdp, solution)
    assert summary.gap_certificate == pytest.approx(gap, rel=1e-12)
    assert json.loads(as_json(summary))["value_max"] == solution.value.max()
    text = as_text(summary)
    assert f"{solution.sweeps} sweeps" in text
    assert len({line.index("  ") for line in text.splitlines()}) > 1


def test_a_return_that_float64_cannot_give_is_null_in_json():
    solution = solve(forest(discount=0.999999999), Hard(), 1e6)
    summary = summarize("forest", solution)
    assert math.isnan(summary.expected_return)
    assert json.loads(as_json(summary))["expected_return"] is None
    assert "not known" in as_text(summary)
