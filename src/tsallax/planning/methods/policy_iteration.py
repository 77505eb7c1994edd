"""Policy iteration, which is Newton's method for v = Uv."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from tsallax.planning.operator import Certificate, Iterate, NewtonStart, Operator

LOOSE_RESIDUAL = 1e-2
"""The residual of a linear system, relative to the last change of v, while the error falls fast."""

PATIENT_GAP = 1e-3
"""1 - gamma below which linear systems are solved accurately from the start."""


class NewtonState(NamedTuple):
    """What the operator reuses from one linear system to the next, and how accurate those are."""

    order: Any
    error: float  # of the last certificate
    accurate: bool  # whether linear systems are solved to the accuracy that the value needs


@dataclass(frozen=True)
class PolicyIteration:
    """Solve v = r_pi + alpha Omega(pi) + gamma T_pi v for the greedy policy, then improve it.

    Newton's method is monotone from below and quick once the policy is right in most states.
    """

    tolerance: float
    max_stalls: ClassVar[int] = 100

    def init(self) -> NewtonState | None:
        """The operator chooses where to start in the first step."""
        return None

    def step(
        self, operator: Operator, certificate: Certificate, state: NewtonState | None
    ) -> tuple[Iterate, NewtonState]:
        """The value of the greedy policy, from a linear system."""
        if state is None:
            start = operator.newton_start(certificate)
        else:
            start = NewtonStart(certificate, certificate.updated, state.order, 0)
        gap = 1.0 - operator.discount
        change = max(abs(certificate.change[0]), abs(certificate.change[1]))
        slow = state is not None and certificate.error > 0.25 * state.error
        accurate = gap < PATIENT_GAP or slow or (state is not None and state.accurate)
        # a residual r means an error of the value of up to r/(1 - gamma)
        relative = min(LOOSE_RESIDUAL, gap) if accurate else LOOSE_RESIDUAL
        residual = max(relative * change, 0.1 * (max(self.tolerance, certificate.rounding) * gap))
        if start.certificate is not certificate:  # this policy changes the guess by more than that
            _, _, span = operator.policy_sweeps(start.certificate, start.guess, 1, math.inf)
            residual = max(residual, min(LOOSE_RESIDUAL, gap) * span)
        v, _ = operator.policy_value(start.certificate, start.guess, residual, start.order)
        lower = v if start.certificate is certificate else start.guess
        v, sweeps = operator.improved(v, lower, start.order, slow)
        iterate = start.certificate.iterate(v, start.sweeps + sweeps)
        return iterate, NewtonState(start.order, certificate.error, accurate)
