"""Solve a finite MDP, hard, soft, sparse or Tsallis, with a proof of the error.

`solve` repeats one step until the enclosure of V* that `tsallax.bellman` proves is narrow enough:

    certify   one sweep at v: Uv, the greedy policy, lower <= V* <= upper
    advance   the method's next v (`tsallax.planning.methods`)

The returned value is the centre of the enclosure, so |value - V*| <= error <= tolerance in every
state, and the returned policy is worth at least `lower` in the regularised MDP.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.interrupts import interruptible
from tsallax.planning.bellman import Bellman, Certificate, Floats, require
from tsallax.planning.forms import frozen
from tsallax.planning.kernels import sweep
from tsallax.planning.mdp import MDP
from tsallax.planning.methods import METHODS, value_iteration
from tsallax.progress import bar
from tsallax.regularizer import Regularizer


@dataclass(frozen=True, repr=False, eq=False)
class Solution:
    """The optimal value and policy of a regularised MDP, with what is proven about them.

    Attributes:
        value: V(s), shape (S,): the centre of the enclosure.
        lower: a bound below V*(s), which the returned policy's own value reaches, too.
        upper: a bound above V*(s).
        pair_policy: pi(a|s) of every pair; `policy` lays it out as a table.
        converged: whether `error` is at most the tolerance asked for.
        iterations: certificates made.
        sweeps: applications of the Bellman operator to all states (a policy's own are not counted).
        seconds: wall time.
        method: the method asked for.
        tolerance: the tolerance asked for.
    """

    mdp: MDP
    regularizer: Regularizer
    value: Floats
    lower: Floats
    upper: Floats
    pair_policy: Floats
    converged: bool
    iterations: int
    sweeps: int
    seconds: float
    method: str
    tolerance: float

    @property
    def error(self) -> float:
        """The largest distance of `value` to V* that the enclosure leaves open."""
        return float(np.max(self.upper - self.lower)) / 2

    @cached_property
    def pair_q(self) -> Floats:
        """Q(s, a) = r + gamma E V of every pair; `q` lays it out as a table."""
        return Bellman(self.mdp, self.regularizer).action_values(self.value)

    @cached_property
    def q(self) -> Floats:
        """Action values as a table (S, A), -inf where the state lacks the action."""
        return self.mdp.table(self.pair_q, fill=-math.inf)

    @cached_property
    def policy(self) -> Floats:
        """The policy as a table (S, A), zero at terminal states; it is worth at least `lower`."""
        return self.mdp.table(self.pair_policy)

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """Where the policy is positive, as a table (S, A)."""
        return self.policy > 0.0

    @property
    def support_ratio(self) -> float:
        """Share of the pairs that the policy uses."""
        return float(np.count_nonzero(self.pair_policy)) / self.mdp.n_pairs

    @cached_property
    def certified_support(self) -> NDArray[np.int8]:
        """What is proven of the optimal policy's support, as a table (S, A): +1 in, -1 out, 0 open.

        From Q_lower <= Q* <= Q_upper: an action is out where Q_upper(s, a) is at or below the
        threshold of Q_lower(s, .), since thresholds grow with Q, and in where Q_lower(s, a) is
        above the threshold of Q_upper(s, .).  A hard policy's support are the optimal actions; a
        soft policy (q <= 1) uses every action.
        """
        bellman = Bellman(self.mdp, self.regularizer)
        if bellman.alpha > 0.0 and bellman.q <= 1.0:
            return self.mdp.table(np.ones(self.mdp.n_pairs, np.int8))
        low, high = (bellman.action_values(v) for v in (self.lower, self.upper))
        verdict = np.zeros(self.mdp.n_pairs, np.int8)
        slack = bellman.action_value_rounding(self.lower, self.upper)
        sweep.certify_support(
            bellman.arrays, *bellman.kind, bellman.width, low - slack, high + slack, verdict
        )
        return self.mdp.table(verdict)

    @property
    def regularized_return(self) -> float:
        """d'V: what the start is worth, entropy included; `evaluate` has the return alone."""
        return float(self.mdp.initial @ self.value)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the solution and its MDP as an `.npz` file without pickles, whole or not at all.

        >>> import tempfile, pathlib
        >>> from tsallax import Hard, problems
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     solve(problems.forest(), Hard()).save(pathlib.Path(folder, "forest.npz"))
        ...     Solution.load(pathlib.Path(folder, "forest.npz")).policy[:, 0]
        array([1., 1., 1.])
        """
        from tsallax.planning import solution_files

        solution_files.write(path, self)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Solution:
        """Read a solution that `save` wrote, with its MDP.

        >>> Solution.load("absent.npz")
        Traceback (most recent call last):
        ...
        tsallax.errors.InvalidInput: absent.npz: no such file
        """
        from tsallax.planning import solution_files

        return cls(**solution_files.read(path))

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return (
            f"Solution({self.regularizer}, {state}: error <= {self.error:.2g}, "
            f"{self.method}, {self.iterations} iterations, {self.sweeps} sweeps, "
            f"{self.seconds:.3g} s, value {self.value.min():.6g} to {self.value.max():.6g}, "
            f"support {self.support_ratio:.1%})"
        )


class NotConverged(RuntimeError):
    """The tolerance was not reached; `solution` is what was reached, its enclosure still valid.

    Where the values overflow, nothing is known: the enclosure is infinite.
    """

    def __init__(self, message: str, solution: Solution) -> None:
        super().__init__(message)
        self.solution = solution

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.solution)


def bellman(mdp: MDP, regularizer: Regularizer, value: ArrayLike) -> Floats:
    """Uv: the Bellman operator of the regularised MDP applied once, in float64.

    >>> from tsallax import Hard, problems
    >>> bellman(problems.forest(), Hard(), [0.0, 0.0, 0.0])
    array([0., 1., 4.])
    """
    require("bellman", mdp, regularizer)
    return Bellman(mdp, regularizer).apply(_read_value(mdp, value))


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
            which starts as the second and goes on as the third where that is slow.
        initial_value: a first guess of V (warm start), such as the value of a similar problem.
        max_sweeps: give up after this many Bellman sweeps (default: what value iteration needs).
        progress: show a progress bar; default: on a terminal, for solves over two seconds.

    Raises:
        NotConverged: with the solution so far, where the tolerance is out of reach.
        InvalidInput: where an argument makes no sense.

    >>> from tsallax import Sparse, problems
    >>> solution = solve(problems.forest(), Sparse(0.5), tolerance=1e-9)
    >>> solution.converged, solution.policy.round(3)
    (True, array([[1., 0.], [1., 0.], [1., 0.]]))
    """
    operator, v, most, clock = _prepare(
        mdp, regularizer, tolerance, method, initial_value, max_sweeps
    )
    advance = METHODS[method](operator, tolerance)
    # value iteration contracts by gamma: half of that is the least that counts as progress
    progress_factor = 0.5 + 0.5 * mdp.discount
    contracting = method == "value_iteration"
    start = float(np.abs(v).max())
    guessed = start > 0.0
    first = best = math.inf
    stalled = iterations = 0
    with bar("solving", progress) as report:
        while True:
            certificate = operator.certify(v)
            del v  # a vector of a million states less, while the method looks for the next
            iterations += 1
            first = certificate.error if iterations == 1 else first
            report(_share(first, certificate.error, tolerance))
            stalled = 0 if certificate.error < progress_factor * best else stalled + 1
            best = min(best, certificate.error)
            reason = _stop(certificate, tolerance, stalled, operator, most, start)
            if reason is not None:
                break
            if stalled == 20 and not contracting:
                # Newton's steps need not contract: start without the first guess, which may have
                # misled it, or go on with those that do
                best, stalled, contracting = math.inf, 0, not guessed
                advance = (value_iteration if contracting else METHODS[method])(operator, tolerance)
                v = certificate.updated if contracting else np.zeros_like(certificate.updated)
                guessed = False
            else:
                v = advance(certificate)
    lower, upper = (certificate.shifted(end) for end in (certificate.low, certificate.high))
    if not math.isfinite(certificate.error):
        lower, upper = np.full_like(lower, -math.inf), np.full_like(upper, math.inf)
    solution = Solution(
        mdp=mdp,
        regularizer=regularizer,
        value=frozen(np.nan_to_num(certificate.middle, copy=False)),
        lower=frozen(lower),
        upper=frozen(upper),
        pair_policy=frozen(operator.policy.weight),
        converged=bool(certificate.error <= tolerance),
        iterations=iterations,
        sweeps=operator.sweeps,
        seconds=time.perf_counter() - clock,
        method=method,
        tolerance=tolerance,
    )
    if not solution.converged:
        raise NotConverged(reason, solution)
    return solution


def _prepare(
    mdp: MDP,
    regularizer: Regularizer,
    tolerance: float,
    method: str,
    initial_value: ArrayLike | None,
    max_sweeps: int | None,
) -> tuple[Bellman, Floats, int, float]:
    """Refuse what cannot be solved, before any work; the operator, the first v and the limit."""
    require("solve", mdp, regularizer)
    number = isinstance(tolerance, int | float | np.floating) and not isinstance(tolerance, bool)
    if not (number and 0 < tolerance < math.inf):
        raise InvalidInput(f"tolerance must be a positive number, not {tolerance!r}")
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidInput(f"unknown method {method!r}: use one of {', '.join(METHODS)}")
    most = None if max_sweeps is None else checks.count("max_sweeps", max_sweeps)
    clock = time.perf_counter()
    operator = Bellman(mdp, regularizer)
    v = np.zeros(mdp.n_states) if initial_value is None else _read_value(mdp, initial_value)
    return operator, v, most or _enough_sweeps(operator, v, tolerance), clock


def _read_value(mdp: MDP, value: ArrayLike) -> Floats:
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


def _enough_sweeps(operator: Bellman, v: Floats, tolerance: float) -> int:
    """Sweeps in which value iteration is sure to get there, by Lemma 3, twice over."""
    gamma = operator.mdp.discount
    if gamma == 0.0:
        return 100
    far = min(operator.scale + (1.0 + gamma) * float(np.abs(v).max()) + 1e-300, 1e308)
    digits = math.log(far) - math.log(tolerance) - 2.0 * math.log1p(-gamma)
    return 2 * math.ceil(max(digits, 1.0) / -math.log(gamma)) + 100


def _stop(
    c: Certificate, tolerance: float, stalled: int, operator: Bellman, most: int, start: float
) -> str | None:
    """Why to stop now ("" where the tolerance is met), or None to go on."""
    sweeps, largest = operator.sweeps, operator.scale / (1.0 - operator.mdp.discount)
    overflow = not math.isfinite(c.error)
    if c.error <= tolerance and not overflow:
        return ""
    # what is left is rounding, and not the rounding of a v that is far from V*
    rounded = c.rounding > tolerance and c.error < 10.0 * c.rounding
    stuck = stalled > 40 or (stalled > 2 and rounded)
    if (overflow or stuck) and min(start, c.size) > 10 * largest:
        return (
            f"initial_value reaches {start:.3g}, far beyond the values of this MDP, which are "
            f"{largest:.3g} at most: start nearer to them"
        )
    if overflow:
        return "the values overflow float64: scale the rewards or alpha down"
    if stuck:
        return (
            f"tolerance {tolerance:g} is below what float64 can prove here ({c.rounding:.1g}): "
            "ask for a larger one, or scale rewards and alpha down"
        )
    if sweeps >= most:
        return (
            f"error {c.error:.3g} after {sweeps} sweeps, above the tolerance {tolerance:g}: "
            "raise max_sweeps or tolerance"
        )
    return None


def _share(first: float, error: float, tolerance: float) -> float:
    """The share of the way from the first error to the tolerance, on a logarithmic scale."""
    if not (tolerance < error < math.inf and first > error):
        return 0.0 if error > tolerance else 1.0
    return math.log(first / error) / math.log(first / tolerance)
