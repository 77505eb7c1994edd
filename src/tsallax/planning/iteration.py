"""The loop that all methods and operators share.

It repeats two steps until the enclosure of V* that a sweep proves is narrow enough:

    certify   one sweep at v: Uv, the greedy policy, lower <= V* <= upper (`planning.operator`)
    step      the method's next v (`planning.methods`)
"""

import math
from typing import NamedTuple

from tsallax.planning.methods import METHODS, Method
from tsallax.planning.methods.value_iteration import ValueIteration
from tsallax.planning.operator import Certificate, Iterate, Operator
from tsallax.progress import Report

RESTART_STALLS = 20
"""Certificates without progress after which a method is restarted."""

MAX_STALLS = 40
"""Certificates without progress after which the tolerance counts as out of reach."""


class Outcome(NamedTuple):
    """The last certificate of a solve, and why it is the last."""

    certificate: Certificate
    iterations: int  # certificates made
    sweeps: int  # applications of U
    reason: str  # why the tolerance was not met; "" where it was


def iterate_to(
    operator: Operator, method: str, tolerance: float, iterate: Iterate, max_sweeps: int | None,
    report: Report,
) -> Outcome:  # fmt: skip
    """Repeat certificate and step until the error is at most `tolerance`, or cannot get there."""
    make_method = METHODS[method]
    current: Method = make_method(tolerance)
    state = current.init()
    # value iteration contracts by gamma: half of that is the least that counts as progress
    progress_factor = 0.5 + 0.5 * operator.discount
    may_restart = method != "value_iteration"
    guessed = False
    limit = max_sweeps
    first = best = math.inf
    size = 0.0
    stalled = iterations = sweeps = 0
    while True:
        certificate = operator.certify(iterate)
        iterations += 1
        sweeps += iterate.sweeps + 1
        if iterations == 1:
            first, size = certificate.error, certificate.size
            guessed = size > 0.0
            if limit is None:
                limit = _sufficient_sweeps(operator, size, tolerance)
        report(_progress(first, certificate.error, tolerance))
        stalled = 0 if certificate.error < progress_factor * best else stalled + 1
        best = min(best, certificate.error)
        reason = _reason_to_stop(operator, certificate, tolerance, stalled, size)
        if reason is None and limit is not None and sweeps >= limit:
            reason = (
                f"error {certificate.error:.3g} after {sweeps} sweeps, above the tolerance "
                f"{tolerance:g}: raise max_sweeps or tolerance"
            )
        if reason is not None:
            return Outcome(certificate, iterations, sweeps, reason)
        if stalled == RESTART_STALLS and may_restart:
            # Newton steps need not contract: restart without the first guess, which may have
            # misled them, and the second time with value iteration, which contracts
            may_restart = guessed
            current = make_method(tolerance) if guessed else ValueIteration(tolerance)
            iterate = operator.start(None) if guessed else certificate.iterate(certificate.updated)
            state = current.init()
            guessed, best, stalled = False, math.inf, 0
        else:
            iterate, state = current.step(operator, certificate, state)
        del certificate  # the next sweep reuses the memory of its policy


def _sufficient_sweeps(operator: Operator, size: float, tolerance: float) -> int:
    """Twice the sweeps of value iteration to the tolerance from max|v| = size, by Lemma 3."""
    gamma = operator.discount
    if gamma == 0.0:
        return 100
    distance = min(operator.scale + (1.0 + gamma) * size + 1e-300, 1e308)
    digits = math.log(distance) - math.log(tolerance) - 2.0 * math.log1p(-gamma)
    return 2 * math.ceil(max(digits, 1.0) / -math.log(gamma)) + 100


def _reason_to_stop(
    operator: Operator, c: Certificate, tolerance: float, stalled: int, initial_size: float
) -> str | None:
    """Why to stop now ("" where the tolerance is met), or None to continue."""
    largest = operator.scale / (1.0 - operator.discount)
    overflow = not math.isfinite(c.error)
    if c.error <= tolerance and not overflow:
        return ""
    # what is left is rounding, and not the rounding of a v that is far from V*
    rounded = c.rounding > tolerance and c.error < 10.0 * c.rounding
    stuck = stalled > MAX_STALLS or (stalled > 2 and rounded)
    if (overflow or stuck) and min(initial_size, c.size) > 10 * largest:
        return (
            f"initial_value reaches {initial_size:.3g}, far beyond the values of this MDP, which "
            f"are {largest:.3g} at most: start nearer to them"
        )
    if overflow:
        return "the values overflow float64: scale the rewards or alpha down"
    if stuck:
        return (
            f"tolerance {tolerance:g} is below what float64 can prove here ({c.rounding:.1g}): "
            "ask for a larger one, or scale rewards and alpha down"
        )
    return None


def _progress(first: float, error: float, tolerance: float) -> float:
    """The share of the way from the first error to the tolerance, on a logarithmic scale."""
    if not (tolerance < error < math.inf and first > error):
        return 0.0 if error > tolerance else 1.0
    return math.log(first / error) / math.log(first / tolerance)
