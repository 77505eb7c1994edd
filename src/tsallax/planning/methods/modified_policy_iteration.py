"""Modified policy iteration: improve the policy, evaluate it partially, repeat (Puterman 1994)."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tsallax.planning.operator import Array, Certificate, Iterate, Operator

MAX_EVALUATION_SWEEPS = 64
"""The largest number of sweeps of a policy before it is improved."""

WARM_UP_POLICIES = 4
"""Improvements before the effect of a policy's evaluation is judged."""


class PartialEvaluation(NamedTuple):
    """The length of the next partial evaluation, and what was observed of the last one."""

    max_sweeps: int  # of the next policy
    limit: int = MAX_EVALUATION_SWEEPS  # the largest `max_sweeps` for now
    policies: int = 0  # certificates observed
    error: float = math.inf  # of the last certificate
    sweeps: int = 0  # of the last policy
    span_before: float = math.nan  # span of Uv - v before them
    forcing: float = 0.1  # the largest span of the change by the next ones, in units of that
    span_after: float = math.nan  # span of the change by the last of them
    remaining_sweeps: float = 0.0  # estimated, where only the policy's value is missing


@dataclass(frozen=True)
class ModifiedPolicyIteration:
    """Sweep with the greedy policy, v <- r_pi + alpha Omega(pi) + gamma T_pi v, then improve it.

    The number of sweeps, `min_sweeps` or more, adapts.  It doubles while the error falls fast, and
    while the policy's own value is what is missing: where a sweep of U changes v hardly less
    uniformly than the last sweep of the policy did.  Elsewhere its limit is halved, since a long
    evaluation of a poor policy costs more than it gives.  The first few policies are not judged,
    as rewards have not spread yet, and the first one is not evaluated at all: it is greedy for the
    first reward alone, and its effect on v can take long to decay.  Sweeps also end when the change
    has become uniform, because the enclosure accounts for the rest.  How uniform follows from the
    ratio of the last two spans of Uv - v, as in inexact Newton methods (Eisenstat and Walker 1996):
    a policy that is about to change needs no accurate value.
    """

    tolerance: float
    max_stalls: ClassVar[int] = 20
    min_sweeps: int = 8

    def init(self) -> PartialEvaluation:
        """Start with the fewest sweeps."""
        return PartialEvaluation(self.min_sweeps)

    def step(
        self, operator: Operator, certificate: Certificate, state: PartialEvaluation
    ) -> tuple[Iterate, PartialEvaluation]:
        """Observe the last evaluation, then evaluate the new policy."""
        state = self.observe(certificate, state)
        v, state = self.advance(operator, certificate, state)
        return certificate.iterate(v), state

    def observe(self, certificate: Certificate, state: PartialEvaluation) -> PartialEvaluation:
        """Adapt the number of sweeps to the effect of the last ones on the certificate."""
        error, span = certificate.error, certificate.span
        first = state.policies == 0
        fast = error < 0.5 * state.error
        judged = state.sweeps == state.max_sweeps and state.policies >= WARM_UP_POLICIES
        value_missing = judged and span <= 2.0 * state.span_after
        max_sweeps, limit, remaining = state.max_sweeps, state.limit, 0.0
        if value_missing:
            remaining = estimated_work(
                state.span_before, state.span_after, state.sweeps, error / self.tolerance
            )
            limit = min(2 * limit, MAX_EVALUATION_SWEEPS)
        elif not (fast or first):
            limit //= 2
        if not first:
            grown = 2 * max_sweeps + 1 if value_missing or fast else max_sweeps // 2
            max_sweeps = max(min(grown, limit), self.min_sweeps)
        return state._replace(
            max_sweeps=max_sweeps,
            limit=limit,
            policies=state.policies + 1,
            error=error,
            span_before=span,
            forcing=forcing_term(state.span_before, span),
            remaining_sweeps=remaining,
        )

    def advance(
        self, operator: Operator, certificate: Certificate, state: PartialEvaluation
    ) -> tuple[Array, PartialEvaluation]:
        """The next v, after up to `state.max_sweeps` sweeps of the certificate's policy."""
        if state.policies == 1:
            return certificate.updated, state
        residual = self.tolerance * (1.0 - operator.discount)
        max_span = max(state.forcing * state.span_before, 0.1 * residual)
        start = certificate.updated
        if not operator.ends:
            start = operator.shifted(start, certificate.middle)
        v, sweeps, span = operator.policy_sweeps(certificate, start, state.max_sweeps, max_span)
        return v, state._replace(sweeps=sweeps, span_after=span)


def forcing_term(before: float, after: float) -> float:
    """How much the next evaluation is to reduce the span, after one from `before` to `after`."""
    if not after < before:
        return 0.1
    return min(max(0.03 * (after / before) ** 2, 1e-5), 0.1)


def estimated_work(before: float, after: float, spent: float, ratio: float) -> float:
    """The work that reduces an error by `ratio`, if `spent` reduces it from `before` to `after`."""
    after = max(after, 1e-300 * before, 2.0**-1074)
    if not after < before:
        return math.inf
    return spent * math.log(ratio) / math.log(before / after)
