"""The claims of the paper and of this library, each with a check that measures its margin.

A margin is the right-hand side minus the left-hand side of a claim, divided by the size of the
numbers compared, or minus the relative error where the claim is an equation.  Numbers of theorems,
lemmas and equations are the paper's; claims without one are this library's.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.planning.evaluation import Evaluation, evaluate, gap_certificate, performance_bound
from tsallax.planning.mdp import MDP
from tsallax.planning.solution import Solution
from tsallax.planning.solver import bellman, solve
from tsallax.regularizer import Hard, Regularizer, Soft, Sparse

Floats = NDArray[np.float64]
POWERS = 30
ROUNDING = 1e-12
SOLVED = 1e-8
"""What a claim about optimal values may be off, relative to them: they are solved to 1e-10."""


class Case:
    """A random MDP with one regulariser, and what several claims need of it."""

    def __init__(self, mdp: MDP, regularizer: Regularizer, seed: tuple[int, ...]) -> None:
        self.mdp = mdp
        self.regularizer = regularizer
        self.alpha = float(regularizer.alpha)
        self.largest = float(regularizer.max_entropy(mdp.n_actions))
        step = float(np.abs(mdp.rewards).max()) + self.alpha * self.largest
        self.size = step / (1.0 - mdp.discount)
        self.free = ~mdp.terminal
        self.ends = bool(mdp.terminal.any()) or mdp.termination is not None
        self._seed = seed

    def random(self, claim: int) -> np.random.Generator:
        return np.random.default_rng((*self._seed, claim))

    def vector(self, rng: np.random.Generator) -> Floats:
        """A value function as large as the optimal one, 0 at terminal states."""
        return np.where(self.free, self.size * rng.normal(size=self.mdp.n_states), 0.0)

    def policy(self, rng: np.random.Generator) -> Floats:
        """A random policy for every pair, from nearly deterministic to nearly uniform."""
        weights = rng.random(self.mdp.n_pairs) ** rng.choice([0.1, 1.0, 8.0]) + 1e-6
        total = np.bincount(self.mdp.state_of, weights, self.mdp.n_states)
        return np.asarray(weights / total[self.mdp.state_of])

    def apply(self, v: Floats) -> Floats:
        """Uv."""
        return bellman(self.mdp, self.regularizer, v)

    def solve(self, regularizer: Regularizer, relative: float, **more: Any) -> Solution:
        tolerance = relative * self.size
        found: Solution = solve(self.mdp, regularizer, tolerance, progress=False, **more)
        return found

    @cached_property
    def hard(self) -> Solution:
        return self.solve(Hard(), 1e-10)

    @cached_property
    def solution(self) -> Solution:
        return self.solve(self.regularizer, 1e-10)

    @cached_property
    def optimal(self) -> Evaluation:
        """The optimal regularised policy, evaluated with its entropy."""
        return evaluate(self.mdp, self.solution.pair_policy, self.regularizer)

    @cached_property
    def plain(self) -> Evaluation:
        """The optimal regularised policy, evaluated by the rewards alone."""
        return evaluate(self.mdp, self.solution.pair_policy)

    @property
    def bound(self) -> float:
        return performance_bound(self.mdp, self.regularizer)

    def rows(self, per_pair: Floats) -> Floats:
        """A per-pair vector as a table, without the terminal states."""
        return np.asarray(self.mdp.table(per_pair)[self.free])


Check = Callable[[Case, np.random.Generator], Iterator[float]]


@dataclass(frozen=True)
class Claim:
    """A statement, by the paper's name or "ours", with a check that yields margins of a case."""

    name: str
    statement: str
    scope: str
    """One of "sparse", "soft" and "every": those two and Tsallis with other q."""
    slack: float
    """How far below 0 a margin may be."""
    unit: str
    """What margins are relative to."""
    check: Check


def projection(q: Floats, alpha: float) -> tuple[Floats, Floats, Floats]:
    """pi, alpha tau, alpha spmax of each row by the paper's sorted formulas, eqs. (4) and (6)."""
    top = q.max(axis=1, keepdims=True)
    z = (q - top) / alpha
    ordered = -np.sort(-z, axis=1)
    sums = np.cumsum(ordered, axis=1)
    i = np.arange(1, z.shape[1] + 1)
    k = np.count_nonzero(1.0 + i * ordered > sums, axis=1)[:, None]
    tau = (np.take_along_axis(sums, k - 1, axis=1) - 1.0) / k
    held = i <= k
    spmax = 0.5 * np.sum(np.where(held, ordered**2 - tau**2, 0.0), axis=1) + 0.5
    return np.maximum(z - tau, 0.0), (top + alpha * tau)[:, 0], top[:, 0] + alpha * spmax


def _row_problem(values: Floats) -> MDP:
    """The MDP whose Bellman operator is the regularised maximum of each row of `values`."""
    n, actions = values.shape
    stay = np.repeat(np.eye(n), actions, axis=0).reshape(n, actions, n)
    return MDP(stay, values, 0.0)


def _action_values(case: Case, rng: np.random.Generator) -> Floats:
    """Rows of action values, some nearly equal, some far apart, some with ties."""
    spread = case.alpha * rng.choice([0.01, 1.0, 100.0], size=(8, 1))
    z = spread * rng.normal(size=(8, case.mdp.n_actions)) + 10 * case.alpha * rng.normal()
    z[-1] = np.round(z[-1] / case.alpha) * case.alpha
    return np.asarray(z)


def _bellman_equation(case: Case, rng: np.random.Generator) -> Iterator[float]:
    q = case.rows(case.mdp.flatten(case.optimal.q))
    policy, _, value = projection(q, case.alpha)
    yield -float(np.abs(case.optimal.value[case.free] - value).max()) / case.size
    error = np.abs(case.rows(case.solution.pair_policy) - policy).max()
    yield -float(error) * case.alpha / case.size


def _kkt(case: Case, rng: np.random.Generator) -> Iterator[float]:
    q = case.rows(case.mdp.flatten(case.optimal.q))
    p = case.rows(case.solution.pair_policy)
    index = case.regularizer.q
    held = p > 0
    if index == 1:
        slope = -np.log(np.where(held, p, 1.0)) - 1.0
    else:
        slope = -(np.where(held, p, 1.0 if index < 1 else 0.0) ** (index - 1)) / (index - 1)
    gradient = q + case.alpha * slope
    level = np.sum(p * gradient, axis=1, keepdims=True)
    # where p is small, its logarithm or power is not: weigh the equation by p
    yield -float(np.abs(p * (gradient - level)).max()) / case.size
    if index > 1 and not held.all():
        yield float((level - gradient)[~held].min()) / case.size


def _no_better_policy(case: Case, rng: np.random.Generator) -> Iterator[float]:
    best = case.optimal.regularized_return
    for share in (1e-3, 0.1, 1.0):
        mixed = (1 - share) * case.solution.pair_policy + share * case.policy(rng)
        other = evaluate(case.mdp, mixed, case.regularizer).regularized_return
        yield (best - other) / case.size


def _maxima(z: Floats, regularizer: Regularizer) -> Floats:
    """The regularised maximum of each row."""
    return bellman(_row_problem(z), regularizer, np.zeros(len(z)))


def _maximum_below(case: Case, rng: np.random.Generator) -> Iterator[float]:
    z = _action_values(case, rng)
    above = _maxima(z, case.regularizer) - z.max(axis=1)
    yield float((above / (np.abs(z).max(axis=1) + case.alpha)).min())


def _maximum_above(case: Case, rng: np.random.Generator) -> Iterator[float]:
    z = _action_values(case, rng)
    z[0] = z[0, 0]  # equal values attain the bound
    below = z.max(axis=1) + case.alpha * case.largest - _maxima(z, case.regularizer)
    yield float((below / (np.abs(z).max(axis=1) + case.alpha)).min())


def _spmax_formula(case: Case, rng: np.random.Generator) -> Iterator[float]:
    z = _action_values(case, rng)
    error = np.abs(_maxima(z, case.regularizer) - projection(z, case.alpha)[2])
    yield -float((error / (np.abs(z).max(axis=1) + case.alpha)).max())


def _closer_than_log_sum_exp(case: Case, rng: np.random.Generator) -> Iterator[float]:
    z = _action_values(case, rng)
    above = _maxima(z, Soft(case.alpha)) - _maxima(z, Sparse(case.alpha))
    yield float((above / (np.abs(z).max(axis=1) + case.alpha)).min())
    n = case.mdp.n_actions
    yield math.log(n) - (n - 1) / (2 * n)


def _support_condition(case: Case, rng: np.random.Generator) -> Iterator[float]:
    q = case.rows(case.solution.pair_q)
    p = case.rows(case.solution.pair_policy)
    order = np.argsort(-q, axis=1, kind="stable")
    q, p = (np.take_along_axis(x, order, axis=1) for x in (q, p))
    i = np.arange(1, q.shape[1] + 1)
    surplus = case.alpha + i * q - np.cumsum(q, axis=1)
    yield float(np.where(p > 0, surplus, -surplus).min()) / case.size


def _support_grows(case: Case, rng: np.random.Generator) -> Iterator[float]:
    z = _action_values(case, rng)
    rows, size = _row_problem(z), float(np.abs(z).max())

    def support(alpha: float) -> NDArray[np.bool_]:
        return solve(rows, Sparse(alpha), 1e-9 * (size + alpha), progress=False).support

    supports = [support(a) for a in case.alpha * np.geomspace(0.01, 100.0, 9)]
    for small, large in pairwise(supports):
        yield -float(np.count_nonzero(small & ~large))
    gap = float(np.diff(np.sort(z, axis=1)[:, -2:], axis=1).min())
    if gap > 1e-6 * size:
        yield -float(np.count_nonzero(support(0.5 * gap).sum(axis=1) != 1))
    wide = 2 * z.shape[1] * float(np.ptp(z, axis=1).max())
    yield -float(np.count_nonzero(~support(wide)))


def _causal_entropy(case: Case, rng: np.random.Generator) -> Iterator[float]:
    policy = case.policy(rng)
    measured = evaluate(case.mdp, policy, case.regularizer).entropy
    states, index = case.mdp.n_states, case.regularizer.q
    bonus = -np.log(policy) if index == 1 else (1 - policy ** (index - 1)) / (index * (index - 1))
    per_state = np.bincount(case.mdp.state_of, policy * bonus, states)
    step = np.zeros((states, states))
    np.add.at(step, case.mdp.state_of, policy[:, None] * case.mdp.transitions.toarray())
    occupied, weight, total = case.mdp.initial, 1.0, 0.0
    while weight > 1e-14:
        total += weight * float(occupied @ per_state)
        occupied = occupied @ step
        weight *= case.mdp.discount
    yield -abs(measured - total) / (case.largest / (1 - case.mdp.discount))


def _monotone(case: Case, rng: np.random.Generator) -> Iterator[float]:
    for _ in range(3):
        x = case.vector(rng)
        y = x + np.abs(case.vector(rng)) * (rng.random(len(x)) < 0.5)
        yield float((case.apply(y) - case.apply(x)).min()) / case.size


def _discounting(case: Case, rng: np.random.Generator) -> Iterator[float]:
    if case.ends:
        return
    for _ in range(3):
        x, c = case.vector(rng), case.size * rng.normal()
        error = case.apply(x + c) - case.apply(x) - case.mdp.discount * c
        yield -float(np.abs(error).max()) / case.size


def _discounting_where_episodes_end(case: Case, rng: np.random.Generator) -> Iterator[float]:
    if not case.ends:
        return
    for _ in range(3):
        x, c = case.vector(rng), case.size * abs(rng.normal())
        rise = (case.apply(np.where(case.free, x + c, 0.0)) - case.apply(x))[case.free]
        yield float(min(rise.min(), (case.mdp.discount * c - rise).min())) / case.size


def _contraction(case: Case, rng: np.random.Generator) -> Iterator[float]:
    for _ in range(3):
        x, y = case.vector(rng), case.vector(rng)
        before, after = _distance(x, y), _distance(case.apply(x), case.apply(y))
        yield (case.mdp.discount * before - after) / case.size


def _unique_fixed_point(case: Case, rng: np.random.Generator) -> Iterator[float]:
    value = case.solution.value
    yield -_distance(case.apply(value), value) / case.size
    other = case.solve(case.regularizer, 1e-10, initial_value=case.vector(rng))
    yield -_distance(other.value, value) / case.size


def _value_iteration(case: Case, rng: np.random.Generator) -> Iterator[float]:
    x = case.vector(rng)
    far = _distance(x, case.solution.value)
    for n in range(1, POWERS + 1):
        x = case.apply(x)
        yield (case.mdp.discount**n * far - _distance(x, case.solution.value)) / case.size


def _powers_in_order(case: Case, rng: np.random.Generator) -> Iterator[float]:
    plain = regularized = case.vector(rng)
    for _ in range(POWERS):
        plain, regularized = bellman(case.mdp, Hard(), plain), case.apply(regularized)
        yield float((regularized - plain).min()) / case.size


def _fixed_points_in_order(case: Case, rng: np.random.Generator) -> Iterator[float]:
    yield float((case.solution.value - case.hard.value).min()) / case.size


def _entropy_bound(case: Case, rng: np.random.Generator) -> Iterator[float]:
    most = case.largest / (1 - case.mdp.discount)
    uniform = np.full(case.mdp.n_pairs, 1 / case.mdp.n_actions)
    for policy in (case.policy(rng), case.policy(rng), uniform):
        entropy = evaluate(case.mdp, policy, case.regularizer).entropy
        yield min(entropy, most - entropy) / most


def _loss_within_bound(case: Case, rng: np.random.Generator) -> Iterator[float]:
    best = float(case.mdp.initial @ case.hard.value)
    yield (case.bound - (best - case.plain.expected_return)) / case.bound
    gaps = (case.hard.value - case.plain.value)[case.free]
    yield float((case.bound - gaps).min()) / case.bound


def _loss_not_negative(case: Case, rng: np.random.Generator) -> Iterator[float]:
    best = float(case.mdp.initial @ case.hard.value)
    yield (best - case.plain.expected_return) / case.size
    yield float((case.hard.value - case.plain.value).min()) / case.size


def _bounds_compared(case: Case, rng: np.random.Generator) -> Iterator[float]:
    limit = case.alpha / (1 - case.mdp.discount)
    soft = performance_bound(case.mdp, Soft(case.alpha))
    yield (soft - case.bound) / limit
    yield 0.5 - case.bound / limit


def _enclosure(case: Case, rng: np.random.Generator) -> Iterator[float]:
    fine = case.solution
    for relative in (1e-1, 1e-3, 1e-6):
        coarse = case.solve(case.regularizer, relative)
        # the fine enclosure's ends: the optimum lies between them
        yield float((fine.upper - coarse.lower)[case.free].min()) / case.size
        yield float((coarse.upper - fine.lower)[case.free].min()) / case.size


def _proven_support(case: Case, rng: np.random.Generator) -> Iterator[float]:
    if case.regularizer.q <= 1:
        return
    truth = case.solution.certified_support
    for relative in (1e-2, 1e-4, 1e-6):
        proven = case.solve(case.regularizer, relative).certified_support
        wrong = (proven * truth == -1) & case.free[:, None]
        yield -float(np.count_nonzero(wrong))


def _instance_certificate(case: Case, rng: np.random.Generator) -> Iterator[float]:
    certificate = gap_certificate(case.mdp, case.solution)
    gaps = case.hard.value - case.plain.value
    yield float((certificate - gaps)[case.free].min()) / case.bound
    yield float((case.bound - certificate)[case.free].min()) / case.bound


def _gaps_add_up(case: Case, rng: np.random.Generator) -> Iterator[float]:
    collected = gap_certificate(case.mdp, case.solution)
    value_gap = case.solution.value - case.hard.value
    return_gap = case.hard.value - case.plain.value
    yield -_distance(collected, value_gap + return_gap) / case.size


def _distance(x: Floats, y: Floats) -> float:
    return float(np.abs(x - y).max())


VALUES, BOUND, COUNT = "values", "bound", "actions"
CLAIMS = (
    Claim("Theorem 1", "the optimum solves the sparse Bellman equation: V = α spmax(Q/α), "
          "π = max(Q/α − τ, 0), by the sorted formulas", "sparse", SOLVED, VALUES,
          _bellman_equation),
    Claim("Theorem 1 (KKT)", "Q + αΩ′(π) is one number on the support, and no larger off it",
          "every", SOLVED, VALUES, _kkt),
    Claim("Theorem 1 (optimum)", "no other policy has a higher regularised return", "every",
          SOLVED, VALUES, _no_better_policy),
    Claim("Eq. (6)", "the operator computes spmax(z) = ½Σ(z² − τ²) + ½", "sparse", ROUNDING,
          VALUES, _spmax_formula),
    Claim("Eq. (7), below", "max z ≤ α spmax(z/α)", "sparse", ROUNDING, VALUES, _maximum_below),
    Claim("Eq. (7), above", "α spmax(z/α) ≤ max z + α(d − 1)/(2d)", "sparse", ROUNDING, VALUES,
          _maximum_above),
    Claim("ours, eq. (7), below", "max z ≤ value(z)", "every", ROUNDING, VALUES,
          _maximum_below),
    Claim("ours, eq. (7), above", "value(z) ≤ max z + αΩ_max(d)", "every", ROUNDING, VALUES,
          _maximum_above),
    Claim("Appendix, log-sum-exp", "(d − 1)/(2d) ≤ log d, and α spmax(z/α) ≤ α logsumexp(z/α)",
          "sparse", ROUNDING, VALUES, _closer_than_log_sum_exp),
    Claim("Eq. (8)", "π(a_{(i)}) > 0 exactly where α + iQ(a_{(i)}) > Σ_{j≤i} Q(a_{(j)})",
          "sparse", SOLVED, VALUES, _support_condition),
    Claim("Eq. (8), growth", "for fixed Q the support grows with α, from one action to all",
          "sparse", 0.0, COUNT, _support_grows),
    Claim("Theorem 2", "W(π) = E_π[S_{2,½}(π(·|s))], summed over time", "sparse", 1e-10, BOUND,
          _causal_entropy),
    Claim("ours, Theorem 2 for every q", "the causal entropy is E_π[S_{q,1/q}(π(·|s))]", "every",
          1e-10, BOUND, _causal_entropy),
    Claim("Lemma 1", "x ≤ y implies Ux ≤ Uy", "every", ROUNDING, VALUES, _monotone),
    Claim("Lemma 2", "U(x + c) = Ux + γc", "every", ROUNDING, VALUES, _discounting),
    Claim("ours, Lemma 2 with ends", "where episodes end, Ux ≤ U(x + c) ≤ Ux + γc for c ≥ 0",
          "every", ROUNDING, VALUES, _discounting_where_episodes_end),
    Claim("Lemma 3", "‖Ux − Uy‖ ≤ γ‖x − y‖", "every", ROUNDING, VALUES, _contraction),
    Claim("Lemma 3 (fixed point)", "U has one fixed point, reached from any start", "every",
          SOLVED, VALUES, _unique_fixed_point),
    Claim("Theorem 3", "‖Uⁿx − V*‖ ≤ γⁿ‖x − V*‖, n = 1, …, 30", "every", SOLVED, VALUES,
          _value_iteration),
    Claim("Lemma 4 (powers)", "Uⁿx ≤ U_{reg}ⁿx, n = 1, …, 30", "every", ROUNDING, VALUES,
          _powers_in_order),
    Claim("Lemma 4 (fixed points)", "V* ≤ V_{reg}*", "every", SOLVED, VALUES,
          _fixed_points_in_order),
    Claim("Lemma 5, W", "0 ≤ W(π) ≤ (|A| − 1)/(2|A|)/(1 − γ)", "sparse", 1e-10, BOUND,
          _entropy_bound),
    Claim("Lemma 5, H", "0 ≤ H(π) ≤ log|A|/(1 − γ)", "soft", 1e-10, BOUND, _entropy_bound),
    Claim("ours, Lemma 5 for every q", "0 ≤ E_π[Ω] ≤ Ω_max(|A|)/(1 − γ)", "every", 1e-10, BOUND,
          _entropy_bound),
    Claim("Theorem 4, left", "J(π*) − J(π_sparse) ≤ α(|A| − 1)/(2|A|)/(1 − γ)", "sparse", 1e-6,
          BOUND, _loss_within_bound),
    Claim("Theorem 4, right", "J(π_sparse) ≤ J(π*)", "sparse", SOLVED, VALUES,
          _loss_not_negative),
    Claim("Theorem 5, left", "J(π*) − J(π_soft) ≤ α log|A|/(1 − γ)", "soft", 1e-6, BOUND,
          _loss_within_bound),
    Claim("Theorem 5, right", "J(π_soft) ≤ J(π*)", "soft", SOLVED, VALUES, _loss_not_negative),
    Claim("ours, Theorems 4 and 5", "J(π*) − J(π) ≤ αΩ_max(|A|)/(1 − γ), also in every state",
          "every", 1e-6, BOUND, _loss_within_bound),
    Claim("Remark on Theorems 4 and 5", "the sparse bound is at most α/2/(1 − γ) and at most "
          "the soft one", "sparse", 0.0, "α/(1 − γ)", _bounds_compared),
    Claim("ours, enclosure", "lower ≤ V* ≤ upper at every tolerance", "every", 0.0, VALUES,
          _enclosure),
    Claim("ours, proven support", "what is proven in or out at a low accuracy is so", "every",
          0.0, COUNT, _proven_support),
    Claim("ours, certificate", "V* − V_π ≤ certificate ≤ bound, in every state", "every", 1e-6,
          BOUND, _instance_certificate),
    Claim("ours, both gaps", "(V_{reg}* − V*) + (V* − V_π) = αΩ collected, in every state",
          "every", SOLVED, VALUES, _gaps_add_up),
)  # fmt: skip
