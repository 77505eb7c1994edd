"""What a solve needs of a Bellman operator, whatever computes it.

The loop (`planning.iteration`) and the methods (`planning.methods`) see an operator through the
`Operator` protocol only.  Arrays may be those of NumPy or JAX and are opaque to them: all they do
with one is to pass it back to the operator that made it.  Numbers in a `Certificate` are Python
floats, and its bounds include the operator's rounding.
"""

from typing import Any, NamedTuple, Protocol

UNIT_ROUNDOFF = 2.0**-53
SMALLEST_NUMBER = 2.0**-1074

Array = Any
"""A value function v(s), as the operator stores it."""


class Iterate(NamedTuple):
    """A value function to be certified."""

    value: Array  # v(s)
    hint: Any  # what the operator reuses of the sweep before, which saves time; its own form
    sweeps: int = 0  # applications of U that were made to find v, besides certificates


class Certificate(NamedTuple):
    """What the sweep v -> Uv proves: updated + low <= V* <= updated + high, except at terminals."""

    updated: Array  # Uv
    policy: Any  # greedy in v, in the operator's own form
    hint: Any  # for the next sweep
    pairs_used: int  # about the number of pairs to which the policy gives a probability
    n_pairs: int  # state-action pairs
    change: tuple[float, float]  # min and max of Uv - v
    low: float  # the ends of the enclosure of V*, relative to Uv
    high: float
    rounding: float  # the part of the enclosure that is rounding
    size: float  # max|v|

    @property
    def error(self) -> float:
        """Half the width of the enclosure, which is the same in all states."""
        return 0.5 * (self.high - self.low)

    @property
    def middle(self) -> float:
        """The centre of the enclosure, relative to Uv."""
        return 0.5 * (self.low + self.high)

    @property
    def span(self) -> float:
        """max(Uv - v) - min(Uv - v): 0 where v is V* up to a constant."""
        return self.change[1] - self.change[0]

    @property
    def support_ratio(self) -> float:
        """The share of the pairs that the policy uses."""
        return self.pairs_used / max(self.n_pairs, 1)

    def iterate(self, v: Array, sweeps: int = 0) -> Iterate:
        """v as the next iterate, with what this sweep found as a hint."""
        return Iterate(v, self.hint, sweeps)


class NewtonStart(NamedTuple):
    """Where policy iteration starts from."""

    certificate: Certificate  # its policy is evaluated first
    guess: Array  # a guess of that policy's value
    order: Any  # what the operator reuses from one linear system to the next; may be None
    sweeps: int  # applications of U that were made


class Operator(Protocol):
    """The operator U of a regularised MDP; calls do not depend on earlier ones."""

    @property
    def discount(self) -> float:
        """gamma."""

    @property
    def precision(self) -> str:
        """The precision of its numbers, "float64" or "float32"."""

    @property
    def ends(self) -> bool:
        """Whether episodes can end, so that U(v + c) = Uv + gamma c does not hold everywhere."""

    @property
    def scale(self) -> float:
        """A bound on |V*| (1 - gamma): the largest reward and entropy bonus of one step."""

    @property
    def sweep_cost(self) -> float:
        """The time of `certify`, in passes of `policy_sweeps` over all transitions."""

    def newton_cost(self, support_ratio: float) -> float:
        """About the time that policy iteration takes to converge, in the same unit.

        `support_ratio` is the share of the pairs that a policy uses.
        """

    def start(self, v: Array | None) -> Iterate:
        """The first iterate; v = 0 where None is given."""

    def certify(self, iterate: Iterate) -> Certificate:
        """Uv, the policy that is greedy in v, and the enclosure of V* that they prove."""

    def compacted(self, certificate: Certificate) -> Certificate | None:
        """The certificate in little memory, or None where a sweep has to make it again."""

    def rounding(self, size: float) -> float:
        """How far the enclosure of `certify` is widened for v and Uv of this size, at least."""

    def shifted(self, v: Array, by: float) -> Array:
        """v + by, with the terminal states left at zero."""

    def policy_sweeps(
        self, certificate: Certificate, v: Array, max_sweeps: int, max_span: float
    ) -> tuple[Array, int, float]:
        """v <- r_pi + alpha Omega(pi) + gamma T_pi v for the certificate's policy, repeated.

        Ends after `max_sweeps`, or when the change is the same in all states to within `max_span`.
        Returns v, the number of sweeps, and the span of the last change; v itself is not modified.
        """

    def newton_start(self, certificate: Certificate) -> NewtonStart:
        """Where policy iteration starts: `certificate` itself, or a better policy if one is known.

        `NewtonStart(certificate, certificate.updated, None, 0)` is always right.
        """

    def policy_value(
        self, certificate: Certificate, guess: Array, tolerance: float, order: Any
    ) -> tuple[Array, float]:
        """The value of the certificate's policy: v, and about max|r_pi + gamma T_pi v - v|.

        `tolerance` is for that residual; where it cannot be reached, v is the best that was found.
        """

    def improved(self, v: Array, lower: Array, order: Any, thorough: bool) -> tuple[Array, int]:
        """v after cheap improvements, and the sweeps of U that they cost; (v, 0) is always right.

        `lower` is another value function of which Uv >= v holds; `thorough` allows for more.
        """


def enclosure_ends(change: tuple[float, float], shifts: tuple[float, float]) -> tuple[float, float]:
    """k(min d) and k'(max d): how far V* is from Uv by MacQueen's bounds, before rounding.

    `change` is the min and max of d = Uv - v, and `shifts` are b and B, between which U moves with
    its argument (see `planning.bellman`).
    """
    (low, high), (least, most) = change, shifts
    return _gain(most if low < 0 else least) * low, _gain(most if high > 0 else least) * high


def _gain(shift: float) -> float:
    return shift / (1.0 - shift)
