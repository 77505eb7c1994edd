"""What a given policy is worth: value, visitation, entropy, return, and the paper's bounds on it.

With G = I - gamma T_pi (the paper's Table I),

    V_pi = G⁻¹ (r_pi + alpha Omega(pi)),   rho_pi' = d' G⁻¹,   rho_pi(s, a) = rho_pi(s) pi(a|s),
    J = rho_pi' r_pi,   W or H = sum_s rho_pi(s) Omega(pi(s)),   d'V_pi = J + alpha W.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax.errors import InvalidInput
from tsallax.interrupts import interruptible
from tsallax.planning.bellman import UNIT, Bellman, Floats, require
from tsallax.planning.forms import numbers
from tsallax.planning.kernels import sweep
from tsallax.planning.linear_systems import PolicySystem, permuted, policy_matrix
from tsallax.planning.mdp import MDP
from tsallax.planning.solver import Solution
from tsallax.regularizer import Hard, Regularizer

ROW_TOLERANCE = 1e-6
ACCURATE = 1e-6
"""The largest error of an evaluation, relative to the largest value there can be."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A policy's value and what it visits.

    Attributes:
        value: V_pi(s) of the regularised MDP (of the plain one where no regulariser is given).
        q: Q_pi(s, a) = r + gamma E V_pi as a table (S, A), -inf where an action is missing.
        visitation: rho_pi(s), the discounted expected number of visits from the start d.
        state_action_visitation: rho_pi(s, a) as a table (S, A).
        entropy: the causal entropy of the policy, W(pi) or H(pi); 0 without a regulariser.
        expected_return: J, the expected discounted sum of rewards, without entropy.
        regularized_return: J + alpha * entropy = d'V_pi.
        error: a bound on |value - V_pi| in every state.
    """

    value: Floats
    q: Floats
    visitation: Floats
    state_action_visitation: Floats
    entropy: float
    expected_return: float
    regularized_return: float
    error: float

    def __repr__(self) -> str:
        return (
            f"Evaluation(expected_return={self.expected_return:.8g}, entropy={self.entropy:.6g}, "
            f"regularized_return={self.regularized_return:.8g}, error<={self.error:.2g})"
        )


@interruptible()
def evaluate(mdp: MDP, policy: ArrayLike, regularizer: Regularizer | None = None) -> Evaluation:
    """Value, visitation, entropy and return of a policy.

    Args:
        mdp: the problem.
        policy: probabilities as a table (S, A) or one for each pair; or one action for each state,
            as integers (S,). What a table says about terminal states is ignored.
        regularizer: whose entropy counts; none: the plain MDP.

    >>> from tsallax import Sparse, problems
    >>> mdp = problems.forest(states=3, discount=0.9)
    >>> evaluate(mdp, [0, 0, 0]).value.round(3)
    array([26.244, 29.484, 33.484])
    >>> round(evaluate(mdp, mdp.table(np.full(6, 0.5)), Sparse(1.0)).entropy, 9)
    2.5
    """
    chosen = Hard() if regularizer is None else regularizer
    require("evaluate", mdp, chosen)
    pi = read_policy(mdp, policy)
    operator = Bellman(mdp, chosen)
    pi, omega, system = _system(operator, pi)
    reward = _by_state(mdp, pi * mdp.rewards)
    total = reward + operator.alpha * omega
    value, error = _solve(operator, system, pi, total)
    visitation, off = _visits(operator, system)
    found = Evaluation(
        value=value,
        q=mdp.table(operator.action_values(value), fill=-math.inf),
        visitation=visitation,
        state_action_visitation=mdp.table(pi * visitation[mdp.state_of]),
        entropy=float(visitation @ omega),
        expected_return=float(visitation @ reward),
        regularized_return=float(visitation @ total),
        error=error,
    )
    apart = abs(found.regularized_return - float(mdp.initial @ value))
    _require_accurate(operator, error, off * float(np.abs(total).max()), apart)
    return found


def _require_accurate(operator: Bellman, error: float, off: float, apart: float) -> None:
    """Refuse d'V and rho'r that are apart by more than their errors, or errors that are no use."""
    mdp = operator.mdp
    largest = operator.scale / (1.0 - mdp.discount)
    if not (error + off <= ACCURATE * largest and apart <= error + off):
        raise InvalidInput(
            f"the value of this policy cannot be had in float64: it is known to {error:.2g}, and "
            f"d'V and rho'r are {apart:.2g} apart; a discount below {mdp.discount!r} may help"
        )


def performance_bound(mdp: MDP, regularizer: Regularizer) -> float:
    """How much return the regulariser can cost: J(pi*) - J(pi) <= alpha Omega_max(|A|)/(1 - gamma).

    Theorem 4 for `Sparse`, alpha (|A| - 1)/(2|A|)/(1 - gamma), which no number of actions lifts
    above alpha/2/(1 - gamma); Theorem 5 for `Soft`, alpha log|A|/(1 - gamma), which grows.

    >>> from tsallax import Soft, Sparse, problems
    >>> mdp = problems.forest(states=3, discount=0.9)
    >>> round(performance_bound(mdp, Sparse(0.1)), 6), round(performance_bound(mdp, Soft(0.1)), 6)
    (0.25, 0.693147)
    """
    require("performance_bound", mdp, regularizer)
    bonus = float(regularizer.alpha) * float(regularizer.max_entropy(mdp.max_actions))
    return bonus / (1.0 - mdp.discount)


@interruptible()
def gap_certificate(mdp: MDP, solution: Solution) -> Floats:
    """A bound on V*(s) - V_pi(s), both of the plain MDP, for the solution's policy pi.

    It is (I - gamma T_pi)⁻¹ alpha Omega(pi), the entropy that this very policy collects, and at
    most the theorem's bound, plus the width of the solution's enclosure and the solver's residual.

    >>> from tsallax import Sparse, problems, solve
    >>> mdp = problems.forest(states=3, discount=0.9)
    >>> solution = solve(mdp, Sparse(8.0))
    >>> bool((gap_certificate(mdp, solution) <= performance_bound(mdp, Sparse(8.0))).all())
    True
    """
    if not isinstance(solution, Solution):
        raise InvalidInput(f"gap_certificate needs what solve returns, not {solution!r}")
    require("gap_certificate", mdp, solution.regularizer)
    if not same(mdp, solution.mdp):
        raise InvalidInput("the solution is of another MDP")
    operator = Bellman(mdp, solution.regularizer)
    pi, omega, system = _system(operator, solution.pair_policy)
    bonus, error = _solve(operator, system, pi, operator.alpha * omega)
    gap = bonus + error + (solution.upper - solution.lower)
    return np.where(mdp.terminal, 0.0, np.nextafter(gap, math.inf))


def same(one: MDP, other: MDP) -> bool:
    """Whether two MDPs have the same transitions, rewards and discount."""
    if one is other:
        return True
    a, b = one.transitions, other.transitions
    arrays = [
        (a.indptr, b.indptr), (a.indices, b.indices), (a.data, b.data),
        (one.rewards, other.rewards), (one.pointer, other.pointer),
    ]  # fmt: skip
    return one.discount == other.discount and all(np.array_equal(x, y) for x, y in arrays)


def read_policy(mdp: MDP, policy: ArrayLike) -> Floats:
    """The probabilities of every pair, from any of the accepted forms, or InvalidInput."""
    given = numbers(policy, "policy")
    if given.shape == (mdp.n_states,) and np.issubdtype(given.dtype, np.integer):
        return _deterministic(mdp, given)
    table = given.astype(np.float64)
    if table.shape == (mdp.n_states, mdp.n_actions):
        pi = mdp.flatten(table)
        if not mdp.rectangular:
            _refuse_missing(mdp, table)
    elif table.shape == (mdp.n_pairs,):
        pi = table
    else:
        raise InvalidInput(
            f"a policy of this MDP has shape ({mdp.n_states}, {mdp.n_actions}), one number for "
            f"each of {mdp.n_pairs} pairs, or one integer for each state, not {table.shape}"
        )
    wrong = ~((pi >= 0.0) & (pi < math.inf))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise InvalidInput(
            f"the policy's probability of action {int(mdp.action_of[i])} in "
            f"{_state(mdp, int(mdp.state_of[i]))} is {pi[i]}"
        )
    total = _by_state(mdp, pi)
    off = np.where(mdp.terminal, 0.0, np.abs(total - 1.0))
    if off.max() > ROW_TOLERANCE:
        s = int(off.argmax())
        raise InvalidInput(f"the policy of {_state(mdp, s)} sums to {total[s]:.8g}, not to 1")
    return np.asarray(pi / total[mdp.state_of], np.float64)


def _refuse_missing(mdp: MDP, table: Floats) -> None:
    """Refuse a policy that gives a state an action that it lacks."""
    extra = table != 0.0
    extra[mdp.state_of, mdp.action_of] = False
    extra[mdp.terminal] = False
    if extra.any():
        s, a = (int(i) for i in np.argwhere(extra)[0])
        raise InvalidInput(f"the policy gives {_state(mdp, s)} the action {a}, which it lacks")


def _deterministic(mdp: MDP, actions: NDArray[np.integer]) -> Floats:
    pi: Floats = np.where(mdp.action_of == actions[mdp.state_of], 1.0, 0.0)
    missing = (_by_state(mdp, pi) == 0.0) & ~mdp.terminal
    if missing.any():
        s = int(np.flatnonzero(missing)[0])
        raise InvalidInput(f"{_state(mdp, s)} has no action {int(actions[s])}")
    return pi


def _state(mdp: MDP, s: int) -> str:
    return f"state {s}" if mdp.state_names is None else f"state {mdp.state_names[s]!r}"


def _by_state(mdp: MDP, per_pair: Floats) -> Floats:
    total = np.bincount(mdp.state_of, weights=per_pair, minlength=mdp.n_states)
    return total.astype(np.float64, copy=False)


def _system(operator: Bellman, pi: Floats) -> tuple[Floats, Floats, PolicySystem]:
    """The policy as the kernels want it, Omega(pi(s)) of every state, and its linear system."""
    pi = np.require(pi, np.float64, ["C", "W"])
    order, _ = sweep.reach(operator.arrays, np.flatnonzero(operator.mdp.terminal))
    order = order[::-1].copy()
    matrix = permuted(policy_matrix(operator.arrays, pi), order)
    return pi, operator.entropy(pi), PolicySystem(matrix, order)


def _solve(operator: Bellman, system: PolicySystem, pi: Floats, b: Floats) -> tuple[Floats, float]:
    """v with (I - gamma T_pi) v = b, and a bound on its error from the residual."""
    gap = 1.0 - operator.mdp.discount
    size = float(np.abs(b).max())

    def missing(v: Floats) -> tuple[Floats, float]:
        residual = operator.residual(pi, b, v)
        return residual, float(np.abs(residual).max())

    def rounding(v: Floats) -> float:
        return operator.action_value_rounding(v) + 2 * UNIT * size

    v, left = _refined(
        lambda r: system.solve(r, 1e-15 * size * gap)[0],
        system.solve_exactly,
        missing,
        rounding,
        b,
    )
    return v, (left + rounding(v)) / (gap - operator.policy_sum_error)


def _visits(operator: Bellman, system: PolicySystem) -> tuple[Floats, float]:
    """rho, and a bound on the sum of the errors in all states."""
    d, n = operator.mdp.initial, operator.mdp.n_states
    terms = (np.bincount(operator.mdp.transitions.indices, minlength=n).max() + 16) * UNIT

    def missing(x: Floats) -> tuple[Floats, float]:
        residual = system.residual_transposed(d, x)
        return residual, float(np.abs(residual).sum())

    def rounding(x: Floats) -> float:
        return float(terms * 2 * np.abs(x).sum())

    x, left = _refined(
        lambda r: system.solve_transposed(r, 1e-16 / n)[0],
        lambda r: system.solve_exactly(r, transposed=True),
        missing,
        rounding,
        d,
    )
    gap = 1.0 - operator.mdp.discount - operator.policy_sum_error
    return np.maximum(x, 0.0), (left + rounding(x)) / gap


def _refined(
    quickly: Callable[[Floats], Floats],
    exactly: Callable[[Floats], Floats],
    missing: Callable[[Floats], tuple[Floats, float]],
    rounding: Callable[[Floats], float],
    b: Floats,
) -> tuple[Floats, float]:
    """x of a linear system and the norm of its residual, by iterative refinement.

    Corrections come from the quick solver; where those do not bring the residual down to rounding,
    from the exact one. Of all x the best is kept.
    """
    best, (residual, left) = np.zeros_like(b), missing(np.zeros_like(b))
    for solver, times in ((quickly, 3), (exactly, 2)):
        for _ in range(times):
            x = best + solver(residual)
            again, norm = missing(x)
            if not norm < left:
                break
            best, residual, left = x, again, norm
        if left <= 4 * rounding(best):
            break
    return best, left
