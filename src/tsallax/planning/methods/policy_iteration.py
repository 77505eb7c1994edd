"""Policy iteration, which is Newton's method for v = Uv."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from tsallax.planning.operator import Certificate, Iterate, NewtonStart, Operator


class NewtonState(NamedTuple):
    """What the operator reuses from one linear system to the next."""

    order: Any


@dataclass(frozen=True)
class PolicyIteration:
    """Solve v = r_pi + alpha Omega(pi) + gamma T_pi v for the greedy policy, then improve it.

    Newton's method is monotone from below and quick once the policy is right in most states.
    """

    tolerance: float

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
        change = max(abs(certificate.change[0]), abs(certificate.change[1]))
        residual = max(1e-2 * change, 0.1 * (self.tolerance * (1.0 - operator.discount)))
        v, _ = operator.policy_value(start.certificate, start.guess, residual, start.order)
        lower = v if start.certificate is certificate else start.guess
        v, sweeps = operator.improved(v, lower, start.order)
        return start.certificate.iterate(v, start.sweeps + sweeps), NewtonState(start.order)
