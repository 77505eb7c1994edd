"""Checks the numbers of an MDP, pair by pair: probabilities, rewards, initial distribution."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from tsallax.errors import InvalidInput
from tsallax.planning.forms import (
    Floats,
    Layout,
    actions_first_hint,
    as_csr,
    frozen,
    interleave,
    matrices_of,
    named,
    numbers,
)
from tsallax.planning.names import Ints, in_order_of_names

NEAR_ONE = 1e-6
"""Sums of probabilities this close to one are rescaled: float32 accuracy."""

ULPS = 16 * float(np.finfo(np.float64).eps)
"""Sums of probabilities this close to one are taken to be one."""

NO_OUTCOME_HINT = (
    "; leave out an action that is not available with pairs=, "
    "list terminal states in terminal=, or give termination="
)

TERMINATION_HINT = "; where they hold if the episode goes on, multiply them by 1 - termination"
RESCALE_HINT = "; divide them by their sum"
REST_HINT = f"{RESCALE_HINT}, or give termination= where the rest ends the episode"

NOT_AVAILABLE_HINT = "; leave out an action that is not available with pairs="
PAIRS_EXAMPLE = (
    ", such as pairs=numpy.argwhere(rewards > -numpy.inf), "
    "with the transitions and rewards of these pairs"
)

BLOCK = 1 << 16
"""Number of rows checked at once, to keep temporary arrays small."""


def per_pair(values: NDArray[Any], layout: Layout) -> Floats | None:
    """Read numbers given per pair or as a table (S, A); None where the shape is neither.

    The result is a copy unless the caller's array is read-only.
    """
    if values.shape == (layout.n_given,):
        flat = values
    elif values.shape == (layout.n_states, layout.n_actions):
        if not layout.rectangular:
            return values[layout.state, layout.action].astype(np.float64)
        flat = values.reshape(-1)
    else:
        return None
    chosen = flat if layout.order is None else flat[layout.order]
    owned = layout.order is not None or _is_immutable(values)
    return np.ascontiguousarray(chosen.astype(np.float64, copy=not owned))


def _is_immutable(values: NDArray[Any]) -> bool:
    """Whether neither an array nor any array that it is a view of is writeable."""
    below: Any = values
    while isinstance(below, np.ndarray):
        if below.flags.writeable:
            return False
        below = below.base
    return True


def read_termination(termination: ArrayLike | None, layout: Layout) -> Floats | None:
    """Read the probability of each pair that the episode ends on it."""
    if termination is None:
        return None
    table = (layout.states, layout.actions)
    termination = layout.in_order(termination, "termination")
    ordered = in_order_of_names(termination, "termination", table, (layout.rows,))
    given = numbers(ordered, "termination")
    result = per_pair(given, layout)
    if result is None:
        raise InvalidInput(
            f"termination must have shape ({layout.n_states}, {layout.n_actions}) or "
            f"({layout.n_given},), not {given.shape}"
        )
    bad = np.flatnonzero(~((result >= 0) & (result <= 1)))
    if bad.size:
        at = int(bad[0])
        raise InvalidInput(
            f"termination of {layout.place(at)} is {float(result[at])!r}, not a probability"
        )
    return np.array(result) if result.any() else None


def distributions(
    csr: csr_array, shared: bool, termination: Floats | None, layout: Layout
) -> tuple[csr_array, Floats | None]:
    """Bring T(·|s,a) into canonical form, each row with its termination summing to one."""
    if layout.order is not None:
        csr, shared = csr[layout.order], False
    low, high = (csr.data.min(), csr.data.max()) if csr.nnz else (0.0, 0.0)
    if not (low >= 0 and high < np.inf):
        at = int(np.flatnonzero(~((csr.data >= 0) & (csr.data < np.inf)))[0])
        row = int(np.searchsorted(csr.indptr, at, side="right")) - 1
        successor = named("state", int(csr.indices[at]), layout.state_names)
        kind = "negative" if csr.data[at] < 0 else "not finite"
        raise InvalidInput(
            f"probability from {layout.place(row)} to {successor} is {kind}: "
            f"{float(csr.data[at])!r}"
        )
    if low == 0 or not csr.has_canonical_format:
        csr, shared = csr.copy() if shared else csr, False
        csr.sum_duplicates()
        csr.eliminate_zeros()
    for first in range(0, csr.shape[0], BLOCK):
        rows = slice(first, first + BLOCK)
        sums = row_sums(csr.data, csr.indptr[first : first + BLOCK + 1])
        if termination is not None:
            sums += termination[rows]
        off = np.abs(sums - 1.0)
        if off.max() > NEAR_ONE:
            at = int(np.argmax(off > NEAR_ONE))
            what = "probabilities" + (" and termination" if termination is not None else "")
            hint = NO_OUTCOME_HINT if sums[at] == 0 else RESCALE_HINT if sums[at] > 1 else REST_HINT
            if (
                termination is not None
                and abs(sums[at] - termination[first + at] - 1.0) <= NEAR_ONE
            ):
                hint = TERMINATION_HINT
            hint = _other_order_hint(csr, layout) or hint
            place = layout.place(first + at)
            raise InvalidInput(f"{what} of {place} sum to {sums[at]:.12g}, not to 1{hint}")
        if off.max() > ULPS:
            if shared:
                csr.data, shared = csr.data.copy(), False
            sums[off <= ULPS] = 1.0
            ends = csr.indptr[first : first + BLOCK + 1]
            csr.data[ends[0] : ends[-1]] /= np.repeat(sums, np.diff(ends))
            if termination is not None:
                termination[rows] /= sums
    csr.data, csr.indices, csr.indptr = map(frozen, (csr.data, csr.indices, csr.indptr))
    return csr, termination


def _other_order_hint(csr: csr_array, layout: Layout) -> str:
    """What to do where the probabilities sum to one over another axis than that of s'."""
    if not layout.rectangular or layout.order is not None:
        return ""
    states, actions = layout.n_states, layout.n_actions
    row = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))

    def sum_to_one(group: NDArray[Any], n_groups: int) -> bool:
        sums = np.bincount(group * states + csr.indices, csr.data, n_groups * states)
        return bool(np.abs(sums - 1.0).max() <= NEAR_ONE)

    if sum_to_one(row % actions, actions):
        return "; summed over the other state they are 1: transpose the matrix of each action"
    if actions == states and sum_to_one(row // actions, states):
        return (
            "; summed over the second axis they are 1: pass numpy.transpose(transitions, (0, 2, 1))"
        )
    return ""


def row_sums(data: Floats, indptr: Ints) -> Floats:
    """Sum each row of a CSR pairwise."""
    sums = np.zeros(len(indptr) - 1)
    filled = indptr[1:] > indptr[:-1]
    starts = indptr[:-1][filled]
    if starts.size:
        sums[filled] = np.add.reduceat(data[: indptr[-1]], starts)
    return sums


def _warn_of_ignored_rewards(
    rewards: NDArray[Any], layout: Layout, terminal: NDArray[np.bool_]
) -> None:
    """Warn where a table of rewards pays more or less in a terminal state than in all others.

    Nothing is earned there: a reward for reaching a goal is often meant.
    """
    if rewards.shape != (layout.n_states, layout.n_actions) or not terminal.any():
        return
    paid, ignored = rewards[~terminal], rewards[terminal]
    unusual = np.isfinite(ignored) & (ignored != 0.0)
    unusual &= (ignored < paid.min()) | (ignored > paid.max())
    if unusual.any():
        i, action = (int(x) for x in np.argwhere(unusual)[0])
        state = int(np.flatnonzero(terminal)[i])
        where = named("state", state, layout.state_names)
        warnings.warn(
            f"the reward {float(rewards[state, action])} of terminal {where} is ignored: give it "
            "to the pairs or transitions that lead there",
            stacklevel=4,
        )


def read_rewards(
    rewards: Any, csr: csr_array, ends: bool, layout: Layout, terminal: NDArray[np.bool_]
) -> Floats:
    """Read r(s,a), as it is or as the expectation of r(s,a,s') under T(s'|s,a)."""
    states, actions = layout.n_states, layout.n_actions
    matrices = matrices_of(rewards, "rewards", layout.states)
    if matrices is not None and len(matrices[0].shape) == 2:
        if not layout.rectangular:
            raise InvalidInput("rewards with pairs= must not be a list of matrices")
        if len(matrices) != actions or tuple(matrices[0].shape) != (states, states):
            raise InvalidInput(
                f"rewards as a list must hold {actions} matrices of shape ({states}, {states}), "
                f"not {len(matrices)} of shape {tuple(matrices[0].shape)}"
            )
        rewards = interleave(matrices, "rewards")
    elif not issparse(rewards):
        table, given = (layout.states, layout.actions), (layout.rows,)
        rewards = layout.in_order(rewards, "rewards")
        rewards = in_order_of_names(rewards, "rewards", table, given, (*given, layout.states))
        rewards = numbers(rewards, "rewards")
    if not isinstance(rewards, np.ndarray) and tuple(rewards.shape) == (states, actions):
        rewards = rewards.toarray()
    flat = per_pair(rewards, layout) if isinstance(rewards, np.ndarray) else None
    transitional = tuple(rewards.shape) == (layout.n_given, states) or (
        layout.rectangular and tuple(rewards.shape) == (states, actions, states)
    )
    if flat is not None and transitional and not layout.rectangular and states > 1:
        raise InvalidInput(
            f"rewards of shape {rewards.shape} could be a table (S, A) or one row for each pair "
            f"(N, S); give one reward for each pair, shape ({layout.n_given},)"
        )
    if flat is not None:
        _warn_of_ignored_rewards(rewards, layout, terminal)
    else:
        if not transitional:
            raise InvalidInput(_reward_shape(tuple(rewards.shape), layout))
        if ends:
            raise InvalidInput(
                "rewards of each transition do not say what a termination earns; "
                f"with termination= give rewards of shape ({states}, {actions}) or "
                f"({layout.n_given},)"
            )
        flat = _expected(rewards, csr, layout)
    bad = np.flatnonzero(~np.isfinite(flat))
    if bad.size:
        at = int(bad[0])
        hint = ""
        if flat[at] == -np.inf:
            hint = NOT_AVAILABLE_HINT + PAIRS_EXAMPLE * layout.rectangular
        raise InvalidInput(f"reward of {layout.place(at)} is not finite: {flat[at]}{hint}")
    return flat


def _reward_shape(shape: tuple[int, ...], layout: Layout) -> str:
    states, actions, given = layout.n_states, layout.n_actions, layout.n_given
    if shape == (states,):
        return (
            f"rewards of shape ({states},) do not say whether a state pays when it is left or "
            f"entered; give shape ({states}, {actions}) or ({given},)"
        )
    full = f"({states}, {actions}, {states})" if layout.rectangular else f"({given}, {states})"
    hint = ""
    if layout.rectangular and shape == (actions, states, states):
        hint = actions_first_hint("rewards")
    elif shape == (actions, states):
        hint = "; it looks like (A, S): pass rewards.T"
    return f"rewards must have shape ({states}, {actions}), ({given},) or {full}, not {shape}{hint}"


def _expected(rewards: Any, csr: csr_array, layout: Layout) -> Floats:
    """Compute Σ_s' T(s'|s,a) r(s,a,s') for each pair, all r(s,a,s') being finite."""
    source = np.arange(layout.n_given) if layout.order is None else layout.order
    if issparse(rewards):
        table = as_csr(rewards, "rewards")
        table = table if layout.order is None else table[source]
        unbounded = np.flatnonzero(~np.isfinite(table.data))
        forbids = unbounded.size > 0 and table.data[unbounded[0]] == -np.inf
        at = np.searchsorted(table.indptr, unbounded, side="right") - 1
        _refuse_not_finite(at, layout, forbids)
        return np.asarray(csr.multiply(table).sum(axis=1), np.float64).ravel()
    rows = rewards.reshape(layout.n_given, layout.n_states)
    least = rows.min(axis=1)
    finite = np.isfinite(least) & np.isfinite(rows.max(axis=1))
    at = np.flatnonzero(~finite[source])
    _refuse_not_finite(at, layout, at.size > 0 and least[source[at[0]]] == -np.inf)
    taken = rows[np.repeat(source, np.diff(csr.indptr)), csr.indices].astype(np.float64)
    taken *= csr.data
    return row_sums(taken, csr.indptr)


def _refuse_not_finite(pairs: NDArray[np.int64], layout: Layout, forbids: bool) -> None:
    if pairs.size:
        hint = NOT_AVAILABLE_HINT if forbids else ""
        raise InvalidInput(f"a reward of {layout.place(int(pairs[0]))} is not finite{hint}")


def _by_state(chances: Mapping[Any, Any], layout: Layout) -> NDArray[Any]:
    """Probabilities given for some states, by index or name, as an array (S,)."""
    result = np.zeros(layout.n_states)
    at = layout.states.find_all(chances, "initial")
    if len(np.unique(at)) < len(at):
        raise InvalidInput("initial holds a state twice, by its index and by its name")
    given = numbers(list(chances.values()), "initial")
    if given.shape != at.shape:
        raise InvalidInput("initial must be one probability for each state")
    result[at] = given
    return result


def read_initial(
    initial: ArrayLike | Mapping[Any, float] | None, layout: Layout, terminal: NDArray[np.bool_]
) -> Floats:
    """Read d(s): a distribution, one state, or uniform over states with actions."""
    if initial is None:
        return ~terminal / float(np.count_nonzero(~terminal))
    if isinstance(initial, str):
        initial = {initial: 1.0}
    initial = in_order_of_names(initial, "initial", (layout.states,))
    given = (
        _by_state(initial, layout) if isinstance(initial, Mapping) else numbers(initial, "initial")
    )
    if given.ndim == 0 and given.dtype.kind in "iu":
        given = _by_state({int(given): 1.0}, layout)
    if given.shape != (layout.n_states,):
        raise InvalidInput(f"initial must have shape ({layout.n_states},), not {given.shape}")
    result = given.astype(np.float64)
    bad = np.flatnonzero(~((result >= 0) & (result < np.inf)))
    if bad.size:
        at = int(bad[0])
        raise InvalidInput(
            f"initial probability of {named('state', at, layout.state_names)} is "
            f"{float(result[at])!r}"
        )
    total = float(result.sum())
    if abs(total - 1.0) > NEAR_ONE:
        raise InvalidInput(f"initial probabilities sum to {total:.12g}, not to 1{RESCALE_HINT}")
    return result / total if abs(total - 1.0) > ULPS else result
