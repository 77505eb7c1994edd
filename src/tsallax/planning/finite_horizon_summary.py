"""A summary of a solution with a finite horizon, as aligned text or for JSON."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tsallax.planning.bellman import Bellman
from tsallax.planning.evaluation import gap_of_steps, plain_value_of_steps
from tsallax.planning.finite_horizon import FiniteHorizonSolution
from tsallax.planning.step_evaluation import entropy_of_steps
from tsallax.planning.summary import (
    certified_text,
    number_text,
    proven_digits,
    regularizer_text,
    size_text,
)
from tsallax.regularizer import PARAMETERS
from tsallax.wording import aligned, plural


@dataclass(frozen=True)
class FiniteHorizonSummary:
    """The numbers of a solution, by the names that the Python API has for them."""

    source: str  # what was solved, and its size
    states: int
    terminal: int
    actions: int
    pairs: int
    transitions: int
    discount: float
    horizon: int
    regularizer: str
    alpha: float  # 0 for a hard regulariser
    q: float | None  # None for a hard regulariser
    tolerance: float
    seconds: float
    converged: bool
    error: float  # a bound on |value - V_0|
    value_min: float  # of the first step
    value_max: float
    support_ratio: float  # the share of the pairs that the policy of the first step uses
    certified_in: int  # pairs proven to be in the support of the first step's pi*
    certified_out: int  # pairs proven not to be in it
    certified_ratio: float  # the share of the pairs that are either
    expected_return: float  # J, the expected discounted reward of all steps, without entropy
    entropy: float  # W or H, the expected discounted entropy
    regularized_return: float  # J + alpha * entropy
    gap_certificate: float  # a bound on J(pi*) - J of these policies, from the start


def summarize_finite_horizon(source: str, solution: FiniteHorizonSolution) -> FiniteHorizonSummary:
    """Evaluate the policies of all steps of a solution, and summarise both.

    >>> from tsallax import Sparse, problems, solve
    >>> solution = solve(problems.forest(), Sparse(0.5), horizon=9)
    >>> forest = summarize_finite_horizon("forest", solution)
    >>> forest.horizon, forest.pairs, forest.support_ratio, forest.certified_ratio
    (9, 6, 0.5, 1.0)
    """
    mdp, regularizer = solution.mdp, solution.regularizer
    plain = plain_value_of_steps(solution)
    operator = Bellman(mdp, regularizer, finite_horizon=True)
    entropy = entropy_of_steps(operator, solution.pair_policy_at, solution.horizon)
    certified = solution.pair_certified_support_at(0)
    proven_in, proven_out = (int(np.count_nonzero(certified == sign)) for sign in (1, -1))
    return FiniteHorizonSummary(
        source=source,
        states=mdp.n_states,
        terminal=int(np.count_nonzero(mdp.terminal)),
        actions=mdp.n_actions,
        pairs=mdp.n_pairs,
        transitions=int(mdp.transitions.nnz),
        discount=mdp.discount,
        horizon=solution.horizon,
        regularizer=regularizer.name,
        alpha=float(regularizer.alpha),
        q=regularizer.q if PARAMETERS[regularizer.name] else None,
        tolerance=solution.tolerance,
        seconds=solution.seconds,
        converged=solution.converged,
        error=solution.error,
        value_min=float(solution.value.min()),
        value_max=float(solution.value.max()),
        support_ratio=float(np.count_nonzero(solution.pair_policy_at(0))) / mdp.n_pairs,
        certified_in=proven_in,
        certified_out=proven_out,
        certified_ratio=(proven_in + proven_out) / mdp.n_pairs,
        expected_return=float(mdp.initial @ plain[0]),
        entropy=float(mdp.initial @ entropy),
        regularized_return=solution.regularized_return,
        gap_certificate=float(mdp.initial @ gap_of_steps(solution, plain)),
    )


def finite_horizon_text(s: FiniteHorizonSummary) -> str:
    """The summary as aligned lines, with as many digits as are proven."""
    digits = proven_digits(s.error)
    used = round(s.support_ratio * s.pairs)
    rows = {
        "problem": f"{s.source}, discount {s.discount:.12g}, horizon {plural(s.horizon, 'step')}",
        "size": size_text(s),
        "regularizer": regularizer_text(s.regularizer, s.alpha, s.q),
        "method": f"backward induction: {plural(s.horizon, 'sweep')}, {s.seconds:.3g} s",
        "value": f"{number_text(s.value_min, digits)} to {number_text(s.value_max, digits)}",
        "error": f"{s.error:.2g} at most (tolerance {s.tolerance:g})",
        "support ratio": f"{s.support_ratio:.4f} ({used:,} of {s.pairs:,} pairs), "
        "in the first step",
        "certified": f"{certified_text(s)}, in the first step",
        "expected return": f"{number_text(s.expected_return, digits)} (J)",
        "regularized return": f"{number_text(s.regularized_return, digits)} "
        f"(entropy {s.entropy:.6g})",
        "gap certificate": f"{s.gap_certificate:.6g} (the most that J of these policies can lose)",
    }  # fmt: skip
    return aligned(rows.items())
