"""Value iteration, v <- Uv: the paper's sparse value iteration for the sparse regulariser."""

from dataclasses import dataclass
from typing import ClassVar

from tsallax.planning.operator import Certificate, Iterate, Operator

MAX_STALLS = 41
"""Certificates without progress, after which the error of value iteration counts as final."""


@dataclass(frozen=True)
class ValueIteration:
    """v <- Uv: the sweep of the certificate is all the work."""

    tolerance: float
    max_stalls: ClassVar[int] = MAX_STALLS

    def init(self) -> None:
        """Value iteration has no state."""

    def step(
        self, operator: Operator, certificate: Certificate, state: None
    ) -> tuple[Iterate, None]:
        """Uv, which the certificate has."""
        return certificate.iterate(certificate.updated), None
