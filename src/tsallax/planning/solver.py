"""Solves regularised MDPs: `solve` returns V* and the policy to a proven accuracy.

`solve` repeats two steps until the enclosure of V* that a sweep proves is narrow enough:

    certify   one sweep at v: Uv, the greedy policy, lower <= V* <= upper (`planning.bellman`)
    step      the method's next v (`planning.methods`)

The returned value is the centre of the enclosure, so |value - V*| <= error <= tolerance in every
state, and the returned policy is worth at least `lower` in the regularised MDP.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import ArrayLike

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.interrupts import interruptible
from tsallax.planning.bellman import Bellman, Certificate, Floats, Iterate, check_problem
from tsallax.planning.forms import frozen
from tsallax.planning.mdp import MDP
from tsallax.planning.methods import METHODS, Method
from tsallax.planning.methods.value_iteration import ValueIteration
from tsallax.planning.solution import NotConverged, Solution
from tsallax.progress import bar
from tsallax.regularizer import Regularizer

RESTART_STALLS = 20
"""Certificates without progress after which a method is restarted."""

MAX_STALLS = 40
"""Certificates without progress after which the tolerance counts as out of reach."""


def bellman(mdp: MDP, regularizer: Regularizer, value: ArrayLike) -> Floats:
    """Uv: the Bellman operator of the regularised MDP applied once, in float64.

    >>> from tsallax import Hard, problems
    >>> bellman(problems.forest(), Hard(), [0.0, 0.0, 0.0])
    array([0., 1., 4.])
    """
    check_problem("bellman", mdp, regularizer)
    operator = Bellman(mdp, regularizer)
    return operator.certify(operator.start(_read_value(mdp, value))).updated


@interruptible()
def solve(
    mdp: MDP,
    regularizer: Regularizer,
    tolerance: float = 1e-6,
    method: str = "auto",
    *,
    initial_value: ArrayLike | None = None,
    max_sweeps: int | None = None,
    progress: bool | None = None,
) -> Solution:
    """Solve the regularised MDP to a proven error of at most `tolerance` in every state.

    Args:
        mdp: the problem.
        regularizer: `Hard()`, `Soft(alpha)`, `Sparse(alpha)` or `Tsallis(alpha, q)`.
        tolerance: the largest allowed |value - V*|.
        method: "value_iteration", "modified_policy_iteration", "policy_iteration", or "auto",
            which starts with the second and changes to the third where that is quicker.
        initial_value: a first guess of V (warm start), such as the value of a similar problem.
        max_sweeps: the largest number of Bellman sweeps (default: what value iteration needs).
        progress: show a progress bar; default: on a terminal, for solves over two seconds.

    Raises:
        NotConverged: with the solution so far, where the tolerance is out of reach.
        InvalidInput: where an argument makes no sense.

    >>> from tsallax import Sparse, problems
    >>> solution = solve(problems.forest(), Sparse(0.5), tolerance=1e-9)
    >>> solution.converged, solution.policy.round(3)
    (True, array([[1., 0.], [1., 0.], [1., 0.]]))
    """
    check_problem("solve", mdp, regularizer)
    tolerance = checks.number("tolerance", tolerance, above=0)
    make_method = METHODS[checks.one_of("method", method, METHODS)]
    limit = None if max_sweeps is None else checks.count("max_sweeps", max_sweeps)
    started = time.perf_counter()
    operator = Bellman(mdp, regularizer)
    v = np.zeros(mdp.n_states) if initial_value is None else _read_value(mdp, initial_value)
    size = float(np.abs(v).max())
    if limit is None:
        limit = _sufficient_sweeps(operator, size, tolerance)
    iterate = operator.start(v)
    current: Method = make_method(tolerance)
    state = current.init()
    # value iteration contracts by gamma: half of that is the least that counts as progress
    progress_factor = 0.5 + 0.5 * mdp.discount
    may_restart = method != "value_iteration"
    guessed = size > 0.0
    first = best = math.inf
    stalled = iterations = sweeps = 0
    with bar("solving", progress) as report:
        while True:
            certificate = operator.certify(iterate)
            iterations += 1
            sweeps += iterate.sweeps + 1
            first = certificate.error if iterations == 1 else first
            report(_progress(first, certificate.error, tolerance))
            stalled = 0 if certificate.error < progress_factor * best else stalled + 1
            best = min(best, certificate.error)
            reason = _reason_to_stop(operator, certificate, tolerance, stalled, size)
            if reason is None and sweeps >= limit:
                reason = (
                    f"error {certificate.error:.3g} after {sweeps} sweeps, above the tolerance "
                    f"{tolerance:g}: raise max_sweeps or tolerance"
                )
            if reason is not None:
                break
            if stalled == RESTART_STALLS and may_restart:
                # Newton steps need not contract: restart without the first guess, which may have
                # misled them, and the second time with value iteration, which contracts
                may_restart = guessed
                current = make_method(tolerance) if guessed else ValueIteration(tolerance)
                v = np.zeros_like(certificate.updated) if guessed else certificate.updated
                iterate, state = Iterate(v, certificate.policy.thresholds), current.init()
                guessed, best, stalled = False, math.inf, 0
            else:
                iterate, state = current.step(operator, certificate, state)
            del certificate  # the next sweep reuses the memory of its policy
    lower, upper = (certificate.shifted(end) for end in (certificate.low, certificate.high))
    if not math.isfinite(certificate.error):
        lower, upper = np.full_like(lower, -math.inf), np.full_like(upper, math.inf)
    solution = Solution(
        mdp=mdp,
        regularizer=regularizer,
        value=frozen(np.nan_to_num(certificate.middle, copy=False)),
        lower=frozen(lower),
        upper=frozen(upper),
        pair_policy=frozen(certificate.policy.weights),
        converged=bool(certificate.error <= tolerance),
        iterations=iterations,
        sweeps=sweeps,
        seconds=time.perf_counter() - started,
        method=method,
        tolerance=tolerance,
    )
    if not solution.converged:
        raise NotConverged(reason, solution)
    return solution


def _read_value(mdp: MDP, value: ArrayLike) -> Floats:
    """A value function from the caller, as a copy that is 0 at terminal states."""
    try:
        v = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise InvalidInput(f"a value is an array of numbers, not {kind}") from None
    if v.shape != (mdp.n_states,):
        raise InvalidInput(f"a value of this MDP has shape ({mdp.n_states},), not {v.shape}")
    if not np.isfinite(v).all():
        s = int(np.flatnonzero(~np.isfinite(v))[0])
        raise InvalidInput(f"the value of state {s} is {v[s]}: it must be finite")
    v[mdp.terminal] = 0.0
    return v


def _sufficient_sweeps(operator: Bellman, size: float, tolerance: float) -> int:
    """Twice the sweeps of value iteration to the tolerance from max|v| = size, by Lemma 3."""
    gamma = operator.mdp.discount
    if gamma == 0.0:
        return 100
    distance = min(operator.scale + (1.0 + gamma) * size + 1e-300, 1e308)
    digits = math.log(distance) - math.log(tolerance) - 2.0 * math.log1p(-gamma)
    return 2 * math.ceil(max(digits, 1.0) / -math.log(gamma)) + 100


def _reason_to_stop(
    operator: Bellman, c: Certificate, tolerance: float, stalled: int, initial_size: float
) -> str | None:
    """Why to stop now ("" where the tolerance is met), or None to continue."""
    largest = operator.scale / (1.0 - operator.mdp.discount)
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
