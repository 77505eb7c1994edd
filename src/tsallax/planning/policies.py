"""Reads a policy in any of its accepted forms: a table, one number for each pair, or actions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.planning.forms import Floats, numbers
from tsallax.planning.mdp import MDP
from tsallax.planning.names import (
    Index,
    has_labels,
    in_order_of_names,
    in_order_of_pairs,
    names_in,
)

ROW_TOLERANCE = 1e-6
"""The largest distance from one of the sum of the probabilities of a state."""


def read_policy(mdp: MDP, policy: ArrayLike | Mapping[Any, Any]) -> Floats:
    """The probability of every pair.

    From a table (S, A), a vector over pairs, actions (S,) by index or name, or a dict of states
    with an action or a dict of actions and their probabilities.
    """
    if isinstance(policy, Mapping):
        return _normalized(mdp, _from_mapping(mdp, policy))
    states, actions = _indices(mdp)
    real = getattr(getattr(policy, "dtype", None), "kind", "") == "f"
    first = Index("pair", mdp.n_pairs, None) if real else states
    policy = _with_terminal_states(mdp, policy)
    pairs = mdp.state_of, mdp.action_of
    policy = in_order_of_pairs(policy, "the policy", states, actions, pairs)
    ordered = in_order_of_names(policy, "the policy", (first,), (states, actions))
    by_name = names_in(ordered)
    if by_name is not None:
        return _deterministic(mdp, _actions_by_name(mdp, by_name))
    given = numbers(ordered, "policy")
    if given.shape == (mdp.n_states,) and np.issubdtype(given.dtype, np.integer):
        return _deterministic(mdp, given)
    refuse_real_actions(given, mdp.n_states, mdp.n_pairs)
    table = given.astype(np.float64)
    if table.shape == (mdp.n_states, mdp.n_actions):
        pi = mdp.flatten(table)
        if not mdp.rectangular:
            _refuse_missing(mdp, np.nan_to_num(table) if has_labels(policy) else table)
    elif table.shape == (mdp.n_pairs,):
        pi = table
    else:
        raise InvalidInput(
            f"a policy of this MDP has shape ({mdp.n_states}, {mdp.n_actions}), one number for "
            f"each of {mdp.n_pairs} pairs, or one integer for each state, not {table.shape}"
            + "; with a policy for each step, pass lambda t: policy[t]"
            * (table.ndim == 3)
        )
    return _normalized(mdp, pi)


def _with_terminal_states(mdp: MDP, policy: Any) -> Any:
    """A DataFrame with rows for terminal states and columns for actions that no state has.

    A pivot of `Solution.to_frame` lacks them, and has NaN where a state lacks the action.
    Everything else is returned as it is.
    """
    if not has_labels(policy) or len(policy.axes) != 2:
        return policy
    if {"state", "action", "probability"} <= set(policy.axes[-1]):
        raise InvalidInput(
            "a policy as a table of pandas has states as rows and actions as columns: pass "
            'table.pivot(index="state", columns="action", values="probability")'
        )
    used = np.zeros(mdp.n_actions, bool)
    used[mdp.action_of] = True
    completed: list[list[Any]] = []
    for labels, names, idle in zip(
        policy.axes, (mdp.state_names, mdp.action_names), (mdp.terminal, ~used), strict=True
    ):
        every = range(len(idle)) if names is None else names
        others = {every[i] for i in np.flatnonzero(~idle)}
        given = list(labels)
        lacking = labels.is_unique and others <= set(given) < set(every)
        completed.append(list(every) if lacking else given)
    if completed == [list(labels) for labels in policy.axes]:
        return policy
    return policy.reindex(index=completed[0], columns=completed[1])


def refuse_real_actions(policy: NDArray[Any], n_states: int, n_pairs: int) -> None:
    """Refuse one real number for each state, which is no index of an action."""
    if policy.shape == (n_states,) and n_states != n_pairs:
        raise InvalidInput(
            f"a policy with one action for each state has integers, not {policy.dtype}: "
            "pass policy.astype(int)"
        )


def _normalized(mdp: MDP, pi: Floats) -> Floats:
    """Probabilities of every pair, scaled to sum to one, or refused."""
    wrong = ~((pi >= 0.0) & (pi < math.inf))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise InvalidInput(
            f"the policy's probability of {_action(mdp, int(mdp.action_of[i]))} in "
            f"{_state(mdp, int(mdp.state_of[i]))} is {pi[i]}"
        )
    total = sum_by_state(mdp, pi)
    off = np.where(mdp.terminal, 0.0, np.abs(total - 1.0))
    if off.max() > ROW_TOLERANCE:
        s = int(off.argmax())
        raise InvalidInput(f"the policy of {_state(mdp, s)} sums to {total[s]:.8g}, not to 1")
    return np.asarray(pi / total[mdp.state_of], np.float64)


def _from_mapping(mdp: MDP, policy: Mapping[Any, Any]) -> Floats:
    """The probability of every pair, from {state: action} or {state: {action: probability}}."""
    states, actions = _indices(mdp)
    pi, given = np.zeros(mdp.n_pairs), np.zeros(mdp.n_states, bool)
    for key, choice in policy.items():
        s = states.find(key, "the policy")
        if given[s]:
            raise InvalidInput(f"the policy has {_state(mdp, s)} twice, by index and by name")
        given[s] = True
        if mdp.terminal[s]:
            continue
        where = f"the policy of {_state(mdp, s)}"
        if not isinstance(choice, Mapping):
            choice = {actions.find(choice, where): 1.0}
        for action, chance in choice.items():
            if not checks.is_number(chance):
                raise InvalidInput(f"{where} must be an action or a dict of probabilities")
            pi[_pair(mdp, s, actions.find(action, where))] += float(chance)
    missing = np.flatnonzero(~given & ~mdp.terminal)
    if missing.size:
        raise InvalidInput(f"the policy has no action for {_state(mdp, int(missing[0]))}")
    return pi


def _actions_by_name(mdp: MDP, policy: list[Any]) -> NDArray[np.int64]:
    """The action of each state, from a list of names; entries of terminal states are ignored."""
    if len(policy) != mdp.n_states:
        raise InvalidInput(
            f"a policy of actions has one for each of {mdp.n_states} states, not {len(policy)}"
        )
    _, actions = _indices(mdp)
    found = np.zeros(mdp.n_states, np.int64)
    for s in np.flatnonzero(~mdp.terminal).tolist():
        found[s] = actions.find(policy[s], f"the policy of {_state(mdp, s)}")
    return found


def _indices(mdp: MDP) -> tuple[Index, Index]:
    """The states and the actions of an MDP, by index and by name."""
    states = Index("state", mdp.n_states, mdp.state_names)
    return states, Index("action", mdp.n_actions, mdp.action_names)


def _pair(mdp: MDP, s: int, a: int) -> int:
    """The number of the pair of a state and an action."""
    begin, end = int(mdp.pointer[s]), int(mdp.pointer[s + 1])
    i = begin + int(np.searchsorted(mdp.action_of[begin:end], a))
    if i == end or mdp.action_of[i] != a:
        raise InvalidInput(f"{_state(mdp, s)} has no {_action(mdp, a)}")
    return i


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
        raise InvalidInput(f"{_state(mdp, s)} has no {_action(mdp, int(actions[s]))}")
    return pi


def _state(mdp: MDP, s: int) -> str:
    return f"state {s}" if mdp.state_names is None else f"state {mdp.state_names[s]!r}"


def _action(mdp: MDP, a: int) -> str:
    known = mdp.action_names is not None and 0 <= a < mdp.n_actions
    return f"action {mdp.action_names[a]!r}" if known else f"action {a}"  # type: ignore[index]


def sum_by_state(mdp: MDP, per_pair: Floats) -> Floats:
    """The sum over the pairs of each state."""
    total = np.bincount(mdp.state_of, weights=per_pair, minlength=mdp.n_states)
    return total.astype(np.float64, copy=False)
