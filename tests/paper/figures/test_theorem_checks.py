"""The check of every claim finds a mutation that breaks it; that all hold, see the table's test."""

import dataclasses

import numpy as np
import pytest

from tsallax.paper.figures import theorem_checks
from tsallax.paper.figures.theorem_checks import CLAIMS, projection
from tsallax.paper.figures.theorem_table import check_claims
from tsallax.planning.evaluation import evaluate, gap_certificate, performance_bound
from tsallax.planning.solver import bellman, solve
from tsallax.regularizer import Hard, Soft, Sparse


def other(regularizer):
    """Sparse for soft and the reverse."""
    if regularizer.name == "hard":
        return regularizer
    return (Soft if regularizer.name == "sparse" else Sparse)(regularizer.alpha)


def changed_solution(change):
    def mutated(mdp, regularizer, *arguments, **options):
        solution = solve(mdp, regularizer, *arguments, **options)
        if regularizer.name == "hard":
            return solution
        return dataclasses.replace(solution, **change(solution))

    return mutated


class WrongSupport:
    """A solution that proves the opposite of what is so, unless it is accurate."""

    def __init__(self, solution):
        self.solution = solution

    def __getattr__(self, name):
        return getattr(self.solution, name)

    @property
    def certified_support(self):
        proven = self.solution.certified_support
        size = np.abs(self.solution.mdp.rewards).max() / (1 - self.solution.mdp.discount)
        return proven if self.solution.tolerance < 1e-8 * size else -proven


def double_entropy(*arguments):
    found = evaluate(*arguments)
    return dataclasses.replace(found, entropy=2 * found.entropy)


def raised_return(mdp, *arguments):
    found = evaluate(mdp, *arguments)
    more = np.abs(mdp.rewards).max() / (1 - mdp.discount)
    return dataclasses.replace(found, expected_return=found.expected_return + more)


MUTATIONS = [
    ("bellman", lambda mdp, r, v: 2 * bellman(mdp, r, v), ["ours, Lemma 2 with ends", "Lemma 3"]),
    ("bellman", lambda mdp, r, v: bellman(mdp, r, -np.asarray(v)), ["Lemma 1", "Lemma 2"]),
    ("bellman", lambda mdp, r, v: bellman(mdp, r, v) + r.alpha,
     ["Eq. (7), above", "ours, eq. (7), above"]),
    ("bellman", lambda mdp, r, v: bellman(mdp, r, v) - 0.1 * r.alpha,
     ["Eq. (6)", "Eq. (7), below", "ours, eq. (7), below", "Lemma 4 (powers)"]),
    ("bellman", lambda mdp, r, v: bellman(mdp, other(r), v), ["Appendix, log-sum-exp"]),
    ("solve", lambda mdp, r, *t, **o: solve(mdp, other(r), *t, **o),
     ["Theorem 1", "Theorem 1 (KKT)", "Eq. (8)", "Lemma 3 (fixed point)", "Theorem 3"]),
    ("solve", lambda mdp, r, *t, **o: solve(mdp, Hard(), *t, **o),
     ["Theorem 1 (optimum)", "Eq. (8), growth"]),
    ("solve", changed_solution(lambda s: {"value": s.value - np.abs(s.value).max() - 1.0}),
     ["Lemma 4 (fixed points)"]),
    ("solve", changed_solution(lambda s: {"lower": s.upper + 1e-6 * np.abs(s.value).max() + 1e-9}),
     ["ours, enclosure"]),
    ("solve", lambda *a, **o: WrongSupport(solve(*a, **o)), ["ours, proven support"]),
    ("evaluate", double_entropy,
     ["Theorem 2", "ours, Theorem 2 for every q", "Lemma 5, W", "Lemma 5, H",
      "ours, Lemma 5 for every q"]),
    ("evaluate", raised_return, ["Theorem 4, right", "Theorem 5, right"]),
    ("gap_certificate", lambda mdp, s: 0.5 * gap_certificate(mdp, s),
     ["ours, certificate", "ours, both gaps"]),
    ("performance_bound", lambda mdp, r: 0.1 * performance_bound(mdp, r),
     ["Theorem 4, left", "Theorem 5, left", "ours, Theorems 4 and 5"]),
    ("performance_bound",
     lambda mdp, r: (10 if r.name == "sparse" else 1) * performance_bound(mdp, r),
     ["Remark on Theorems 4 and 5"]),
]  # fmt: skip
"""A function, its mutation, and claims whose checks find it."""


@pytest.mark.parametrize(("name", "mutation", "broken"), MUTATIONS)
def test_checks_find_a_mutation_that_breaks_their_claims(name, mutation, broken, monkeypatch):
    monkeypatch.setattr(theorem_checks, name, mutation)
    rows = check_claims(tuple(claim for claim in CLAIMS if claim.name in broken), 4, 7)
    assert [row["claim"] for row in rows if row["holds"] == "yes"] == []


def test_the_check_of_every_claim_is_tried_with_a_mutation():
    tried = [claim for _, _, broken in MUTATIONS for claim in broken]
    assert sorted(tried) == sorted(claim.name for claim in CLAIMS)


def test_projection_follows_the_worked_formulas_of_the_paper():
    policy, threshold, value = projection(np.array([[1.0, 0.75, 0.0]]), 0.5)
    np.testing.assert_allclose(policy, [[0.75, 0.25, 0.0]])
    assert threshold[0] == pytest.approx(0.625)
    assert value[0] == pytest.approx(0.9375 + 0.5 * 0.5 * (1 - 0.75**2 - 0.25**2))
