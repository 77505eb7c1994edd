"""The table of claims: every claim of the paper is tried and holds, and a false one is found."""

import numpy as np
import pytest

from tsallax.errors import InvalidInput
from tsallax.paper.figures.theorem_checks import CLAIMS, Claim
from tsallax.paper.figures.theorem_table import check_claims, compute, random_case


def test_every_lemma_and_theorem_holds_on_random_mdps(computed):
    rows = computed(compute, cases=6, seed=7).tables[0].rows
    names = [row["claim"] for row in rows]
    assert names == [claim.name for claim in CLAIMS]
    assert len(set(names)) == len(names)
    for kind in ("Theorem", "Lemma"):
        assert all(f"{kind} {i}" in " ".join(names) for i in range(1, 6))
    assert [row["claim"] for row in rows if row["holds"] != "yes"] == []
    assert min(row["cases"] for row in rows) >= 2


def test_claims_that_are_false_or_undecided_are_found():
    def undecided(case, rng):
        yield float("nan")

    def wrong_sometimes(case, rng):
        yield 1.0 if case.mdp.n_states % 2 else -0.5

    false = (
        Claim("a", "never decided", "every", 1.0, "1", undecided),
        Claim("b", "true for some", "sparse", 0.1, "1", wrong_sometimes),
    )
    rows = check_claims(false, 6, 1)
    assert [row["holds"] for row in rows] == ["NO", "NO"]
    assert rows[1]["worst_margin"] == -0.5
    assert [row["cases"] for row in rows] == [30, 6]


def test_random_cases_are_of_every_kind_and_reproducible():
    cases = [random_case(i, 1) for i in range(30)]
    assert any(mdp.terminal.any() for mdp, _ in cases)
    assert any(mdp.termination is not None for mdp, _ in cases)
    assert any(mdp.rewards.max() < 0 for mdp, _ in cases)
    assert any(mdp.rewards.min() < 0 < mdp.rewards.max() for mdp, _ in cases)
    assert len({mdp.discount for mdp, _ in cases}) == 4
    assert len({mdp.n_actions for mdp, _ in cases}) > 5
    again, alpha = random_case(3, 1)
    assert alpha == cases[3][1]
    assert np.array_equal(again.rewards, cases[3][0].rewards)


def test_too_few_cases_to_try_every_claim_are_refused():
    with pytest.raises(InvalidInput, match="at least 6"):
        compute(cases=5)
