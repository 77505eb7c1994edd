"""Reads a policy in any of its accepted forms: a table, one number for each pair, or actions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax.errors import InvalidInput
from tsallax.planning.forms import numbers
from tsallax.planning.mdp import MDP

Floats = NDArray[np.float64]

ROW_TOLERANCE = 1e-6
"""How far the probabilities of a state may be from summing to one."""


def read_policy(mdp: MDP, policy: ArrayLike) -> Floats:
    """The probability of every pair, from a table (S, A), a vector over pairs, or actions (S,)."""
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
    total = sum_by_state(mdp, pi)
    off = np.where(mdp.terminal, 0.0, np.abs(total - 1.0))
    if off.max() > ROW_TOLERANCE:
        s = int(off.argmax())
        raise InvalidInput(f"the policy of {_state(mdp, s)} sums to {total[s]:.8g}, not to 1")
    return np.asarray(pi / total[mdp.state_of], np.float64)


def _refuse_missing(mdp: MDP, table: Floats) -> None:
    """Refuse a table with an entry for an action that its state lacks."""
    extra = table != 0.0
    extra[mdp.state_of, mdp.action_of] = False
    extra[mdp.terminal] = False
    if extra.any():
        s, a = (int(i) for i in np.argwhere(extra)[0])
        raise InvalidInput(f"the policy gives {_state(mdp, s)} the action {a}, which it lacks")


def _deterministic(mdp: MDP, actions: NDArray[np.integer]) -> Floats:
    """The policy that takes one action in each state."""
    pi: Floats = np.where(mdp.action_of == actions[mdp.state_of], 1.0, 0.0)
    missing = (sum_by_state(mdp, pi) == 0.0) & ~mdp.terminal
    if missing.any():
        s = int(np.flatnonzero(missing)[0])
        raise InvalidInput(f"{_state(mdp, s)} has no action {int(actions[s])}")
    return pi


def _state(mdp: MDP, s: int) -> str:
    return f"state {s}" if mdp.state_names is None else f"state {mdp.state_names[s]!r}"


def sum_by_state(mdp: MDP, per_pair: Floats) -> Floats:
    """The sum over the pairs of each state."""
    total = np.bincount(mdp.state_of, weights=per_pair, minlength=mdp.n_states)
    return total.astype(np.float64, copy=False)
