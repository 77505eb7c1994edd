"""Policy evaluation: value, visitation, entropy and return of a policy, and the paper's bounds.

With G = I - gamma T_pi (the paper's Table I),

    V_pi = G⁻¹ (r_pi + alpha Omega(pi)),   rho_pi' = d' G⁻¹,   rho_pi(s, a) = rho_pi(s) pi(a|s),
    J = rho_pi' r_pi,   W or H = sum_s rho_pi(s) Omega(pi(s)),   d'V_pi = J + alpha W.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.interrupts import interruptible
from tsallax.planning.bellman import Bellman, check_problem, kernel_arrays
from tsallax.planning.finite_horizon import FiniteHorizonSolution, read_final_value
from tsallax.planning.forms import Floats
from tsallax.planning.functional_evaluation import (
    FunctionalEvaluation,
    evaluate_functional,
    functional_gap,
)
from tsallax.planning.functional_mdp import FunctionalMDP, no_finite_horizon
from tsallax.planning.functional_solution import FunctionalSolution
from tsallax.planning.linear_systems import PolicySystem, order_to_ends
from tsallax.planning.mdp import MDP
from tsallax.planning.operator import UNIT_ROUNDOFF
from tsallax.planning.policies import sum_by_state
from tsallax.planning.solution import Solution
from tsallax.planning.step_evaluation import evaluate_steps, values_of_steps
from tsallax.planning.step_policies import read_policies, read_stationary, require_same_mdp
from tsallax.planning.termination_proof import longest_durations
from tsallax.regularizer import Hard, Regularizer

MAX_RELATIVE_ERROR = 1e-6
"""The largest error of an evaluation, relative to a bound on all values."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A policy's value and what it visits.

    Attributes:
        value: V_pi(s) of the regularised MDP (of the plain one where no regulariser is given).
        pair_q: Q_pi(s, a) = r + gamma E V_pi of every pair; `q` lays it out as a table.
        visitation: rho_pi(s), the discounted expected number of visits from the start d.
        pair_visitation: rho_pi(s, a) of every pair; `state_action_visitation` is the table.
        entropy: the causal entropy of the policy, W(pi) or H(pi); 0 without a regulariser.
        expected_return: J, the expected discounted sum of rewards, without entropy.
        regularized_return: J + alpha * entropy = d'V_pi.
        error: a bound on |value - V_pi| in every state.
    """

    mdp: MDP
    value: Floats
    pair_q: Floats
    visitation: Floats
    pair_visitation: Floats
    entropy: float
    expected_return: float
    regularized_return: float
    error: float

    @cached_property
    def q(self) -> Floats:
        """Action values as a table (S, A), -inf where the state lacks the action."""
        return self.mdp.table(self.pair_q, fill=-math.inf)

    @cached_property
    def state_action_visitation(self) -> Floats:
        """rho_pi(s, a) as a table (S, A)."""
        return self.mdp.table(self.pair_visitation)

    def __repr__(self) -> str:
        return (
            f"Evaluation(expected_return={self.expected_return:.8g}, entropy={self.entropy:.6g}, "
            f"regularized_return={self.regularized_return:.8g}, error<={self.error:.2g})"
        )


@overload
def evaluate(
    mdp: MDP,
    policy: ArrayLike
    | Mapping[Any, Any]
    | Solution
    | FiniteHorizonSolution
    | Callable[[int], ArrayLike],
    regularizer: Regularizer | None = ...,
    *,
    horizon: int | None = ...,
    final_value: ArrayLike | None = ...,
) -> Evaluation: ...
@overload
def evaluate(
    mdp: FunctionalMDP,
    policy: ArrayLike | FunctionalSolution,
    regularizer: Regularizer | None = None,
) -> FunctionalEvaluation: ...
@interruptible()
def evaluate(
    mdp: MDP | FunctionalMDP,
    policy: Any,
    regularizer: Regularizer | None = None,
    *,
    horizon: int | None = None,
    final_value: ArrayLike | None = None,
) -> Evaluation | FunctionalEvaluation:
    """Value, visitation, entropy and return of a policy.

    Args:
        mdp: the problem.
        policy: probabilities as a table (S, A) or one for each pair; or one action for each state,
            as integers or names (S,); or a dict of states, each with an action or with a dict of
            actions and their probabilities. Entries of terminal states are ignored. Or a pivot of
            `Solution.to_frame()`, with states as rows and actions as columns. Or what `solve`
            returned; or, with a horizon, a function that gives the policy of each step. Of a
            model from functions: a table, actions as integers, or what `solve` returned.
        regularizer: of the entropy that is added to the rewards; without one, the plain MDP.
        horizon: the number of steps after which every episode ends; default: none, or that of a
            `FiniteHorizonSolution`. `value` and `q` are those of the first step then.
        final_value: what each state is worth after the last step; default: 0, or what a
            `FiniteHorizonSolution` was solved with where all of its steps are taken.

    With a discount of 1 and no horizon, episodes have to end under this policy.

    >>> from tsallax import Sparse, problems
    >>> mdp = problems.forest(states=3, discount=0.9)
    >>> evaluate(mdp, [0, 0, 0]).value.round(3)
    array([26.244, 29.484, 33.484])
    >>> evaluate(mdp, {0: "cut", 1: {"wait": 0.5, "cut": 0.5}, 2: "wait"}).value.round(3)
    array([ 0.   ,  9.026, 21.053])
    >>> round(evaluate(mdp, mdp.table(np.full(6, 0.5)), Sparse(1.0)).entropy, 9)
    2.5
    >>> evaluate(mdp, [0, 0, 0], horizon=2).value.round(3)
    array([0.  , 3.24, 7.24])
    """
    chosen = Hard() if regularizer is None else regularizer
    check_problem("evaluate", mdp, chosen, (MDP, FunctionalMDP))
    if isinstance(mdp, FunctionalMDP):
        for name, given in (("horizon", horizon), ("final_value", final_value)):
            if given is not None:
                raise no_finite_horizon(name)
        return evaluate_functional(mdp, policy, chosen)
    if isinstance(policy, FiniteHorizonSolution):
        horizon = policy.horizon if horizon is None else horizon
        if horizon == policy.horizon and final_value is None:
            final_value = policy.final_value
    if horizon is not None:
        return _finite(mdp, policy, chosen, horizon, final_value)
    if final_value is not None:
        raise InvalidInput("final_value needs a horizon", add=("horizon", 100))
    pi = read_stationary(mdp, policy)
    # without discount, this policy has to end, and others need not
    undiscounted = mdp.discount == 1.0
    operator = Bellman(mdp, chosen, finite_horizon=undiscounted)
    gap = _chain_gap(mdp, pi) if undiscounted else 1.0 - operator.discount
    pi, omega, system = _system(operator, pi)
    reward = sum_by_state(mdp, pi * mdp.rewards)
    total = reward + operator.alpha * omega
    value, error = _solve(operator, system, pi, total, gap)
    visitation, off = _visits(operator, system, gap)
    found = Evaluation(
        mdp=mdp,
        value=value,
        pair_q=operator.action_values(value),
        visitation=visitation,
        pair_visitation=pi * visitation[mdp.state_of],
        entropy=float(visitation @ omega),
        expected_return=float(visitation @ reward),
        regularized_return=float(visitation @ total),
        error=error,
    )
    apart = abs(found.regularized_return - float(mdp.initial @ value))
    off *= float(np.abs(total).max())
    largest = operator.scale / gap + 1e-300  # bounds are above 0 where all rewards are 0
    if not (error + off <= MAX_RELATIVE_ERROR * largest and apart <= error + off):
        raise InvalidInput(
            "this policy cannot be evaluated in float64: the error of its value is up to "
            f"{error:.2g}, that of returns from its visitation up to {off:.2g}, and they differ by "
            f"{apart:.2g}; a discount below {mdp.discount!r} may help"
        )
    return found


def _finite(
    mdp: MDP, policy: Any, regularizer: Regularizer, horizon: int, final_value: ArrayLike | None
) -> Evaluation:
    """`evaluate` over a finite horizon."""
    steps = checks.count("horizon", horizon)
    operator = Bellman(mdp, regularizer, finite_horizon=True)
    last = read_final_value(mdp, final_value)
    found = evaluate_steps(operator, read_policies(mdp, policy, steps), steps, last)
    return Evaluation(mdp=mdp, **found._asdict())


def performance_bound(mdp: MDP | FunctionalMDP, regularizer: Regularizer) -> float:
    """How much return the regulariser can cost: J(pi*) - J(pi) <= alpha Omega_max(|A|)/(1 - gamma).

    Theorem 4 for `Sparse`, alpha (|A| - 1)/(2|A|)/(1 - gamma), which no number of actions lifts
    above alpha/2/(1 - gamma); Theorem 5 for `Soft`, alpha log|A|/(1 - gamma), which grows.
    Without discount, 1/(1 - gamma) is the longest expected duration of an episode.

    >>> from tsallax import Soft, Sparse, problems
    >>> mdp = problems.forest(states=3, discount=0.9)
    >>> round(performance_bound(mdp, Sparse(0.1)), 6), round(performance_bound(mdp, Soft(0.1)), 6)
    (0.25, 0.693147)
    """
    check_problem("performance_bound", mdp, regularizer, (MDP, FunctionalMDP))
    bonus = float(regularizer.alpha) * float(regularizer.max_entropy(mdp.max_actions))
    rate = Bellman(mdp, regularizer).discount if isinstance(mdp, MDP) else mdp.discount
    return bonus / (1.0 - rate)


@interruptible()
def gap_certificate(
    mdp: MDP | FunctionalMDP, solution: Solution | FunctionalSolution | FiniteHorizonSolution
) -> Floats:
    """A bound on V*(s) - V_pi(s), both of the plain MDP, for the solution's policy pi.

    It is (I - gamma T_pi)⁻¹ alpha Omega(pi), the entropy that this very policy collects, and at
    most the theorem's bound, plus the width of the solution's enclosure and the solver's residual.
    With a finite horizon, V* and V_pi are those of the first step.

    >>> from tsallax import Sparse, problems, solve
    >>> mdp = problems.forest(states=3, discount=0.9)
    >>> solution = solve(mdp, Sparse(8.0))
    >>> bool((gap_certificate(mdp, solution) <= performance_bound(mdp, Sparse(8.0))).all())
    True
    """
    if not isinstance(solution, Solution | FunctionalSolution | FiniteHorizonSolution):
        kind = type(solution).__name__
        raise InvalidInput(
            f"gap_certificate needs what solve returns, not {kind}: for the value of any policy "
            "use evaluate"
        )
    check_problem("gap_certificate", mdp, solution.regularizer, (MDP, FunctionalMDP))
    if isinstance(solution, FunctionalSolution) and mdp is solution.mdp:
        return functional_gap(solution)
    if not isinstance(mdp, MDP) or isinstance(solution, FunctionalSolution):
        raise InvalidInput("the solution is of another MDP")
    require_same_mdp(mdp, solution.mdp)
    if isinstance(solution, FiniteHorizonSolution):
        return gap_of_steps(solution, plain_value_of_steps(solution))
    operator = Bellman(mdp, solution.regularizer)
    pi, omega, system = _system(operator, solution.pair_policy)
    bonus, error = _solve(operator, system, pi, operator.alpha * omega, 1.0 - operator.discount)
    gap = bonus + error + (solution.upper - solution.lower)
    return np.where(mdp.terminal, 0.0, np.nextafter(gap, math.inf))


def plain_value_of_steps(solution: FiniteHorizonSolution) -> tuple[Floats, float]:
    """What the policies of a solution are worth without entropy, and a bound on its error."""
    mdp, steps = solution.mdp, solution.horizon
    operator = Bellman(mdp, Hard(), finite_horizon=True)
    policies = read_policies(mdp, solution, steps)
    value, _, error = values_of_steps(operator, policies, steps, solution.final_value)
    return value, error


def gap_of_steps(solution: FiniteHorizonSolution, plain: tuple[Floats, float]) -> Floats:
    """`gap_certificate` over a finite horizon, from `plain_value_of_steps`.

    V_0 of the plain MDP is at most that of the regularised one, since no entropy is negative, and
    so at most its upper bound.
    """
    value, error = plain
    gap = solution.upper - value + error
    return np.where(solution.mdp.terminal, 0.0, np.nextafter(gap, math.inf))


def _system(operator: Bellman, pi: Floats) -> tuple[Floats, Floats, PolicySystem]:
    """The policy as the kernels want it, Omega(pi(s)) of every state, and its linear system."""
    pi = np.require(pi, np.float64, ["C", "W"])
    system = PolicySystem(operator.arrays, pi, order_to_ends(operator.arrays))
    return pi, operator.entropy(pi), system


def _chain_gap(mdp: MDP, pi: Floats) -> float:
    """A number in place of 1 - gamma for a policy without discount, which has to end."""
    chain = _chain(mdp, pi)
    longest_durations(chain, kernel_arrays(chain), of_policy=True)
    return 1.0 - Bellman(chain, Hard()).discount


def _chain(mdp: MDP, pi: Floats) -> MDP:
    """The Markov chain of a policy, as an MDP with one action."""
    states = np.flatnonzero(~mdp.terminal)
    choice = csr_array((pi, np.arange(mdp.n_pairs), mdp.pointer), (mdp.n_states, mdp.n_pairs))
    ends: Any = None if mdp.termination is None else choice @ mdp.termination
    transitions: Any = choice @ mdp.transitions
    return MDP(
        transitions[states],
        np.zeros(len(states)),
        mdp.discount,
        pairs=np.stack([states, np.zeros_like(states)], axis=1),
        terminal=mdp.terminal,
        termination=None if ends is None else ends[states],
        state_names=mdp.state_names,
    )


def _solve(
    operator: Bellman, system: PolicySystem, pi: Floats, b: Floats, gap: float
) -> tuple[Floats, float]:
    """v with (I - gamma T_pi) v = b, and a bound on its error from the residual.

    `gap` is 1 - gamma, or without discount that of the chain.
    """
    size = float(np.abs(b).max())
    v, residual = _refined(
        partial(system.solve, tolerance=1e-15 * size * gap),
        system.solve_exactly,
        residual_of=lambda v: operator.residual(pi, b, v),
        norm=np.max,
        rounding=lambda v: operator.action_value_rounding(v) + 2 * UNIT_ROUNDOFF * size,
        b=b,
    )
    return v, operator.policy_error(residual, gap)


def _visits(operator: Bellman, system: PolicySystem, gap: float) -> tuple[Floats, float]:
    """rho, and a bound on the sum of the errors in all states."""
    d, n = operator.mdp.initial, operator.mdp.n_states
    predecessors = np.bincount(operator.mdp.transitions.indices, minlength=n).max()
    terms = (predecessors + 16) * UNIT_ROUNDOFF
    x, residual = _refined(
        partial(system.solve, tolerance=1e-16 / n, transposed=True),
        partial(system.solve_exactly, transposed=True),
        residual_of=lambda x: system.residual_transposed(d, x),
        norm=np.sum,
        rounding=lambda x: float(terms * 2 * np.abs(x).sum()),
        b=d,
    )
    return np.maximum(x, 0.0), operator.policy_error(residual, gap)


def _refined(
    iterative: Callable[[Floats], tuple[Floats, float]],
    exact: Callable[[Floats], Floats],
    residual_of: Callable[[Floats], Floats],
    norm: Callable[[Floats], float],
    rounding: Callable[[Floats], float],
    b: Floats,
) -> tuple[Floats, float]:
    """x of a linear system and a bound on its residual, rounding included.

    By iterative refinement: corrections come from the iterative solver, and from the exact one
    where those do not bring the residual down to rounding.  The x of the smallest residual is kept.
    """
    best = np.zeros_like(b)
    residual = residual_of(best)
    smallest = float(norm(np.abs(residual)))
    for solver, attempts in ((lambda r: iterative(r)[0], 3), (exact, 2)):
        for _ in range(attempts):
            x = best + solver(residual)
            new = residual_of(x)
            size = float(norm(np.abs(new)))
            if not size < smallest:
                break
            best, residual, smallest = x, new, size
        if smallest <= 4 * rounding(best):
            break
    return best, smallest + rounding(best)
