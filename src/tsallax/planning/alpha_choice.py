"""The largest alpha whose policy loses no more return than is allowed: `choose_alpha`.

The certified loss increases with alpha (`planning.alpha_continuation`), and regula falsi on its
logarithm finds where it exceeds the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.interrupts import interruptible
from tsallax.planning.alpha_continuation import Point, point_solver, regularizer_family
from tsallax.planning.bellman import check_problem
from tsallax.planning.evaluation import gap_certificate, performance_bound
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.functional_solution import FunctionalSolution
from tsallax.planning.mdp import MDP
from tsallax.planning.solution import NotConverged, Solution
from tsallax.planning.solver import solve
from tsallax.regularizer import Hard, Regularizer


class ChosenAlpha(NamedTuple):
    """What `choose_alpha` found."""

    alpha: float
    gap: float
    """The certified gap of the solution, at most what was allowed."""
    solution: Solution | FunctionalSolution


@interruptible()
def choose_alpha(
    mdp: MDP | FunctionalMDP,
    max_gap: float,
    regularizer: str = "sparse",
    *,
    q: float | None = None,
    worst_case: bool = False,
    precision: float = 0.01,
    tolerance: float | None = None,
) -> ChosenAlpha:
    """The largest alpha whose certified loss of return is at most `max_gap`, and its solution.

    The loss is that of the expected return from the start, d'(V* - V_pi) of the plain MDP, bounded
    by `gap_certificate`. The bound increases with alpha, and the search is by regula falsi on its
    logarithm, each alpha being solved from a prediction by the ones before.

    Args:
        mdp: the problem, stored or from functions.
        max_gap: the loss that is allowed, in the unit of the rewards.
        regularizer: "sparse", "soft" or "tsallis".
        q: the entropic index of "tsallis".
        worst_case: bound the loss from every state, not from the start.
        precision: an alpha larger than the result by this share is not within `max_gap`.
        tolerance: the largest allowed |value - V*|; default: a thousandth of `max_gap`.

    >>> from tsallax import problems
    >>> alpha, gap, solution = choose_alpha(problems.forest(), max_gap=0.5)
    >>> round(alpha, 1), gap <= 0.5, solution.regularizer.alpha == alpha
    (3.4, True, True)
    """
    check_problem("choose_alpha", mdp, Hard(), (MDP, FunctionalMDP))
    max_gap = checks.number("max_gap", max_gap, above=0)
    precision = checks.number("precision", precision, above=0, at_most=1)
    checks.flag("worst_case", worst_case)
    remedy = "raise max_gap or tolerance"
    if tolerance is None:
        tolerance = 1e-3 * max_gap
        remedy = "raise max_gap to a thousand times what can be proven"
    tolerance = checks.number("tolerance", tolerance, above=0, at_most=0.1 * max_gap)
    make = regularizer_family(regularizer, q)
    if mdp.max_actions == 1:
        raise InvalidInput("every state of this MDP has one action: alpha changes nothing")
    try:
        return _choose(mdp, max_gap, make, worst_case, precision, tolerance)
    except NotConverged as error:
        problem = f"max_gap {max_gap:g} asks for values to within {tolerance:g}: {error}"
        raise NotConverged(f"{problem}; {remedy}", error.solution) from None


def _choose(
    mdp: Any,
    max_gap: float,
    make: Callable[[float], Regularizer],
    worst_case: bool,
    precision: float,
    tolerance: float,
) -> ChosenAlpha:
    """The largest alpha, each point being solved to within the tolerance."""
    solve_at = point_solver(mdp, tolerance)
    before: list[Point] = []

    def gap_at(alpha: float) -> float:
        point = solve_at(make(alpha), before)
        before[:] = [*before[-1:], point]
        return float(point.gap.max() if worst_case else mdp.initial @ point.gap)

    safe = max_gap / performance_bound(mdp, make(1.0))
    alpha = _largest_within(gap_at, safe, max_gap, precision)
    while True:
        solution = solve(mdp, make(alpha), tolerance, initial_value=before[-1].value)
        bound = gap_certificate(mdp, solution)
        gap = float(bound.max() if worst_case else mdp.initial @ bound)
        if gap <= max_gap:
            return ChosenAlpha(alpha, gap, solution)
        alpha *= 1.0 - 0.1 * precision


def _largest_within(
    gap_at: Callable[[float], float], start: float, limit: float, precision: float
) -> float:
    """alpha with gap_at(alpha) <= limit < gap_at(alpha (1 + precision)), for an increasing gap."""
    low, below = start, gap_at(start)
    while below > limit:  # by the tolerance of the solution alone
        low *= 0.5
        below = gap_at(low)
    high = above = math.inf
    factor = 4.0
    while math.isinf(high):
        alpha = low * factor
        if not alpha < 1e300:
            return low
        try:
            gap = gap_at(alpha)
        except NotConverged as error:  # larger values are proven to fewer digits
            if factor > 1.5:
                factor = math.sqrt(factor)
                continue
            problem = (
                f"{error}. Alpha {low:.1e} is within max_gap: from a start that reaches no choice, "
                "alpha changes nothing, and worst_case=True bounds the loss from every state"
            )
            raise NotConverged(problem, error.solution) from None
        if gap <= limit:
            low, below, factor = alpha, gap, factor**2
        else:
            high, above = alpha, gap
    side = 0
    while high > low * (1.0 + precision):
        lowest, highest = math.log(low), math.log(high)
        share = math.log(limit / below) / math.log(above / below) if below > 0.0 else 0.5
        share = 0.5 if abs(side) >= 2 else min(max(share, 0.05), 0.95)
        alpha = math.exp(lowest + share * (highest - lowest))
        if not low < alpha < high:
            break
        gap = gap_at(alpha)
        if gap <= limit:
            low, below, side = alpha, gap, max(side, 0) + 1
        else:
            high, above, side = alpha, gap, min(side, 0) - 1
    return low
