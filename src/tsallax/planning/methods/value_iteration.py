"""Value iteration, v <- Uv: the paper's sparse value iteration for the sparse regulariser."""

from dataclasses import dataclass
from typing import ClassVar

from tsallax.planning.operator import Certificate, Iterate, Operator


@dataclass(frozen=True)
class ValueIteration:
    """v <- Uv: the sweep of the certificate is all the work."""

    tolerance: float
    max_stalls: ClassVar[int] = 10**9

    def init(self) -> None:
        """Value iteration has no state."""

    def step(
        self, operator: Operator, certificate: Certificate, state: None
    ) -> tuple[Iterate, None]:
        """Uv, which the certificate has."""
        return certificate.iterate(certificate.updated), None
