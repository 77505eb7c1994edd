"""The Bellman operator U of a regularised MDP, and what one application of it proves.

    Q(s, a) = r(s, a) + gamma sum_s' T(s'|s, a) v(s')
    (Uv)(s) = max_p <p, Q(s, .)> + alpha Omega(p)

U is monotone and shifts with its argument: U(v + c) lies between Uv + b c and Uv + B c, where
[b, B] holds gamma times the probability that the episode continues, over all pairs (b = B = gamma
where no episode ends; Lemmas 1 and 2 of the paper, for every regulariser).  Hence, with d = Uv - v,
the optimal value V* is enclosed by (MacQueen 1966)

    Uv + k(min d) <= V* <= Uv + k'(max d),   k(d) = d b/(1-b) for d > 0,  d B/(1-B) for d < 0,
                                             k'(d) = d B/(1-B) for d > 0,  d b/(1-b) for d < 0,

and the policy that is greedy in v is worth at least the lower end.  The enclosure is widened by
the rounding of the sweep, so it holds for the floating-point result, with MDP and discount taken
as the exact numbers they are.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.planning.forms import Floats, frozen
from tsallax.planning.kernels import (
    PARALLEL_TRANSITIONS,
    bellman_sweep,
    policy_sweep,
    thread_blocks,
)
from tsallax.planning.kernels.bellman_sweep import relax
from tsallax.planning.kernels.breadth_first import breadth_first_order
from tsallax.planning.kernels.mdp_arrays import MDPArrays, Policy, action_values
from tsallax.planning.kernels.sparse_linear import max_abs
from tsallax.planning.kernels.support_certificates import certify_support
from tsallax.planning.linear_systems import Order, PolicySystem
from tsallax.planning.mdp import MDP
from tsallax.planning.operator import (
    SMALLEST_NUMBER,
    UNIT_ROUNDOFF,
    Certificate,
    Iterate,
    NewtonStart,
    enclosure_ends,
)
from tsallax.planning.termination_proof import longest_durations
from tsallax.planning.validation import ULPS
from tsallax.regularizer import Regularizer

MAX_REFINEMENTS = 5
"""Corrections of a policy's value by one solver."""
MAX_FACTORIZATION_WORK = 1e10
"""Multiplications up to which a linear system is factored completely, a few seconds."""
SINGLE_PRECISION_GAP = 1e-4
"""1 - gamma above which linear systems are solved in single precision, with up to 100 actions."""


class Bellman:
    """The `Operator` of an MDP in memory and a regulariser, in compiled loops (Numba).

    Attributes:
        mdp: the problem.
        n_states: of the MDP.
        discount: of the MDP; where that is 1, 1 - 1/(longest expected duration of an episode), by
            which U contracts in a weighted norm (`planning.termination_proof`).
        precision: of all numbers.
        alpha, q: of the regulariser.
        width: the largest number of actions of a state.
        ends: whether episodes can end.
        parallel: whether sweeps use all threads.

    With `finite_horizon`, the discount may be 1; there is no certificate then, only `sweep`.
    """

    def __init__(self, mdp: MDP, regularizer: Regularizer, *, finite_horizon: bool = False) -> None:
        self.mdp = mdp
        self.precision = "float64"
        self.n_states = mdp.n_states
        self.discount = mdp.discount
        self.alpha = float(regularizer.alpha)
        self.q = float(regularizer.q)
        self.arrays = kernel_arrays(mdp)
        self.width = mdp.max_actions
        has_terminal = bool(mdp.terminal.any())
        self.ends = has_terminal or mdp.termination is not None
        self.parallel = mdp.transitions.nnz >= PARALLEL_TRANSITIONS
        # alpha and q for the kernels, None for hard and sparse
        self._regularizer = (self.alpha or None, self.q if self.q != 2.0 else None)
        self._successors = mdp.max_successors
        row_error = ULPS + (self._successors + 8) * UNIT_ROUNDOFF  # of a row's exact sum, from one
        stays = 1.0 if mdp.termination is None else 1.0 - float(mdp.termination.max())
        self._shift_low = 0.0 if has_terminal else max(mdp.discount * (stays - row_error), 0.0)
        self._shift_high = mdp.discount * (1.0 + row_error)
        if mdp.discount == 1.0 and not finite_horizon:
            # sums of rows may exceed 1 by rounding: the proof of w holds for the stored numbers
            self._durations = longest_durations(mdp, self.arrays)
            self.discount = 1.0 - 1.0 / float(self._durations.max())
            self._shift_low, self._shift_high = 0.0, math.nextafter(self.discount, 1.0)
        if self._shift_high >= 1.0 and not finite_horizon:
            raise InvalidInput(f"discount {mdp.discount!r} is too close to 1 for float64")
        self._reward = mdp.max_reward
        self._bonus = self.alpha * (1.0 + float(regularizer.max_entropy(self.width)))

    def start(self, v: Floats | None) -> Iterate:
        """v, or 0, with the thresholds below all others, -alpha at q = 2 and 0 elsewhere."""
        v = np.zeros(self.n_states) if v is None else v
        searched = self.mdp.n_states if self.alpha > 0.0 and self.q != 1.0 else 0
        return Iterate(v, np.full(searched, -self.alpha if self.q == 2.0 else 0.0))

    def certify(self, iterate: Iterate) -> Certificate:
        """Uv, the policy that is greedy in v, and the enclosure of V* that they prove."""
        v = iterate.value
        updated, policy, low, high, used = self.sweep(iterate)
        size = max_abs(v)
        rounding = self.rounding(max(size, max_abs(updated)))
        down, up = enclosure_ends((low, high), (self._shift_low, self._shift_high))
        rounding += 4 * UNIT_ROUNDOFF * max(-down, up, 0.0)
        return Certificate(
            updated=updated,
            policy=policy,
            hint=policy.thresholds,
            pairs_used=used,
            n_pairs=self.mdp.n_pairs,
            change=(low, high),
            low=down - rounding,
            high=up + rounding,
            rounding=rounding,
            size=size,
        )

    def sweep(self, iterate: Iterate) -> tuple[Floats, Policy, float, float, int]:
        """Uv, the policy that is greedy in v, min and max of Uv - v, and about the pairs used."""
        v, start, _ = iterate
        updated = np.empty(len(v))
        policy = Policy(np.empty(self.mdp.n_pairs), np.empty(len(v)), np.empty(len(start)))
        arrays = self.arrays
        if not v.any():  # expectations of 0 are 0: the transitions need not be read
            arrays = arrays._replace(indptr=frozen(np.zeros_like(arrays.indptr)))
        common = (arrays, *self._regularizer, self.width)
        if self.parallel:
            found = bellman_sweep.sweep(*common, thread_blocks(), v, start, updated, policy)
        else:
            found = bellman_sweep.sweep_range(*common, 0, len(v), v, start, updated, policy)
        return updated, policy, *found

    def weighted_enclosure(self, certificate: Certificate) -> tuple[Floats, Floats]:
        """lower <= V* <= upper without discount, by the expected durations w of episodes.

        Uv + min(d, 0) (w - 1) <= V* <= Uv + max(d, 0) (w - 1), with d = Uv - v: narrower than the
        certificate where episodes are short.
        """
        w, (low, high) = self._durations, certificate.change
        rounding = certificate.rounding * (w / w.max())
        lower = certificate.updated + (min(low, 0.0) * (w - 1.0) - rounding)
        upper = certificate.updated + (max(high, 0.0) * (w - 1.0) + rounding)
        terminal = self.mdp.terminal
        return np.where(terminal, 0.0, lower), np.where(terminal, 0.0, upper)

    def compacted(self, certificate: Certificate) -> None:
        """A policy takes about as much memory as the rewards, and another sweep is quick."""

    def shifted(self, v: Floats, by: float) -> Floats:
        """v + by, with the terminal states left at zero."""
        return np.where(self.mdp.terminal, 0.0, v + by)

    def policy_sweeps(
        self, certificate: Certificate, v: Floats, max_sweeps: int, max_span: float
    ) -> tuple[Floats, int, float]:
        """v <- r_pi + alpha Omega(pi) + gamma T_pi v for the certificate's policy, repeated.

        Ends after `max_sweeps`, or when the change is the same in all states to within `max_span`.
        Returns v, the number of sweeps, and the span of the last change.
        """
        policy = certificate.policy
        v, other = v if max_sweeps == 1 else v.copy(), np.empty_like(v)
        if self.parallel:
            copy_rows = max_sweeps > 1 and 2 * certificate.pairs_used < self.mdp.n_pairs
            sweeps, span = policy_sweep.policy_sweeps(
                self.arrays, policy, thread_blocks(), copy_rows, v, other, max_sweeps, max_span
            )
        else:
            sweeps, span = policy_sweep.policy_sweeps_serial(
                self.arrays, policy, v, other, max_sweeps, max_span
            )
        return (other if sweeps % 2 else v), sweeps, span

    def on_host(self, v: Any) -> Floats:
        """v itself, which is on the host."""
        return np.asarray(v)

    def pair_policy(self, policy: Policy) -> Floats:
        """The probability of every pair."""
        return policy.weights

    def newton_start(self, certificate: Certificate) -> NewtonStart:
        """The policy that takes the shortest way to good states, unless v is accurate already.

        From v = 0, policy iteration extends a good policy only a few steps at a time.  The states
        are numbered by their distance to the best one, the farthest first: around one state, the
        incomplete factors of a chain are exact.
        """
        updated = certificate.updated
        low, high = updated.min(), updated.max()
        best = np.flatnonzero(updated == high)
        nearest_first, steps = breadth_first_order(self.arrays, best)
        order = nearest_first[::-1].copy()
        if not certificate.error > 1e-3 * (high - low):
            return NewtonStart(certificate, updated, order, 0)
        good = np.flatnonzero(updated >= high - 0.01 * (high - low))
        if len(good) > len(best):
            _, steps = breadth_first_order(self.arrays, good)
        scale = 100.0 * (np.ptp(self.mdp.rewards) + self.alpha + 1.0)
        heading = self.certify(certificate.iterate(-scale * steps))
        return NewtonStart(heading, self.shifted(updated, certificate.low), order, 1)

    def policy_value(
        self, certificate: Certificate, guess: Floats, tolerance: float, order: Order
    ) -> tuple[Floats, float]:
        """The value of the certificate's policy from a linear system, and its residual.

        By iterative refinement of the guess.  Corrections come from BiCGSTAB, in single precision
        unless the discount is so near to one that pivots would cancel, and from a complete
        factorisation where that is not enough and a symbolic factorisation finds it affordable.
        """
        missing = self._policy_residual(certificate, guess)
        found = guess, missing, float(max_abs(missing))
        single = 1.0 - self.discount > SINGLE_PRECISION_GAP * max(1.0, self.width / 100)
        for precision in (np.float32, np.float64) if single else (np.float64,):
            system = PolicySystem(self.arrays, certificate.policy.weights, order, precision)
            iterative = partial(system.solve, tolerance=0.5 * tolerance)
            found = self._refined(certificate, found, lambda b: iterative(b)[0], tolerance)  # noqa: B023
            if found[2] <= tolerance:
                return found[0], found[2]
        if system.factorization_work(MAX_FACTORIZATION_WORK) <= MAX_FACTORIZATION_WORK:
            found = self._refined(certificate, found, system.solve_exactly, tolerance)
        return found[0], found[2]

    def _policy_residual(self, certificate: Certificate, v: Floats) -> Floats:
        """r_pi + alpha Omega(pi) + gamma T_pi v - v of the certificate's policy."""
        updated, _, _ = self.policy_sweeps(certificate, v, 1, math.inf)
        updated -= v
        return updated

    def _refined(
        self,
        certificate: Certificate,
        found: tuple[Floats, Floats, float],
        solve: Callable[[Floats], Floats],
        tolerance: float,
    ) -> tuple[Floats, Floats, float]:
        """v, its residual and the size of that, corrected while that halves the size at least."""
        for _ in range(MAX_REFINEMENTS):
            v, missing, size = found
            v = v + solve(missing)
            missing = self._policy_residual(certificate, v)
            before, size = size, float(max_abs(missing))
            if size < before:
                found = v, missing, size
            if not tolerance < size < 0.5 * before:
                break
        return found

    def improved(
        self, v: Floats, lower: Floats, order: Order, thorough: bool
    ) -> tuple[Floats, int]:
        """The larger of v and `lower`, after a symmetric Gauss-Seidel sweep of U if `thorough`.

        Newton's method moves a change of the policy by one state at a time through a chain of
        states; a Gauss-Seidel sweep from the best states to the others moves it all the way, and
        one back again does so where better states turn up far from those.  A hard policy changes
        abruptly: there, the first of the two is always worth its time.
        """
        v = v.copy() if lower is v else np.maximum(v, lower)
        sweeps = 2 if thorough else 1 if self.alpha == 0.0 else 0
        for visited in (order[::-1].copy(), order)[:sweeps]:
            relax(self.arrays, *self._regularizer, self.width, visited, v)
        return v, sweeps

    @property
    def sweep_cost(self) -> float:
        """The time of a sweep, in passes over the transitions."""
        return 1.0 if self.alpha == 0.0 else 1.5 if self.q == 2.0 else 3.0

    def newton_cost(self, support_ratio: float) -> float:
        """About the time of policy iteration: five steps, by measurement.

        Each takes as long as six sweeps of U and twenty of the policy.
        """
        return 5.0 * (6.0 * self.sweep_cost + 20.0 * support_ratio)

    def action_values(self, v: Floats) -> Floats:
        """Q(s, a) = r(s, a) + gamma sum_s' T(s'|s, a) v(s') of every pair."""
        out = np.empty(self.mdp.n_pairs)
        action_values(self.arrays, v, out)
        return out

    def certified_support(self, lower: Floats, upper: Floats) -> NDArray[np.int8]:
        """What lower <= V* <= upper proves of the support of the optimal policy, for every pair.

        +1 in the support, -1 out of it, 0 not decided.  From Q_lower <= Q* <= Q_upper: an action
        is out where Q_upper(s, a) is at or below the threshold of Q_lower(s, .), since thresholds
        grow with Q, and in where Q_lower(s, a) is above the threshold of Q_upper(s, .).  A hard
        policy's support are the optimal actions; a soft policy (q <= 1) uses every action.
        """
        if self.alpha > 0.0 and self.q <= 1.0:
            return np.ones(self.mdp.n_pairs, np.int8)
        low, high = (self.action_values(v) for v in (lower, upper))
        verdict = np.zeros(self.mdp.n_pairs, np.int8)
        slack = self.action_value_rounding(lower, upper)
        certify_support(
            self.arrays.pointer, *self._regularizer, self.width, low - slack, high + slack, verdict
        )
        return verdict

    @property
    def scale(self) -> float:
        """A bound on |V*| (1 - gamma): the largest reward and entropy bonus of one step."""
        return self._reward + self._bonus

    def action_value_rounding(self, *values: Floats) -> float:
        """A bound on the rounding of Q, or of a policy's mean of Q, for these values."""
        size = max(float(np.abs(v).max()) for v in values)
        terms = self._successors + 2 * self.width + 16
        relative = UNIT_ROUNDOFF * terms * (self._reward + self._bonus + size)
        return relative + SMALLEST_NUMBER * 8 * terms

    @property
    def policy_sum_error(self) -> float:
        """A bound on the sum of a row of gamma T_pi above gamma, by rounding."""
        return (2 * self.width + self._successors + 64) * UNIT_ROUNDOFF

    def policy_error(self, residual: float, gap: float) -> float:
        """A bound on the error of a policy's value with this residual, where `gap` is 1 - gamma.

        Infinite where the sums of rows may make up for the gap.
        """
        left = gap - self.policy_sum_error
        return residual / left if left > 0.0 else math.inf

    def entropy(self, pi: Floats) -> Floats:
        """Omega(pi(s)) of every state, of a policy given for every pair."""
        omega = np.zeros(self.mdp.n_states)
        if self.alpha > 0.0:
            policy_sweep.entropies(self.arrays.pointer, self.q, pi, omega)
        return omega

    def residual(self, pi: Floats, b: Floats, v: Floats) -> Floats:
        """b - (I - gamma T_pi) v."""
        out = np.empty_like(v)
        policy_sweep.policy_residual(self.arrays, pi, b, v, out)
        return out

    def sweep_error(self, size: float, error: float) -> float:
        """A bound on the error of a computed Uv, where v has an error of at most `error`.

        `size` is the largest |v| and |Uv|.
        """
        return self._shift_high * error + self._sweep_rounding(size)

    def rounding(self, size: float) -> float:
        """How far the enclosure moves by the rounding of one sweep."""
        return self._sweep_rounding(size) / (1.0 - self._shift_high)

    def _sweep_rounding(self, size: float) -> float:
        """A bound on the rounding of one sweep (running error analysis)."""
        dot = (self._successors + 8) * (self._reward + size)
        maximum = 8 * (self.width + 8) * self._bonus
        operations = 8 * (self._successors + self.width + 8)  # each may underflow
        return UNIT_ROUNDOFF * (dot + maximum) + SMALLEST_NUMBER * operations


def check_problem(caller: str, mdp: Any, regularizer: Any, kinds: Any = MDP) -> None:
    """Refuse what is no MDP of these kinds, no regulariser, or one with several alphas."""
    if not isinstance(mdp, kinds):
        remedy = ": use model.to_mdp()" if hasattr(mdp, "to_mdp") else ""
        raise InvalidInput(f"{caller} needs an MDP, not {type(mdp).__name__}{remedy}")
    if not isinstance(regularizer, Regularizer):
        raise InvalidInput(f"{caller} needs a regularizer such as Sparse(0.1), not {regularizer!r}")
    if np.ndim(regularizer.alpha) != 0:
        raise InvalidInput(f"{caller} needs one alpha, not an array of them")


def kernel_arrays(mdp: MDP) -> MDPArrays:
    """An MDP's arrays for the kernels, without a copy."""
    t = mdp.transitions
    return MDPArrays(
        _unsigned(t.indptr), _unsigned(t.indices), t.data, mdp.rewards,
        _unsigned(mdp.pointer), mdp.discount,
    )  # fmt: skip


def _unsigned(index: NDArray[np.signedinteger]) -> NDArray[np.unsignedinteger]:
    return index.view(f"u{index.itemsize}")
