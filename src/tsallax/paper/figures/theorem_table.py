"""Every lemma and theorem of the paper, checked on random MDPs: claim, cases tried, worst margin.

A claim (`theorem_checks`) holds where its worst margin is not below minus the rounding that
floating point and the solver are allowed.
"""

import math

import numpy as np
from scipy.sparse import csr_array

from tsallax.errors import InvalidInput
from tsallax.paper.figures.theorem_checks import CLAIMS, POWERS, Case, Claim
from tsallax.paper.result import Comparison, Line, Progress, Result, Table
from tsallax.planning.mdp import MDP
from tsallax.problems.garnet_mdp import garnet
from tsallax.regularizer import Soft, Sparse, Tsallis

INDICES = (0.5, 1.5, 3.0)
DISCOUNTS = (0.3, 0.8, 0.95, 0.99)


def random_case(i: int, seed: int) -> tuple[MDP, float]:
    """The i-th random MDP and alpha: garnets of either sign, every third with ends of episodes."""
    rng = np.random.default_rng((seed, i))
    states, actions = int(rng.integers(2, 25)), int(rng.integers(2, 13))
    discount = float(rng.choice(DISCOUNTS))
    base = garnet(states, actions, int(rng.integers(1, min(states, 6) + 1)), discount, rng)
    shift = float(rng.choice([-1.0, -0.5, 0.0]))
    rewards = float(rng.choice([0.1, 1.0, 30.0])) * (base.rewards + shift)
    stops = np.where(rng.random(states * actions) < 0.2, 0.3, 0.0) * (i % 6 == 5)
    keep = np.repeat(1.0 - stops, np.diff(base.transitions.indptr))
    layout = (keep * base.transitions.data, base.transitions.indices, base.transitions.indptr)
    transitions = csr_array(layout, shape=base.transitions.shape)
    table = rewards.reshape(states, actions).copy()
    ends = [states - 1] if i % 3 == 2 else None
    table[ends or []] = 0.0
    termination = stops.reshape(states, actions) if stops.any() else None
    mdp = MDP(transitions, table, discount, terminal=ends, termination=termination)
    return mdp, float(10 ** rng.uniform(-2, 1)) * float(np.abs(rewards).max())


def check_claims(
    claims: tuple[Claim, ...], cases: int, seed: int, report: Progress = lambda share: None
) -> tuple[Line, ...]:
    """One row for each claim: how many inequalities were tried, and the worst margin."""
    margins: list[list[float]] = [[] for _ in claims]
    for i in range(cases):
        mdp, alpha = random_case(i, seed)
        family = [Sparse(alpha), Soft(alpha), *(Tsallis(alpha, q) for q in INDICES)]
        for j, regularizer in enumerate(family):
            case = Case(mdp, regularizer, (seed, i, j))
            for c, claim in enumerate(claims):
                if claim.scope in ("every", regularizer.name):
                    margins[c] += claim.check(case, case.random(c))
        report((i + 1) / cases)
    return tuple(_row(claim, found) for claim, found in zip(claims, margins, strict=True))


def _row(claim: Claim, margins: list[float]) -> Line:
    worst = min(margins) if np.isfinite(margins).all() else -math.inf
    return {
        "claim": claim.name,
        "statement": claim.statement,
        "regularizer": claim.scope,
        "cases": len(margins),
        "worst_margin": float(f"{worst:.3g}") + 0.0,
        "unit": claim.unit,
        "allowed": 0.0 - claim.slack,
        "holds": "yes" if worst >= -claim.slack else "NO",
    }


def compute(report: Progress = lambda share: None, *, cases: int = 200, seed: int = 1) -> Result:
    """Check every claim on random MDPs, each with five regularisers."""
    if cases < 6:
        raise InvalidInput(f"cases must be at least 6, so that every claim is tried, not {cases}")
    rows = check_claims(CLAIMS, cases, seed, report)
    held = sum(row["holds"] == "yes" for row in rows)
    total = sum(int(row["cases"]) for row in rows)
    found = f"{held} of {len(rows)}, in {total:,} inequalities and equations"
    return Result(
        name="theorems",
        caption=(
            f"Each claim of the paper, and each of this library, on {cases} random MDPs with 2 to "
            "24 states, 2 to 12 actions, rewards of either sign and three sizes, γ = "
            f"{', '.join(f'{g:g}' for g in DISCOUNTS)} and α from 0.01 to 10 times the largest "
            'reward; in every third MDP episodes end. "every" means sparse (q = 2), soft (q = 1) '
            f"and Tsallis with q = {', '.join(f'{q:g}' for q in INDICES)}.",
            "A margin is the right-hand side minus the left-hand side, in units of what the "
            "table names; for an equation it is minus the error. A claim holds where the worst "
            "margin is not below what rounding and the solver's accuracy allow. Margins of about 0 "
            "belong to claims that hold with equality somewhere.",
        ),
        parameters={
            "cases": cases,
            "seed": seed,
            "states": [2, 24],
            "actions": [2, 12],
            "discounts": list(DISCOUNTS),
            "alpha_over_largest_reward": [0.01, 10.0],
            "indices": [2.0, 1.0, *INDICES],
            "powers": POWERS,
        },
        tables=(Table("theorems", "claim, cases tried, worst margin", rows, "open"),),
        comparison=(Comparison("claims that hold", "proven for sparse and soft", found),),
    )
