"""Policy evaluation of models from functions, in JAX and in float64.

With G = I - gamma T_pi as in `planning.evaluation`, the linear systems

    G V = r_pi,   G H = Omega(pi),   G' rho = d

are solved by BiCGSTAB, which needs sweeps of the policy and their transposes only, and by plain
sweeps where that stalls.  A last sweep bounds the error, rounding included, whatever solved them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray

from tsallax.errors import InvalidInput
from tsallax.memory import require_memory
from tsallax.planning.accelerator.functional_sweep import checked_sweep
from tsallax.planning.accelerator.krylov import bicgstab
from tsallax.planning.finite_horizon import FiniteHorizonSolution
from tsallax.planning.forms import Floats, numbers
from tsallax.planning.functional_checks import find_invalid
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.functional_solution import FunctionalSolution
from tsallax.planning.operator import UNIT_ROUNDOFF
from tsallax.planning.policies import ROW_TOLERANCE, refuse_real_actions
from tsallax.planning.precision import double_precision
from tsallax.planning.solution import Solution
from tsallax.regularizer import Regularizer
from tsallax.time_limits import check_deadline
from tsallax.wording import plural

MAX_RELATIVE_ERROR = 1e-6
"""The largest error of an evaluation, relative to a bound on all values."""
REFINEMENTS = 4
"""The number of times that BiCGSTAB is started again from the residual that it left."""
MAX_SWEEPS = 20_000
"""Plain sweeps where BiCGSTAB stalls."""
SHARE_OF_ERROR = 0.1
"""The error of a solution's plain value in that of the solution, where rounding allows it."""
LEAST_ACCURACY = 1e-6
"""The largest residual of an evaluation, relative to the rewards."""
LISTED_BYTES = 48
"""Memory for each action that is listed: its probability in float64, its index, and copies."""


@dataclass(frozen=True, eq=False, repr=False)
class FunctionalEvaluation:
    """The value and return of a policy of a model from functions.

    Attributes:
        value: V_pi(s) of the regularised MDP (of the plain one where no regulariser is given).
        entropy: the causal entropy of the policy, W(pi) or H(pi); 0 without a regulariser.
        expected_return: J, the expected discounted sum of rewards, without entropy.
        regularized_return: J + alpha * entropy = d'V_pi.
        error: a bound on |value - V_pi| in every state.
    """

    mdp: FunctionalMDP
    value: Floats
    entropy: float
    expected_return: float
    regularized_return: float
    error: float
    _visits: Callable[[], Floats] = field(repr=False)

    @cached_property
    def visitation(self) -> Floats:
        """rho_pi(s), the discounted expected number of visits; computed when first asked for."""
        return self._visits()

    def __repr__(self) -> str:
        return (
            f"FunctionalEvaluation(expected_return={self.expected_return:.8g}, "
            f"entropy={self.entropy:.6g}, regularized_return={self.regularized_return:.8g}, "
            f"error<={self.error:.2g})"
        )


def evaluate_functional(
    mdp: FunctionalMDP, policy: ArrayLike | FunctionalSolution, regularizer: Regularizer
) -> FunctionalEvaluation:
    """Value, entropy and return of a policy: actions (S,), a table (S, A) or a solution's."""
    alpha = float(regularizer.alpha)
    with double_precision():
        evaluator = PolicyEvaluator(mdp, policy)
        plain = evaluator.solve(evaluator.reward)
        omega = evaluator.entropy(regularizer)
        collected = evaluator.solve(omega) if alpha else jnp.zeros_like(plain)
        value = plain + alpha * collected
        error = evaluator.error(value, alpha * omega)
        d = jnp.asarray(mdp.initial)
        expected_return, entropy = float(d @ plain), float(d @ collected)
        found = FunctionalEvaluation(
            mdp=mdp,
            value=np.asarray(value),
            entropy=entropy,
            expected_return=expected_return,
            regularized_return=expected_return + alpha * entropy,
            error=error,
            _visits=evaluator.visits,
        )
        largest = evaluator.scale(alpha * omega) / (1.0 - mdp.discount)
    if not error <= MAX_RELATIVE_ERROR * largest:
        raise InvalidInput(
            f"the value of this policy cannot be computed in float64: its error is {error:.2g}; "
            f"a discount below {mdp.discount!r} may help"
        )
    return found


class PlainValue(NamedTuple):
    """V_pi(s) of the plain MDP, a bound on its error, and which states are terminal."""

    value: Floats
    error: float
    terminal: NDArray[np.bool_]


def plain_value(solution: FunctionalSolution) -> PlainValue:
    """What the policy of a solution is worth without entropy, a little closer than its error."""
    with double_precision():
        evaluator = PolicyEvaluator(solution.mdp, solution)
        value = evaluator.solve(evaluator.reward, SHARE_OF_ERROR * solution.error)
        error = evaluator.error(value, jnp.zeros_like(value))
        return PlainValue(np.asarray(value), error, np.asarray(evaluator.terminal))


def functional_gap(solution: FunctionalSolution, plain: PlainValue | None = None) -> Floats:
    """A bound on V*(s) - V_pi(s), both of the plain MDP, for the solution's policy pi.

    V* of the plain MDP is at most that of the regularised one, since no entropy is negative, and so
    at most the upper end of the enclosure; V_pi is evaluated, unless it is given.
    """
    value, error, terminal = plain_value(solution) if plain is None else plain
    gap = solution.upper - value + error
    return np.where(terminal, 0.0, np.nextafter(gap, math.inf))


class PolicyEvaluator:
    """Value, entropy and visitation of a policy of a model from functions, by linear systems."""

    def __init__(self, mdp: FunctionalMDP, policy: ArrayLike | FunctionalSolution) -> None:
        weights, actions = _lists(mdp, policy)
        self._mdp = mdp
        sweep = checked_sweep(mdp, jnp.float64, None, None)
        self._lists = sweep.lists
        self.terminal, _, self._largest = sweep.survey
        _refuse_missing(mdp, actions, self._lists.missing_actions(weights, actions, self.terminal))
        weights = jnp.where(self.terminal[:, None], 0.0, weights)
        self._policy = self._lists.listed(weights, actions)
        self.reward = self._lists.follow(self._policy, jnp.zeros(mdp.n_states))
        if not (bool(jnp.all(jnp.isfinite(self.reward))) and math.isfinite(self._largest)):
            find_invalid(mdp)
            raise InvalidInput("the rewards of this policy overflow float64: scale them down")
        # roundings of a sweep of the policy, and the most that its rows exceed gamma by rounding
        self._terms = sweep.roundings + 2 * self._policy.size + 16
        self._gap = 1.0 - mdp.discount * (1.0 + (self._terms + 64) * UNIT_ROUNDOFF)
        if self._gap <= 0.0:
            raise InvalidInput(f"discount {mdp.discount!r} is too close to 1 for float64")

    def entropy(self, regularizer: Regularizer) -> Array:
        """Omega(pi(s)) of every state."""
        return jnp.where(self.terminal, 0.0, regularizer.entropy(self._policy.weights))

    def scale(self, bonus: Array) -> float:
        """A bound on |V_pi| (1 - gamma)."""
        return self._largest + float(jnp.max(jnp.abs(bonus))) + 1e-300

    def discounted_transition(self, v: Array) -> Array:
        """gamma T_pi v; a time limit ends the computation here."""
        check_deadline()
        return self._lists.discounted_transition(self._policy, v)

    def error(self, v: Array, bonus: Array) -> float:
        """A bound on |v - V_pi| in every state, where V_pi has this bonus in every step."""
        residual = self._lists.follow(self._policy, v) + bonus - v
        return (float(jnp.max(jnp.abs(residual))) + self._rounding(v, bonus)) / self._gap

    def _rounding(self, v: Array, b: Array) -> float:
        """A bound on the rounding of a sweep of the policy."""
        size = float(jnp.max(jnp.abs(v))) + self._largest + 8 * float(jnp.max(jnp.abs(b)))
        return UNIT_ROUNDOFF * self._terms * size

    def solve(self, b: Array, error: float = 0.0) -> Array:
        """x with (I - gamma T_pi) x = b, to within rounding, or an `error` of x that is enough."""
        unit, size = UNIT_ROUNDOFF * self._terms, float(jnp.max(jnp.abs(b)))
        enough = min(error * self._gap, LEAST_ACCURACY * size)

        def rounding(x: Array) -> float:
            return max(unit * (float(jnp.max(jnp.abs(x))) + size), enough)

        return _solved(self.discounted_transition, b, rounding, 0.5 if enough else 1e-3)

    def visits(self) -> Floats:
        """rho_pi' = d' (I - gamma T_pi)^-1."""
        with double_precision():
            d = jnp.asarray(self._mdp.initial)
            transposed = self._lists.transposed(self._policy)
            x = _solved(transposed, d, lambda x: UNIT_ROUNDOFF * float(jnp.max(jnp.abs(x))))
            return np.asarray(jnp.maximum(x, 0.0))


def _solved(
    transition: Callable[[Array], Array],
    b: Array,
    rounding: Callable[[Array], float],
    share: float = 1e-3,
) -> Array:
    """x with x - transition(x) = b, to within rounding or as far as it goes.

    BiCGSTAB ends at a `share` of the rounding.
    """

    def residual_of(x: Array) -> tuple[Array, float]:
        r = b + transition(x) - x
        return r, float(jnp.max(jnp.abs(r)))

    best = jnp.zeros_like(b)
    residual, size = residual_of(best)
    for _ in range(REFINEMENTS):
        if size <= rounding(best):
            return best
        correction, _ = bicgstab(lambda x: x - transition(x), residual, share * rounding(best))
        x = best + correction
        new, new_size = residual_of(x)
        if not new_size < size:
            break
        best, residual, size = x, new, new_size
    for _ in range(MAX_SWEEPS):
        if size <= 2 * rounding(best):
            break
        best = best + residual
        residual, size = residual_of(best)
    return best


def _lists(mdp: FunctionalMDP, policy: Any) -> tuple[Array, Array]:
    """Probabilities (S, K) and actions (S, K) that hold the support of a policy in every state."""
    if isinstance(policy, FunctionalSolution):
        if policy.mdp is not mdp:
            raise InvalidInput("the solution is of another MDP")
        size = policy.greedy.list_size
        what = f"the policy of {plural(mdp.n_states, 'state')} as lists of {plural(size, 'action')}"
        remedy = "lower alpha, so that it uses fewer actions"
        needed = LISTED_BYTES * mdp.n_states * size
        require_memory(needed, what, remedy, jax.local_devices()[0])
        lists = policy.greedy.lists()
        weights = jnp.asarray(np.asarray(lists.weights), jnp.float64)
        total = jnp.sum(weights, axis=-1, keepdims=True)
        actions = jnp.asarray(np.asarray(lists.actions))
        return weights / jnp.where(total > 0.0, total, 1.0), actions
    if isinstance(policy, Solution):
        raise InvalidInput("the solution is of a stored MDP: pass solution.policy")
    if isinstance(policy, FiniteHorizonSolution):
        raise InvalidInput("the solution is of a stored MDP: use model.to_mdp()")
    given = numbers(policy, "policy")
    if given.shape == (mdp.n_states,) and np.issubdtype(given.dtype, np.integer):
        if not ((given >= 0) & (given < mdp.n_actions)).all():
            s = int(np.flatnonzero((given < 0) | (given >= mdp.n_actions))[0])
            raise InvalidInput(f"state {mdp.states.describe(s)} has no action {given[s]}")
        return jnp.ones((mdp.n_states, 1)), jnp.asarray(given[:, None], jnp.int32)
    refuse_real_actions(given, mdp.n_states, mdp.n_pairs)
    if given.shape != (mdp.n_states, mdp.n_actions):
        raise InvalidInput(
            f"a policy of this model has shape ({mdp.n_states}, {mdp.n_actions}), or one integer "
            f"for each state, not {given.shape}"
        )
    return _lists_of_table(mdp, given.astype(np.float64))


def _lists_of_table(mdp: FunctionalMDP, table: Floats) -> tuple[Array, Array]:
    wrong = ~((table >= 0.0) & (table < math.inf))
    if wrong.any():
        s, a = (int(i) for i in np.argwhere(wrong)[0])
        raise InvalidInput(
            f"the policy's probability of action {mdp.actions.describe(a)} in state "
            f"{mdp.states.describe(s)} is {table[s, a]}"
        )
    total = table.sum(1, keepdims=True)
    off = np.where(total[:, 0] == 0.0, 0.0, np.abs(total[:, 0] - 1.0))  # 0 at terminal states
    if off.max() > ROW_TOLERANCE:
        s = int(off.argmax())
        raise InvalidInput(
            f"the policy of state {mdp.states.describe(s)} sums to {total[s, 0]:.8g}, not to 1"
        )
    size = max(int(np.count_nonzero(table, axis=1).max()), 1)
    order = np.argsort(-table, axis=1, kind="stable")[:, :size]
    weights = np.take_along_axis(table / np.where(total > 0.0, total, 1.0), order, 1)
    return jnp.asarray(weights), jnp.asarray(order, jnp.int32)


def _refuse_missing(mdp: FunctionalMDP, actions: Array, found: Array) -> None:
    """Refuse a policy that takes an action that its state lacks, or none in a state that has some.

    `found` is, for each state, the place of such an action in its list, or -1.
    """
    missing = np.asarray(found)
    if not (missing >= 0).any():
        return
    s = int(np.flatnonzero(missing >= 0)[0])
    state, i = mdp.states.describe(s), int(missing[s])
    if i == actions.shape[-1]:
        raise InvalidInput(f"the policy of state {state} sums to 0, not to 1")
    a = int(actions[s, i])
    raise InvalidInput(f"state {state} has no action {mdp.actions.describe(a)}")
