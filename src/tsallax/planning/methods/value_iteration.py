"""Value iteration, v <- Uv: the paper's sparse value iteration for the sparse regulariser."""

from dataclasses import dataclass

from tsallax.planning.bellman import Bellman, Certificate, Iterate


@dataclass(frozen=True)
class ValueIteration:
    """v <- Uv: the sweep of the certificate is all the work."""

    tolerance: float

    def init(self) -> None:
        """Value iteration has no state."""

    def step(
        self, operator: Bellman, certificate: Certificate, state: None
    ) -> tuple[Iterate, None]:
        """Uv, which the certificate has."""
        return Iterate(certificate.updated, certificate.policy.thresholds), None
