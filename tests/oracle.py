"""Exact oracle for small regularised MDPs: every number is a rational or carries 70 digits.

A finite MDP given by floats is taken as the rational MDP that those floats are. With
beta = gamma * (largest row sum into non-terminal states) < 1 the regularised Bellman operator

    (U V)(s) = max_p  <p, Q(s, .)> + alpha * Omega_q(p),    Q(s, a) = r(s, a) + gamma * sum T V

contracts the maximum norm by beta, hence ||V* - U V|| <= beta / (1 - beta) * ||U V - V||.

* hard (alpha = 0): exact policy iteration in rationals, V* itself is rational.
* sparse (q = 2): Newton's method in 70 digits finds a V; U is then applied in exact rationals by
  the sorting formula for tau and spmax, so the enclosure is a proof.
* every other q: the same with U in 70 digits, the enclosure widened by 1e-45 relative.

Nothing here is shared with the library; it reads an MDP's stored arrays and nothing else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

CONTEXT = mpmath.mp.clone()
CONTEXT.dps = 70
WIDENING = Fraction(1, 10**45)


@dataclass(frozen=True)
class Pair:
    """One state-action pair: its action, expected reward and (successor, probability) list."""

    action: int
    reward: Fraction
    successors: tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class ExactMDP:
    """A finite MDP in rationals; a state without pairs is terminal and worth 0.

    Rows may sum to less than one (the rest of the mass ends the episode) or, by the rounding of
    the floats they came from, to slightly more.
    """

    pairs: tuple[tuple[Pair, ...], ...]
    discount: Fraction
    initial: tuple[Fraction, ...]

    @property
    def n_states(self) -> int:
        return len(self.pairs)

    @property
    def modulus(self) -> Fraction:
        """beta: gamma times the largest probability of going on to a non-terminal state."""
        masses = [
            sum((p for s, p in pair.successors if self.pairs[s]), Fraction(0))
            for row in self.pairs
            for pair in row
        ]
        return self.discount * max(masses, default=Fraction(0))


@dataclass(frozen=True)
class Enclosure:
    """lower <= V* <= upper, state by state, in rationals."""

    lower: tuple[Fraction, ...]
    upper: tuple[Fraction, ...]

    @property
    def width(self) -> Fraction:
        return max(u - l for l, u in zip(self.lower, self.upper))

    @property
    def middle(self) -> np.ndarray:
        return np.array([float((l + u) / 2) for l, u in zip(self.lower, self.upper)])


@dataclass(frozen=True)
class ExactEvaluation:
    """What one policy is worth: the counterpart of the library's `Evaluation` in rationals."""

    value: tuple[Fraction, ...]
    reward_value: tuple[Fraction, ...]
    entropy_value: tuple[Fraction, ...]
    visitation: tuple[Fraction, ...]
    expected_return: Fraction
    entropy: Fraction
    regularized_return: Fraction


def exact_mdp(mdp: Any) -> ExactMDP:
    """The rational MDP whose numbers are exactly the floats stored in `mdp`."""
    matrix = mdp.transitions
    pairs = []
    for s in range(len(mdp.pointer) - 1):
        row = []
        for i in range(int(mdp.pointer[s]), int(mdp.pointer[s + 1])):
            entries = slice(int(matrix.indptr[i]), int(matrix.indptr[i + 1]))
            successors = tuple(
                (int(j), Fraction(float(p)))
                for j, p in zip(matrix.indices[entries], matrix.data[entries])
            )
            row.append(Pair(int(mdp.action_of[i]), Fraction(float(mdp.rewards[i])), successors))
        pairs.append(tuple(row))
    initial = tuple(Fraction(float(d)) for d in mdp.initial)
    return ExactMDP(tuple(pairs), Fraction(float(mdp.discount)), initial)


def to_fraction(x: Any) -> Fraction:
    """A 70-digit number as the rational it is; 0 below 2^-1000 (a softmax can reach e^-1e9)."""
    if isinstance(x, (Fraction, int)):
        return Fraction(x)
    sign, mantissa, exponent, bits = x._mpf_
    if exponent + bits < -1000:
        return Fraction(0)
    return Fraction(-mantissa if sign else mantissa) * Fraction(2) ** exponent


def to_mpf(x: Fraction) -> Any:
    """A rational rounded to 70 digits."""
    return CONTEXT.mpf(x.numerator) / CONTEXT.mpf(x.denominator)


def sparsemax(z: Sequence[Any]) -> tuple[Any, list[Any], Any]:
    """tau(z), the projection of z onto the simplex and spmax(z), by the paper's sorting formula."""
    total, tau, top = 0 * z[0], None, []
    for i, x in enumerate(sorted(z, reverse=True), start=1):
        total = total + x
        if not 1 + i * x > total:
            break
        top.append(x)
        tau = (total - 1) / i
    policy = [max(x - tau, 0 * x) for x in z]
    return tau, policy, sum((x * x - tau * tau for x in top), 0 * tau) / 2 + (1 + 0 * tau) / 2


def tsallis_entropy(policy: Sequence[Any], q: Fraction) -> Any:
    """Omega_q(p) = (1 - sum p^q) / (q (q - 1)), the Shannon entropy at q = 1; rational at q = 2."""
    if q == 2:
        return (1 - sum((p * p for p in policy), 0 * policy[0])) / 2
    numbers = [to_mpf(p) if isinstance(p, Fraction) else p for p in policy]
    if q == 1:
        return -sum((p * CONTEXT.log(p) for p in numbers if p > 0), CONTEXT.mpf(0))
    index = to_mpf(q)
    powers = sum((p**index for p in numbers if p > 0), CONTEXT.mpf(0))
    return (1 - powers) / (index * (index - 1))


def max_entropy(n: int, q: Fraction) -> Any:
    """Omega_q of the uniform distribution on n actions."""
    return tsallis_entropy([Fraction(1, n)] * n, q)


def entmax(z: Sequence[Any], q: Fraction) -> tuple[Any, list[Any]]:
    """tau and argmax_p <p, z> + Omega_q(p) for q != 1, tau by safeguarded Newton in 70 digits."""
    index, top = to_mpf(q), max(z)
    below = [x - top for x in z]
    low = -1 / (index - 1)
    high = low * CONTEXT.mpf(len(z)) ** (1 - index)

    def masses(tau: Any) -> list[Any]:
        bases = [(index - 1) * (x - tau) for x in below]
        return [b ** (1 / (index - 1)) if b > 0 else CONTEXT.mpf(0) for b in bases]

    tau = low
    for _ in range(600):
        p = masses(tau)
        excess = sum(p, CONTEXT.mpf(0)) - 1
        if abs(excess) < CONTEXT.mpf(10) ** -62:
            break
        low, high = (tau, high) if excess > 0 else (low, tau)
        slope = sum((x ** (2 - index) for x in p if x > 0), CONTEXT.mpf(0))
        proposal = tau + excess / slope if slope > 0 else low
        tau = proposal if low < proposal < high else (low + high) / 2
    total = sum(p, CONTEXT.mpf(0))
    return top + tau, [x / total for x in p]


def greedy(values: Sequence[Any], alpha: Fraction, q: Fraction) -> tuple[Any, list[Any]]:
    """max_p <p, values> + alpha Omega_q(p) and its maximiser.

    Rationals go to rationals for the hard and the sparse regulariser; every other q needs and
    returns 70-digit numbers.
    """
    if alpha == 0:
        best = max(values)
        first = values.index(best)
        return best, [(1 if i == first else 0) + 0 * best for i in range(len(values))]
    if q == 2:
        scale = alpha if isinstance(values[0], Fraction) else to_mpf(alpha)
        _, policy, spmax = sparsemax([x / scale for x in values])
        return scale * spmax, policy
    scale = to_mpf(alpha)
    z = [x / scale for x in values]
    if q == 1:
        top = max(z)
        weights = [CONTEXT.exp(x - top) for x in z]
        total = sum(weights, CONTEXT.mpf(0))
        return scale * (top + CONTEXT.log(total)), [w / total for w in weights]
    _, policy = entmax(z, q)
    mean = sum((p * x for p, x in zip(policy, z)), CONTEXT.mpf(0))
    return scale * (mean + tsallis_entropy(policy, q)), policy


def action_values(mdp: ExactMDP, value: Sequence[Any]) -> list[list[Any]]:
    """Q(s, a) = r(s, a) + gamma * sum T(s'|s, a) V(s'), per state in the order of its pairs."""
    exact = all(isinstance(v, Fraction) for v in value)
    number = (lambda x: x) if exact else to_mpf
    gamma = number(mdp.discount)
    return [
        [
            number(pair.reward)
            + gamma * sum((number(p) * value[s] for s, p in pair.successors), number(Fraction(0)))
            for pair in row
        ]
        for row in mdp.pairs
    ]


def bellman(mdp: ExactMDP, value: Sequence[Any], alpha: Fraction, q: Fraction) -> list[Any]:
    """U V, in the arithmetic of `value` (rationals only for the hard and the sparse)."""
    zero = Fraction(0) if all(isinstance(v, Fraction) for v in value) else CONTEXT.mpf(0)
    return [greedy(row, alpha, q)[0] if row else zero for row in action_values(mdp, value)]


def solve_linear(matrix: list[list[Any]], right: list[Any]) -> list[Any]:
    """x with matrix x = right: exact for rationals, 70 digits otherwise."""
    if isinstance(right[0], Fraction):
        return _solve_integers(matrix, right)
    return list(CONTEXT.lu_solve(CONTEXT.matrix(matrix), CONTEXT.matrix(right)))


def _solve_integers(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """x with matrix x = right by Bareiss' elimination, which divides integers without remainder."""
    n, previous = len(right), 1
    a = []
    for row, b in zip(matrix, right):
        common = math.lcm(b.denominator, *(x.denominator for x in row))
        a.append([int(x * common) for x in (*row, b)])
    for k in range(n):
        pivot = next(i for i in range(k, n) if a[i][k] != 0)
        a[k], a[pivot] = a[pivot], a[k]
        for i in range(n):
            if i != k:
                lead = a[i][k]
                a[i] = [(x * a[k][k] - lead * y) // previous for x, y in zip(a[i], a[k])]
        previous = a[k][k]
    return [Fraction(a[k][n], a[k][k]) for k in range(n)]


def _system(mdp: ExactMDP, policy: Sequence[Sequence[Any]], number: Any) -> list[list[Any]]:
    """G_pi = I - gamma T_pi; a terminal state's row is that of the identity."""
    n, gamma = mdp.n_states, number(mdp.discount)
    system = [[number(Fraction(int(i == j))) for j in range(n)] for i in range(n)]
    for s, row in enumerate(mdp.pairs):
        for weight, pair in zip(policy[s], row):
            if weight != 0:
                for successor, p in pair.successors:
                    system[s][successor] -= gamma * weight * number(p)
    return system


def _hard_value(mdp: ExactMDP) -> list[Fraction]:
    """V* by exact policy iteration; an action is exchanged only for a strictly better one."""
    choice = [0] * mdp.n_states
    while True:
        policy = [[Fraction(int(i == c)) for i in range(len(r))] for c, r in zip(choice, mdp.pairs)]
        rewards = [r[c].reward if r else Fraction(0) for c, r in zip(choice, mdp.pairs)]
        value = solve_linear(_system(mdp, policy, lambda x: x), rewards)
        improved = list(choice)
        for s, row in enumerate(action_values(mdp, value)):
            if row and max(row) > row[choice[s]]:
                improved[s] = row.index(max(row))
        if improved == choice:
            return value
        choice = improved


def _newton(mdp: ExactMDP, alpha: Fraction, q: Fraction) -> list[Any]:
    """Regularised policy iteration (Newton's method on V = U V) in 70 digits."""
    value = [CONTEXT.mpf(0)] * mdp.n_states
    scale = to_mpf(alpha)
    for _ in range(300):
        policy, right = [], []
        for s, row in enumerate(action_values(mdp, value)):
            weights = greedy(row, alpha, q)[1] if row else []
            policy.append(weights)
            reward = sum(
                (w * to_mpf(pair.reward) for w, pair in zip(weights, mdp.pairs[s])), CONTEXT.mpf(0)
            )
            right.append(reward + (scale * tsallis_entropy(weights, q) if weights else 0))
        new = solve_linear(_system(mdp, policy, to_mpf), right)
        step = max(abs(a - b) for a, b in zip(new, value))
        value = new
        if step <= CONTEXT.mpf(10) ** -55 * (1 + max(abs(v) for v in value)):
            break
    return value


def optimal_value(mdp: ExactMDP, alpha: Fraction | float, q: Fraction | float) -> Enclosure:
    """A rational enclosure of V*, exact (lower == upper) for the hard regulariser."""
    alpha, q = Fraction(alpha), Fraction(q)
    if alpha == 0:
        value = tuple(_hard_value(mdp))
        return Enclosure(value, value)
    approximate = _newton(mdp, alpha, q)
    value = [to_fraction(v) for v in approximate]
    if q == 2:
        rounding = Fraction(0)
        image = bellman(mdp, value, alpha, q)
    else:
        image = [to_fraction(v) for v in bellman(mdp, approximate, alpha, q)]
        rounding = WIDENING * (1 + max(abs(v) for v in value))
    residual = max(abs(a - b) for a, b in zip(image, value)) + rounding
    beta = mdp.modulus
    radius = beta / (1 - beta) * residual + rounding
    lower = [_floor(v - radius) if row else Fraction(0) for v, row in zip(image, mdp.pairs)]
    upper = [-_floor(-v - radius) if row else Fraction(0) for v, row in zip(image, mdp.pairs)]
    return Enclosure(tuple(lower), tuple(upper))


def _floor(x: Fraction) -> Fraction:
    """The largest multiple of 2^-200 that is not above x, which keeps rationals short."""
    return Fraction(math.floor(x * 2**200), 2**200)


def optimal_support(
    mdp: ExactMDP, enclosure: Enclosure, alpha: Fraction | float, q: Fraction | float
) -> list[list[int]]:
    """Per pair: +1 where pi*(a|s) > 0, -1 where it is 0, 0 where 20 digits do not decide it.

    For the hard regulariser +1 is "optimal" and -1 "not optimal"; ties are all optimal.
    """
    alpha, q = Fraction(alpha), Fraction(q)
    verdicts = []
    lows = action_values(mdp, enclosure.lower)
    highs = action_values(mdp, enclosure.upper)
    for low, high in zip(lows, highs):
        if not low:
            verdicts.append([])
        elif alpha == 0:
            verdicts.append([1 if x == max(low) else -1 for x in low])
        elif q <= 1:
            verdicts.append([1] * len(low))
        else:
            tau_low, tau_high = (_threshold(row, alpha, q) for row in (low, high))
            verdicts.append(
                [1 if a > tau_high else -1 if b <= tau_low else 0 for a, b in zip(low, high)]
            )
    return verdicts


def _threshold(values: Sequence[Fraction], alpha: Fraction, q: Fraction) -> Fraction:
    """alpha * tau_q(values / alpha), which no supported action's value is below."""
    z = [x / alpha for x in values]
    if q == 2:
        return alpha * sparsemax(z)[0]
    return alpha * to_fraction(entmax([to_mpf(x) for x in z], q)[0])


def evaluate_policy(
    mdp: ExactMDP,
    policy: Sequence[Sequence[Fraction]],
    alpha: Fraction | float = 0,
    q: Fraction | float = 2,
) -> ExactEvaluation:
    """V_pi = G^-1 (r_pi + alpha Omega_pi), rho = d' G^-1, J and entropy of `policy` in rationals.

    `policy[s]` lists the probabilities of the pairs of s. The entropy is rational for q = 2 and
    rounded to 70 digits otherwise. rho counts a terminal state once, when it is entered.
    """
    alpha, q = Fraction(alpha), Fraction(q)
    zero = Fraction(0)
    rewards = [
        sum((w * pair.reward for w, pair in zip(weights, row)), zero)
        for weights, row in zip(policy, mdp.pairs)
    ]
    entropies = [
        to_fraction(tsallis_entropy(w, q)) if row else zero for w, row in zip(policy, mdp.pairs)
    ]
    system = _system(mdp, policy, lambda x: x)
    reward_value = solve_linear(system, rewards)
    entropy_value = solve_linear(system, entropies)
    transposed = [list(column) for column in zip(*system)]
    visitation = solve_linear(transposed, list(mdp.initial))
    expected_return = sum((d * v for d, v in zip(mdp.initial, reward_value)), zero)
    entropy = sum((d * v for d, v in zip(mdp.initial, entropy_value)), zero)
    value = tuple(v + alpha * h for v, h in zip(reward_value, entropy_value))
    return ExactEvaluation(
        value,
        tuple(reward_value),
        tuple(entropy_value),
        tuple(visitation),
        expected_return,
        entropy,
        expected_return + alpha * entropy,
    )


def value_of_steps(
    mdp: ExactMDP,
    policies: Sequence[Sequence[Sequence[Fraction]]],
    final: Sequence[float],
    alpha: Fraction,
    q: Fraction,
) -> list[Fraction]:
    """What the policies of steps 0, 1, ... are worth; `final` is the value after the last step."""
    value = [Fraction(float(x)) for x in final]
    for policy in reversed(policies):
        value = [
            sum((p * x for p, x in zip(weights, row)), Fraction(0))
            + (alpha * to_fraction(tsallis_entropy(weights, q)) if row else 0)
            for weights, row in zip(policy, action_values(mdp, value))
        ]
    return value


def exact_policy(mdp: ExactMDP, pair_policy: Sequence[float]) -> list[list[Fraction]]:
    """A per-pair float policy as rationals; the largest probability of a row takes its rounding."""
    policy, start = [], 0
    for row in mdp.pairs:
        weights = [Fraction(float(x)) for x in pair_policy[start : start + len(row)]]
        policy.append(summing_to_one(weights))
        start += len(row)
    return policy


def summing_to_one(weights: list[Fraction]) -> list[Fraction]:
    """The weights with whatever their sum lacks of one added to the largest."""
    if weights:
        weights[weights.index(max(weights))] += 1 - sum(weights)
    return weights
