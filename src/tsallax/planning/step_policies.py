"""Reads what may act in an MDP at every step: a solution, a policy, or a function of the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tsallax.errors import InvalidInput
from tsallax.planning.finite_horizon import FiniteHorizonSolution
from tsallax.planning.forms import Floats
from tsallax.planning.functional_solution import FunctionalSolution
from tsallax.planning.mdp import MDP
from tsallax.planning.policies import read_policy
from tsallax.planning.solution import Solution

PolicyOfStep = Callable[[int], Floats]
"""The probability of every pair at the step t = 0, 1, ..."""


def read_stationary(mdp: MDP, policy: Any) -> Floats:
    """The probability of every pair, from a `Solution` of this MDP or any form of a policy."""
    if isinstance(policy, Solution):
        require_same_mdp(mdp, policy.mdp)
        return policy.pair_policy
    if isinstance(policy, FiniteHorizonSolution):
        raise InvalidInput(f"this policy has {policy.horizon} steps", add=("horizon", 10))
    if isinstance(policy, FunctionalSolution):
        raise InvalidInput("the solution is of a model from functions: pass solution.policy")
    if callable(policy):
        raise InvalidInput("a policy that depends on the step needs a horizon", add=("horizon", 10))
    return read_policy(mdp, policy)


def read_policies(mdp: MDP, policy: Any, horizon: int) -> PolicyOfStep:
    """The policy of every step below `horizon`.

    Given by a `FiniteHorizonSolution` of this MDP that is long enough, by a function of the step,
    or by what `read_stationary` reads, which is then the policy of all steps.
    """
    if isinstance(policy, FiniteHorizonSolution):
        require_same_mdp(mdp, policy.mdp)
        if horizon > policy.horizon:
            raise InvalidInput(f"the policy has {policy.horizon} steps, not {horizon}")
        return policy.pair_policy_at
    if callable(policy):
        return lambda step: _read_step(mdp, policy(step), step)
    same = read_stationary(mdp, policy)
    return lambda step: same


def _read_step(mdp: MDP, policy: Any, step: int) -> Floats:
    try:
        return read_policy(mdp, policy)
    except InvalidInput as error:
        raise error.of(f"step {step}") from None


def require_same_mdp(mdp: MDP, other: MDP) -> None:
    """Refuse a solution of an MDP with other transitions, rewards or discount."""
    if mdp is other:
        return
    a, b = mdp.transitions, other.transitions
    arrays = [
        (a.indptr, b.indptr), (a.indices, b.indices), (a.data, b.data),
        (mdp.rewards, other.rewards), (mdp.pointer, other.pointer),
    ]  # fmt: skip
    if mdp.discount != other.discount or not all(np.array_equal(x, y) for x, y in arrays):
        raise InvalidInput(
            "the solution is of another MDP: pass solution.policy for its policy in this one"
        )
