"""The loop that all methods and operators share.

It repeats two steps until the enclosure of V* that a sweep proves is narrow enough:

    certify   one sweep at v: Uv, the greedy policy, lower <= V* <= upper (`planning.operator`)
    step      the method's next v (`planning.methods`)

An enclosure is widened by the rounding of its sweep, which grows with max|v|.  So there is a
smallest error that can be proven: a tolerance below it is refused with that number.

A method whose error ceases to fall is restarted from v = 0, then replaced by value iteration, which
contracts, and at last by policy iteration: many sweeps add up their rounding to about
max|v| eps/(1 - gamma)^2, the linear systems of policy iteration do not.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from tsallax.interrupts import interruptible
from tsallax.planning.methods import METHODS, Method
from tsallax.planning.methods.policy_iteration import PolicyIteration
from tsallax.planning.methods.value_iteration import MAX_STALLS, ValueIteration
from tsallax.planning.operator import SMALLEST_NUMBER, Certificate, Iterate, Operator
from tsallax.progress import Report
from tsallax.time_limits import DeadlineReached, deadline
from tsallax.wording import plural

ROUNDING_STALLS = 20
"""Certificates without progress, after which an error that is mostly rounding counts as final."""


class Target(NamedTuple):
    """What a solve is to reach, and what it may take."""

    tolerance: float  # the largest error
    relative_tolerance: float = 0.0  # the same in units of max|V*|; the larger of both counts
    max_sweeps: int | None = None  # None: twice those of value iteration
    time_limit: float | None = None  # seconds from the call; the first sweep is made

    def error(self, certificate: Certificate) -> float:
        """The largest error that is small enough, given what the certificate proves of V*."""
        absolute = max(self.tolerance, SMALLEST_NUMBER)
        if not self.relative_tolerance:
            return absolute
        return max(absolute, self.relative_tolerance * value_bounds(certificate)[0])


class Outcome(NamedTuple):
    """The certificate of the smallest error of a solve, and why the solve ended."""

    certificate: Certificate
    iterations: int  # certificates made
    sweeps: int  # applications of U
    reason: str  # why the tolerance was not met; "" where it was
    interrupted: bool = False  # by Ctrl-C


def iterate_to(
    operator: Operator,
    method: str,
    target: Target,
    iterate: Iterate,
    report: Report,
    begin: float | None = None,
) -> Outcome:
    """Repeat certificate and step until the error is small enough, or will not become so.

    An interrupt is an outcome, too, once there is a certificate.  `begin` is when the time limit
    begins, in the units of `time.monotonic`; by default now.
    """
    begin = time.monotonic() if begin is None else begin
    end = math.inf if target.time_limit is None else begin + target.time_limit
    make_method: Callable[[float], Method] = METHODS[method]
    contracts = make_method is ValueIteration
    others: list[Callable[[float], Method]] = [] if contracts else [ValueIteration, PolicyIteration]
    state = make_method(target.tolerance).init()
    # value iteration contracts by gamma: half of that is the least that counts as progress
    progress_factor = 0.5 + 0.5 * operator.discount
    certificate = operator.certify(iterate)  # whatever the time limit
    first = smallest = certificate.error
    best, kept = iterate, operator.compacted(certificate)  # of the smallest error
    reached = math.inf  # the smallest error since a restart
    size = certificate.size
    guessed = size > 0.0 and not contracts
    limit = target.max_sweeps or _sufficient_sweeps(operator, size, target.error(certificate))
    stalled = iterations = sweeps = 0
    interrupted = False
    try:
        with interruptible(), deadline(end):
            while True:
                iterations += 1
                sweeps += iterate.sweeps + 1
                error, tolerance = certificate.error, target.error(certificate)
                if error < smallest:
                    smallest, best, kept = error, iterate, operator.compacted(certificate)
                stalled = 0 if error < progress_factor * reached else stalled + 1
                reached = min(reached, error)
                report(_progress(first, error, tolerance))
                if error <= tolerance:
                    return Outcome(certificate, iterations, sweeps, "")
                current = make_method(tolerance)
                stuck = stalled >= current.max_stalls
                exhausted = stuck and not (guessed or others)
                reason = (
                    _overflow(operator, certificate, stalled, size)
                    or _out_of_reach(
                        operator, certificate, tolerance, smallest, stalled, exhausted, contracts
                    )
                    or _spent(target, limit, sweeps, time.monotonic() - begin, smallest, tolerance)
                )
                if reason:
                    kept = certificate if error == smallest else kept
                    break
                if not stuck:
                    iterate, state = current.step(operator, certificate, state)
                else:
                    iterate = certificate.iterate(certificate.updated)
                    if guessed:
                        iterate, guessed = operator.start(None), False
                    else:
                        make_method = others.pop(0)
                    state, reached, stalled = make_method(tolerance).init(), math.inf, 0
                del certificate  # the next sweep reuses the memory of its policy
                certificate = operator.certify(iterate)
    except KeyboardInterrupt:
        interrupted = True
        reason = f"interrupted after {sweeps} sweeps, with a proven error of {smallest:.3g}"
    except DeadlineReached:
        seconds = max(time.monotonic() - begin, target.time_limit or 0.0)
        reason = _spent(target, limit, sweeps, seconds, smallest, tolerance)
    return Outcome(kept or operator.certify(best), iterations, sweeps, reason, interrupted)


def value_bounds(certificate: Certificate) -> tuple[float, float]:
    """Bounds on max|V*|, from below and above.

    V* is about v + low to v + high.  A v near 0 says as much of it as one near V*, if all states
    are known to be worth more, or less, by at least a distance.
    """
    (least, most), (low, high) = certificate.change, (certificate.low, certificate.high)
    swept = certificate.size + max(abs(least), abs(most))  # at least max|Uv|
    beyond = max(low, -high, 0.0)  # the least distance of V* from Uv in any state
    distance = max(abs(low), abs(high))
    near = certificate.size - max(abs(least), abs(most)) - distance
    return max(near, beyond - swept, 0.0), swept + distance


def _sufficient_sweeps(operator: Operator, size: float, tolerance: float) -> int:
    """Twice the sweeps of value iteration to the tolerance from max|v| = size, by Lemma 3."""
    gamma = operator.discount
    if gamma == 0.0:
        return 100
    distance = min(operator.scale + (1.0 + gamma) * size + 1e-300, 1e308)
    digits = math.log(distance) - math.log(tolerance) - 2.0 * math.log1p(-gamma)
    return 2 * math.ceil(max(digits, 1.0) / -math.log(gamma)) + 100


def _overflow(
    operator: Operator, certificate: Certificate, stalled: int, initial_size: float
) -> str:
    """The reason to stop where numbers are too large, or "" where they are not."""
    largest = operator.scale / (1.0 - operator.discount)
    overflow = not math.isfinite(certificate.error)
    stuck = stalled >= MAX_STALLS or (stalled > 2 and _is_rounding(certificate))
    if (overflow or stuck) and min(initial_size, certificate.size) > 10 * largest:
        return (
            f"initial_value reaches {initial_size:.3g}, far beyond the values of this MDP, which "
            f"are {largest:.3g} at most: start nearer to them"
        )
    reason = f"the values overflow {operator.precision}: scale the rewards or alpha down"
    return reason if overflow else ""


def _is_rounding(certificate: Certificate) -> bool:
    """Whether the error is mostly rounding, and not that of a v that is far from V*."""
    return certificate.error < 10.0 * certificate.rounding


def _out_of_reach(
    operator: Operator, c: Certificate, tolerance: float, smallest: float, stalled: int,
    exhausted: bool, contracts: bool,
) -> str:  # fmt: skip
    """The reason to stop where the tolerance is below rounding, or "" where it may not be.

    No certificate can have less than the rounding of values around V*, which the first test
    estimates from below: rounding is at least proportional to max|v|, and an iterate that differs
    from V* by a constant gains nothing, since row sums are known to rounding only.  The factor of
    one half is a margin.  In the other cases the error has ceased to fall, though no other
    method is left (`exhausted`), or to no more than a few times the rounding.  `contracts` is
    whether all sweeps are those of value iteration.
    """
    least, largest = value_bounds(c)
    final = 0.5 * c.rounding * ((least - tolerance) / max(largest, SMALLEST_NUMBER))
    if final > tolerance and c.error <= 0.5 * least:
        gap = 1.0 - operator.discount
        # the rounding of many sweeps of value iteration adds up, often as in a random walk
        margin = 4.0 + (0.25 / math.sqrt(gap) if contracts else 0.0)
        provable = margin * operator.rounding(min(largest, operator.scale / gap))
    elif exhausted or (
        _is_rounding(c) and stalled > (2 if c.rounding > tolerance else ROUNDING_STALLS)
    ):
        provable = 1.5 * smallest
    else:
        return ""
    return (
        f"tolerance {tolerance:g} is below what {operator.precision} can prove here, which is "
        f"about {_rounded_up(provable):g}: ask for that, or scale rewards and alpha down"
    )


def _rounded_up(x: float) -> float:
    """x to two digits, rounded up."""
    if not 0.0 < x < 1e300:
        return x
    unit = 10.0 ** (math.floor(math.log10(x)) - 1)
    return float(f"{math.ceil(x / unit) * unit:.2g}") if unit > 0.0 else x


def _spent(
    target: Target, limit: int, sweeps: int, seconds: float, smallest: float, tolerance: float
) -> str:
    """The reason to stop where sweeps or seconds are used up, or "" where they are not."""
    if sweeps >= limit:
        spent, remedy = plural(sweeps, "sweep"), "max_sweeps"
    elif target.time_limit is not None and seconds >= target.time_limit:
        spent, remedy = f"{seconds:.3g} s", "time_limit"
    else:
        return ""
    return (
        f"error {smallest:.3g} after {spent}, above the tolerance {tolerance:g}: "
        f"raise {remedy} or tolerance"
    )


def _progress(first: float, error: float, tolerance: float) -> float:
    """The share of the way from the first error to the tolerance, on a logarithmic scale."""
    if not (tolerance < error < math.inf and first > error):
        return 0.0 if error > tolerance else 1.0
    return math.log(first / error) / math.log(first / tolerance)
