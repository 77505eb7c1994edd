"""The Bellman operator U of a regularised MDP, and what one application of it proves.

    Q(s, a) = r(s, a) + gamma sum_s' T(s'|s, a) v(s')
    (Uv)(s) = max_p <p, Q(s, .)> + alpha Omega(p)

U is monotone and shifts with its argument: U(v + c) lies between Uv + b c and Uv + B c, where
[b, B] holds gamma times the probability to go on, over all pairs (b = B = gamma where no episode
ends; Lemmas 1 and 2 of the paper, for every regulariser).  Hence, with d = Uv - v, the optimal
value V* is enclosed by (MacQueen 1966)

    Uv + k(min d) <= V* <= Uv + k'(max d),   k(d) = d b/(1-b) for d > 0,  d B/(1-B) for d < 0,
                                             k'(d) = d B/(1-B) for d > 0,  d b/(1-b) for d < 0,

and the policy that is greedy in v is worth at least the lower end.  The enclosure is widened by
the rounding of the sweep, so it holds for the floating-point result, with MDP and discount taken
as the exact numbers they are.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

from tsallax import memory
from tsallax.errors import InvalidInput
from tsallax.planning.kernels import sweep
from tsallax.planning.mdp import MDP
from tsallax.planning.validation import ULPS
from tsallax.regularizer import Regularizer

Floats = NDArray[np.float64]

UNIT = 2.0**-53
SMALL = 50_000  # transitions under which a second thread costs more than it saves


@dataclass(frozen=True)
class Certificate:
    """What the sweep v -> Uv proves: updated + low <= V* <= updated + high, except at terminals.

    `size` is max|v|.
    """

    updated: Floats
    change: tuple[float, float]
    low: float
    high: float
    rounding: float
    size: float
    terminal: NDArray[np.bool_]

    @property
    def error(self) -> float:
        """Half the width of the enclosure, which is the same in all states."""
        return 0.5 * (self.high - self.low)

    def shifted(self, by: float) -> Floats:
        """Uv + by, with the terminal states left at zero."""
        return np.where(self.terminal, 0.0, self.updated + by)

    @cached_property
    def middle(self) -> Floats:
        """The centre of the enclosure."""
        return self.shifted(0.5 * (self.low + self.high))


class Bellman:
    """The operator U of one MDP and regulariser, its greedy policy and its count of sweeps."""

    def __init__(self, mdp: MDP, regularizer: Regularizer) -> None:
        self.mdp = mdp
        self.alpha = float(regularizer.alpha)
        self.q = float(regularizer.q)
        self.kind = (
            self.alpha if self.alpha > 0.0 else None,
            self.q if self.q != 2.0 else None,
        )
        """alpha and q as the kernels want them, None for hard and sparse."""
        self.arrays = arrays(mdp)
        self.width = mdp.max_actions
        self.blocks = blocks()
        self.sweeps = 0
        self.followed = 0.0
        n = mdp.n_states
        searched = n if self.alpha > 0.0 and self.q != 1.0 else 0
        low = -self.alpha if self.q == 2.0 else 0.0
        self.policy = sweep.Policy(np.empty(0), np.empty(n), np.full(searched, low))
        self.used = 0
        self.small = mdp.transitions.nnz < SMALL
        self.ends = bool(mdp.terminal.any()) or mdp.termination is not None
        stays = 1.0 if mdp.termination is None else 1.0 - float(mdp.termination.max())
        self._successors = mdp.max_successors
        off = ULPS + (self._successors + 8) * UNIT  # how far a row's exact sum may be from one
        self._shift_low = 0.0 if mdp.terminal.any() else max(mdp.discount * (stays - off), 0.0)
        self._shift_high = mdp.discount * (1.0 + off)
        if self._shift_high >= 1.0:
            raise InvalidInput(f"discount {mdp.discount!r} is too close to 1 for float64")
        self._reward = mdp.max_reward
        self._bonus = self.alpha * (1.0 + float(regularizer.max_entropy(self.width)))

    def apply(self, v: Floats) -> Floats:
        """Uv; `self.policy` becomes greedy in v."""
        out = np.empty_like(v)
        self._sweep(v, out)
        return out

    def certify(self, v: Floats) -> Certificate:
        """Uv with the enclosure of V* that it proves; `self.policy` becomes greedy in v."""
        out = np.empty_like(v)
        low, high, self.used = self._sweep(v, out)
        before, after = (float(max(-x.min(), x.max())) for x in (v, out))
        rounding = self._rounding(max(before, after))
        down = _gain(self._shift_high if low < 0 else self._shift_low) * low
        up = _gain(self._shift_high if high > 0 else self._shift_low) * high
        rounding += 4 * UNIT * max(-down, up, 0.0)
        return Certificate(
            out, (low, high), down - rounding, up + rounding, rounding, before, self.mdp.terminal
        )

    def forget(self) -> None:
        """Let go of the policy's weights until the next certificate, if they take much memory."""
        freed = self.policy.weight.nbytes
        if freed > memory.LARGE:
            self.policy = self.policy._replace(weight=np.empty(0))
            memory.trim(freed)

    def follow(self, v: Floats, most: int, stop: float) -> tuple[Floats, int, float]:
        """v <- r_pi + alpha Omega(pi) + gamma T_pi v for `self.policy`, again and again.

        Ends after `most` times, or when the change is the same in all states to within `stop`.
        Returns v, how often, and how far the last change was from the same.
        """
        assert len(self.policy.weight) == self.mdp.n_pairs, "the policy was forgotten"
        v, other = v if most == 1 else v.copy(), np.empty_like(v)
        if self.small:
            times, left = sweep.follow_policy_serial(self.arrays, self.policy, v, other, most, stop)
        else:
            few = most > 1 and 2 * self.used < self.mdp.n_pairs
            times, left = sweep.follow_policy(
                self.arrays, self.policy, self.blocks, few, v, other, most, stop
            )
        self.followed += times * self.share
        return (other if times % 2 else v), times, left

    @property
    def share(self) -> float:
        """The share of the pairs that the policy uses."""
        return self.used / max(self.mdp.n_pairs, 1)

    @property
    def work(self) -> float:
        """What was done so far, in passes over the transitions."""
        sweep = 1.0 if self.alpha == 0.0 else 1.5 if self.q == 2.0 else 3.0
        return self.sweeps * sweep + self.followed

    def action_values(self, v: Floats) -> Floats:
        """Q(s, a) = r(s, a) + gamma sum_s' T(s'|s, a) v(s') of every pair."""
        out = np.empty(self.mdp.n_pairs)
        sweep.action_values(self.arrays, v, out)
        return out

    @property
    def scale(self) -> float:
        """A bound on |V*| (1 - gamma): the largest reward and entropy bonus of one step."""
        return self._reward + self._bonus

    def action_value_rounding(self, *values: Floats) -> float:
        """A bound on the rounding of Q, or of a policy's mean of Q, for these values."""
        size = max(float(np.abs(v).max()) for v in values)
        terms = self._successors + 2 * self.width + 16
        return UNIT * terms * (self._reward + self._bonus + size)

    @property
    def policy_sum_error(self) -> float:
        """How far gamma times a row of T_pi may sum above gamma, by rounding."""
        return (2 * self.width + self._successors + 64) * UNIT

    def relax(self, order: NDArray[np.uint32], v: Floats) -> None:
        """One Gauss-Seidel sweep v <- Uv of the hard operator, visiting the states in `order`."""
        self.sweeps += 1
        sweep.relax(self.arrays, order, v)

    def entropy(self, pi: Floats) -> Floats:
        """Omega(pi(s)) of every state, of a policy given for every pair."""
        omega = np.zeros(self.mdp.n_states)
        if self.alpha > 0.0:
            sweep.entropies(self.arrays.pointer, self.q, pi, omega)
        return omega

    def residual(self, pi: Floats, b: Floats, v: Floats) -> Floats:
        """b - (I - gamma T_pi) v."""
        out = np.empty_like(v)
        sweep.policy_residual(self.arrays, pi, b, v, out)
        return out

    def _sweep(self, v: Floats, out: Floats) -> tuple[float, float, int]:
        self.sweeps += 1
        if not len(self.policy.weight):
            self.policy = self.policy._replace(weight=np.empty(self.mdp.n_pairs))
        common = (self.arrays, *self.kind, self.width)
        if self.small:
            low, high, used = sweep.sweep_range(*common, 0, len(v), v, out, self.policy)
        else:
            low, high, used = sweep.sweep(*common, self.blocks, v, out, self.policy)
        return float(low), float(high), int(used)

    def _rounding(self, size: float) -> float:
        """How far the enclosure moves by the rounding of one sweep (running error analysis)."""
        dot = (self._successors + 8) * (self._reward + size)
        maximum = 8 * (self.width + 8) * self._bonus
        return UNIT * (dot + maximum) / (1.0 - self._shift_high)


def require(caller: str, mdp: Any, regularizer: Any) -> None:
    """Refuse what is no MDP, no regulariser, or one with several alphas."""
    if not isinstance(mdp, MDP):
        raise InvalidInput(f"{caller} needs an MDP, not {type(mdp).__name__}")
    if not isinstance(regularizer, Regularizer):
        raise InvalidInput(f"{caller} needs a regularizer such as Sparse(0.1), not {regularizer!r}")
    if np.ndim(regularizer.alpha) != 0:
        raise InvalidInput(f"{caller} needs one alpha, not an array of them")


def blocks() -> int:
    """Into how many parts the states are split for the threads: some more, as parts differ."""
    return 4 * get_num_threads()


def arrays(mdp: MDP) -> sweep.Arrays:
    """An MDP's arrays for the kernels, without a copy."""
    t = mdp.transitions
    return sweep.Arrays(
        _unsigned(t.indptr), _unsigned(t.indices), t.data, mdp.rewards,
        _unsigned(mdp.pointer), mdp.discount,
    )  # fmt: skip


def _unsigned(index: NDArray[np.signedinteger]) -> NDArray[np.unsignedinteger]:
    return index.view(f"u{index.itemsize}")


def _gain(shift: float) -> float:
    return shift / (1.0 - shift)
