"""Continuation in alpha: V* at one alpha after another, each predicted and then corrected.

With u = log alpha and pi the optimal policy at alpha, the envelope theorem gives

    dV*/du = alpha (I - gamma T_pi)⁻¹ Omega(pi) = x,

the entropy bonus that the policy collects, which is the bound of `gap_certificate` on what the
regulariser costs.  So the certificate at one alpha is the derivative that predicts V* at the next,

    V*(beta) ~ V*(alpha) + integral of y from alpha to beta,      y = x/alpha = dV*/dalpha,

with y linear in u through the last two alphas, from where a few Newton steps suffice.  V* is convex
in alpha, hence d'x increases with alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tsallax import checks
from tsallax.planning.bellman import Bellman, kernel_arrays
from tsallax.planning.evaluation import gap_certificate
from tsallax.planning.forms import Floats
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.iteration import Target, iterate_to
from tsallax.planning.linear_systems import Order, PolicySystem, order_to_ends
from tsallax.planning.mdp import MDP
from tsallax.planning.operator import Certificate
from tsallax.planning.solution import NotConverged
from tsallax.planning.solver import solve
from tsallax.regularizer import PARAMETERS, Regularizer, by_name

MAX_POLICY_SWEEPS = 48
"""Sweeps of a policy after which its value is found by a linear system, now and later on."""

MAX_STEPS = 6
"""Newton steps from a prediction, after which the default method takes over."""

LOOSE_RESIDUAL = 1e-3
"""The residual of a policy's value, relative to the last change of v."""

GAP_PRECISION = 1e-4
"""The largest distance of a certified gap from the exact bonus, relative to the largest bonus."""


class PathPoint(NamedTuple):
    """The solution at one alpha: the certificate of V*, and the bonus of its policy."""

    alpha: float
    certificate: Certificate
    value: Floats
    lower: Floats
    upper: Floats
    bonus: Floats
    """x(s): the discounted entropy bonus from state s."""
    gap: Floats
    """What the regulariser can cost from each state, by the certificate."""
    use_linear_systems: bool
    """Whether linear systems are quicker than sweeps of a policy."""

    @property
    def pair_policy(self) -> Floats:
        """pi(a|s) of every pair."""
        weights: Floats = self.certificate.policy.weights
        return weights

    @property
    def error(self) -> float:
        """A bound on |value - V*|."""
        return self.certificate.error

    @property
    def support_ratio(self) -> float:
        """The share of the pairs that the policy uses."""
        return float(np.count_nonzero(self.pair_policy)) / len(self.pair_policy)


class FunctionalPoint(NamedTuple):
    """What a `PathPoint` says, of a model from functions."""

    alpha: float
    value: Floats
    bonus: Floats
    gap: Floats
    error: float
    support_ratio: float


Point = PathPoint | FunctionalPoint
PointSolver = Callable[[Regularizer, Sequence[Point]], Point]


def regularizer_family(name: str, q: float | None) -> Callable[[float], Regularizer]:
    """The regularisers of a name, as a function of alpha."""
    with_alpha = [known for known, parameters in PARAMETERS.items() if "alpha" in parameters]
    checks.one_of("regularizer", name, with_alpha)
    return lambda alpha: by_name(name, alpha=alpha, q=q)


def point_solver(
    mdp: MDP | FunctionalMDP, tolerance: float, gap_precision: float = GAP_PRECISION
) -> PointSolver:
    """V* and the certified gap of a regulariser, from the points before, as a function."""
    if isinstance(mdp, FunctionalMDP):
        return partial(_solve_functional, mdp, tolerance)
    order = order_to_ends(kernel_arrays(mdp))
    return lambda regularizer, before: _solve_at(
        Bellman(mdp, regularizer), before, tolerance, order, gap_precision
    )


def continued_points(solve_at: PointSolver, regularizers: Sequence[Regularizer]) -> Iterator[Point]:
    """The points of regularisers, each solved from those before it."""
    before: list[Point] = []
    for regularizer in regularizers:
        point = solve_at(regularizer, before)
        before = [*before[-1:], point]
        yield point


def _solve_functional(
    mdp: FunctionalMDP, tolerance: float, regularizer: Regularizer, before: Sequence[Point]
) -> FunctionalPoint:
    """V* and the certified gap of a model from functions, by `solve` from a prediction."""
    alpha = float(regularizer.alpha)
    start = _prediction(alpha, before)[0] if before else None
    try:
        solution = solve(mdp, regularizer, tolerance, initial_value=start, progress=False)
    except NotConverged as error:
        raise NotConverged(f"alpha {alpha:g}: {error}", error.solution) from None
    gap = gap_certificate(mdp, solution)
    # the gap is upper less the value of the policy without the bonus
    bonus = np.maximum(gap - (solution.upper - solution.value), 0.0)
    return FunctionalPoint(
        alpha, solution.value, bonus, gap, solution.error, solution.support_ratio
    )


def _solve_at(
    operator: Bellman,
    before: Sequence[Any],
    tolerance: float,
    order: Order,
    gap_precision: float,
) -> PathPoint:
    """V* and the certified gap at the operator's alpha, predicted from the points before."""
    use_linear_systems = before[-1].use_linear_systems if before else False
    certificate, bonus = None, np.zeros(operator.n_states)
    if before:
        value, bonus = _prediction(operator.alpha, before)
        certificate, use_linear_systems = _newton(
            operator, value, tolerance, order, use_linear_systems
        )
    if certificate is None:
        start = operator.start(before[-1].value if before else None)
        found = iterate_to(operator, "auto", Target(tolerance), start, lambda share: None)
        certificate = found.certificate
        if found.interrupted:
            raise KeyboardInterrupt(found.reason)
        if found.reason:
            raise NotConverged(f"alpha {operator.alpha:g}: {found.reason}", None)
    bonus, slack, use_linear_systems = _bonus(
        operator, certificate, bonus, tolerance, order, use_linear_systems, gap_precision
    )
    width = certificate.high - certificate.low
    gap = np.where(operator.mdp.terminal, 0.0, np.nextafter(bonus + (slack + width), math.inf))
    value, lower, upper = (
        operator.shifted(certificate.updated, end)
        for end in (certificate.middle, certificate.low, certificate.high)
    )
    if operator.mdp.discount == 1.0:
        lower, upper = operator.weighted_enclosure(certificate)
    return PathPoint(
        operator.alpha, certificate, value, lower, upper, bonus, gap, use_linear_systems
    )


def _prediction(alpha: float, before: Sequence[Point]) -> tuple[Floats, Floats]:
    """V* and x at an alpha, with y = x/alpha linear in u through the last two alphas.

    V* is then the integral of y over alpha.
    """
    last = before[-1]
    h = math.log(alpha / last.alpha)
    back = math.log(last.alpha / before[-2].alpha) if len(before) > 1 else 0.0
    y = last.bonus / last.alpha
    value = last.value + (alpha - last.alpha) * y
    if back == 0.0 or abs(h) > 2.0 * abs(back):  # too far away for a second derivative
        return value, alpha * y
    slope = (y - before[-2].bonus / before[-2].alpha) / back
    return value + (alpha * h - (alpha - last.alpha)) * slope, alpha * (y + h * slope)


def _newton(
    operator: Bellman, v: Floats, tolerance: float, order: Order, use_linear_systems: bool
) -> tuple[Certificate | None, bool]:
    """The certificate of V* from a prediction v, by policy iteration; None where that fails."""
    gap = 1.0 - operator.discount
    iterate = operator.start(v)
    best = math.inf
    for _ in range(MAX_STEPS):
        certificate = operator.certify(iterate)
        if certificate.error <= tolerance:
            return certificate, use_linear_systems
        if not certificate.error < 0.5 * best:
            break
        best = certificate.error
        start = operator.shifted(certificate.updated, certificate.middle)
        residual = max(LOOSE_RESIDUAL * certificate.span, 0.1 * tolerance * gap)
        if not use_linear_systems:
            v, sweeps, span = operator.policy_sweeps(
                certificate, start, MAX_POLICY_SWEEPS, residual
            )
            use_linear_systems = sweeps == MAX_POLICY_SWEEPS and span > residual
        if use_linear_systems:
            v, _ = operator.policy_value(certificate, start, 0.5 * residual, order)
        iterate = certificate.iterate(v)
    return None, use_linear_systems


def _bonus(
    operator: Bellman,
    certificate: Certificate,
    x: Floats,
    tolerance: float,
    order: Order,
    use_linear_systems: bool,
    precision: float,
) -> tuple[Floats, float, bool]:
    """x = alpha (I - gamma T_pi)⁻¹ Omega(pi) of the certificate's policy, and a bound on its error.

    From a prediction, to within the tolerance, or a small part of x where that is more.
    """
    pi = certificate.policy.weights
    reward = operator.alpha * operator.entropy(pi)
    gap = 1.0 - operator.discount - operator.policy_sum_error
    x, slack, residual = _centred(operator, pi, reward, x)
    for attempt in range(4):
        allowed = max(tolerance, precision * float(np.abs(x).max()))
        if slack <= allowed:
            break
        if not use_linear_systems:
            policy = certificate.policy._replace(rewards=reward)
            x, _, _ = operator.policy_sweeps(
                certificate._replace(policy=policy), x, MAX_POLICY_SWEEPS, 0.5 * allowed * gap
            )
            x, slack, residual = _centred(operator, pi, reward, x)
            use_linear_systems = slack > allowed
        if use_linear_systems and slack > allowed:
            system = PolicySystem(operator.arrays, pi, order)
            if attempt < 2:
                x = x + system.solve(residual, 0.2 * allowed * gap)[0]
            else:
                x = x + system.solve_exactly(residual)
            x, slack, residual = _centred(operator, pi, reward, x)
    return x, slack, use_linear_systems


def _centred(
    operator: Bellman, pi: Floats, reward: Floats, x: Floats
) -> tuple[Floats, float, Floats]:
    """x, moved by a constant where that lowers its residual; a bound on its error; its residual."""
    residual = operator.residual(pi, reward, x)
    rounding = operator.action_value_rounding(x)
    if not operator.ends:  # x + c has the residual less (1 - gamma) c, up to the rows' rounding
        middle = 0.5 * float(residual.max() + residual.min())
        shift = middle / (1.0 - operator.discount)
        x, residual = x + shift, residual - middle
        rounding += operator.action_value_rounding(x) + 2 * operator.policy_sum_error * abs(shift)
    size = float(np.abs(residual).max()) + rounding
    return x, operator.policy_error(size, 1.0 - operator.discount), residual
