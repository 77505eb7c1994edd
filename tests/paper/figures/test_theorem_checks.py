"""Every claim of the paper holds on random MDPs, and its check finds a mutation that breaks it."""

import dataclasses
from functools import cache

import numpy as np
import pytest

from tsallax.paper.figures import theorem_checks
from tsallax.paper.figures.theorem_checks import CLAIMS, Case, projection
from tsallax.paper.figures.theorem_table import INDICES, random_case
from tsallax.planning.evaluation import evaluate, gap_certificate, performance_bound
from tsallax.planning.solver import bellman, solve
from tsallax.regularizer import Hard, Soft, Sparse, Tsallis

SEED = 7


def cases(count):
    """Fresh cases: so many random MDPs, each with five regularisers."""
    for i in range(count):
        mdp, alpha = random_case(i, SEED)
        family = [Sparse(alpha), Soft(alpha), *(Tsallis(alpha, q) for q in INDICES)]
        for j, regularizer in enumerate(family):
            yield Case(mdp, regularizer, (SEED, i, j))


@cache
def shared_cases():
    """Cases whose solutions all claims share."""
    return tuple(cases(6))


def worst_margin(claim, among):
    """The smallest margin of a claim; minus infinity where one is not finite."""
    c = CLAIMS.index(claim)
    margins = [
        margin
        for case in among
        if claim.scope in ("every", case.regularizer.name)
        for margin in claim.check(case, case.random(c))
    ]
    assert margins, "the claim must be tried"
    return min(margins) if np.isfinite(margins).all() else -np.inf


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_claim_holds_on_random_mdps(claim):
    assert worst_margin(claim, shared_cases()) >= -claim.slack


def other(regularizer):
    if regularizer.name == "hard":
        return regularizer
    alpha = regularizer.alpha
    return Soft(alpha) if regularizer.name == "sparse" else Sparse(alpha)


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


MUTATIONS = {
    "doubled operator": ("bellman", lambda mdp, r, v: 2 * bellman(mdp, r, v)),
    "decreasing operator": ("bellman", lambda mdp, r, v: bellman(mdp, r, -np.asarray(v))),
    "raised operator": ("bellman", lambda mdp, r, v: bellman(mdp, r, v) + r.alpha),
    "lowered operator": ("bellman", lambda mdp, r, v: bellman(mdp, r, v) - 0.1 * r.alpha),
    "operators exchanged": ("bellman", lambda mdp, r, v: bellman(mdp, other(r), v)),
    "solutions exchanged": ("solve", lambda mdp, r, *t, **o: solve(mdp, other(r), *t, **o)),
    "hard solution": ("solve", lambda mdp, r, *t, **o: solve(mdp, Hard(), *t, **o)),
    "lowered value": (
        "solve",
        changed_solution(lambda s: {"value": s.value - np.abs(s.value).max() - 1.0}),
    ),
    "raised enclosure": (
        "solve",
        changed_solution(lambda s: {"lower": s.upper + 1e-6 * np.abs(s.value).max() + 1e-9}),
    ),
    "wrong support": ("solve", lambda *a, **o: WrongSupport(solve(*a, **o))),
    "double entropy": ("evaluate", double_entropy),
    "raised return": ("evaluate", raised_return),
    "half certificate": ("gap_certificate", lambda mdp, s: 0.5 * gap_certificate(mdp, s)),
    "tenth of the bound": ("performance_bound", lambda mdp, r: 0.1 * performance_bound(mdp, r)),
    "ten bounds": (
        "performance_bound",
        lambda mdp, r: (10 if r.name == "sparse" else 1) * performance_bound(mdp, r),
    ),
}
DETECTED = {
    "Theorem 1": "solutions exchanged",
    "Theorem 1 (KKT)": "solutions exchanged",
    "Theorem 1 (optimum)": "hard solution",
    "Eq. (6)": "lowered operator",
    "Eq. (7), below": "lowered operator",
    "Eq. (7), above": "raised operator",
    "ours, eq. (7), below": "lowered operator",
    "ours, eq. (7), above": "raised operator",
    "Appendix, log-sum-exp": "operators exchanged",
    "Eq. (8)": "solutions exchanged",
    "Eq. (8), growth": "hard solution",
    "Theorem 2": "double entropy",
    "ours, Theorem 2 for every q": "double entropy",
    "Lemma 1": "decreasing operator",
    "Lemma 2": "decreasing operator",
    "ours, Lemma 2 with ends": "doubled operator",
    "Lemma 3": "doubled operator",
    "Lemma 3 (fixed point)": "solutions exchanged",
    "Theorem 3": "solutions exchanged",
    "Lemma 4 (powers)": "lowered operator",
    "Lemma 4 (fixed points)": "lowered value",
    "Lemma 5, W": "double entropy",
    "Lemma 5, H": "double entropy",
    "ours, Lemma 5 for every q": "double entropy",
    "Theorem 4, left": "tenth of the bound",
    "Theorem 4, right": "raised return",
    "Theorem 5, left": "tenth of the bound",
    "Theorem 5, right": "raised return",
    "ours, Theorems 4 and 5": "tenth of the bound",
    "Remark on Theorems 4 and 5": "ten bounds",
    "ours, enclosure": "raised enclosure",
    "ours, proven support": "wrong support",
    "ours, certificate": "half certificate",
    "ours, both gaps": "half certificate",
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_check_detects_a_mutation_that_breaks_its_claim(claim, monkeypatch):
    monkeypatch.setattr(theorem_checks, *MUTATIONS[DETECTED[claim.name]])
    assert worst_margin(claim, cases(4)) < -claim.slack


def test_every_lemma_and_theorem_of_the_paper_is_among_the_claims():
    names = " ".join(claim.name for claim in CLAIMS)
    for kind in ("Theorem", "Lemma"):
        assert all(f"{kind} {i}" in names for i in range(1, 6))
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


def test_projection_follows_the_worked_formulas_of_the_paper():
    policy, threshold, value = projection(np.array([[1.0, 0.75, 0.0]]), 0.5)
    np.testing.assert_allclose(policy, [[0.75, 0.25, 0.0]])
    assert threshold[0] == pytest.approx(0.625)
    assert value[0] == pytest.approx(0.9375 + 0.5 * 0.5 * (1 - 0.75**2 - 0.25**2))
