"""Reads every accepted form of an MDP into one row for each state-action pair.

Only shapes, pairs and names are checked here; `tsallax.planning.validation` checks the numbers
afterwards, when each row has its state and action, so that every error can name them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.planning.names import (
    Index,
    Ints,
    has_labels,
    in_order_of_names,
    in_order_of_pairs,
    names_in,
)

Floats = NDArray[np.float64]

FORMS = (
    "an array of shape (S, A, S), a sparse matrix of shape (S*A, S), "
    "a list of A matrices of shape (S, S), or with pairs= a matrix of shape (N, S)"
)


@dataclass(frozen=True)
class Layout:
    """The state and action of every pair, and where its row lies in the input."""

    n_states: int
    n_actions: int
    n_given: int
    state: NDArray[np.int32]
    action: NDArray[np.int32]
    order: NDArray[np.int64] | None
    rectangular: bool
    given_pairs: NDArray[Any] | None
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None

    def with_names(self, states: Index, action_names: Sequence[str] | None) -> Layout:
        """The same layout with names for states and actions, which error messages use."""
        count = self.n_actions
        if not self.rectangular and isinstance(action_names, list | tuple):
            count = max(count, len(action_names))  # actions that no state has may have names
        actions = read_names(action_names, "action", count)
        return replace(self, n_actions=count, state_names=states.names, action_names=actions)

    @property
    def states(self) -> Index:
        """The states by index and by name."""
        return Index("state", self.n_states, self.state_names)

    @property
    def actions(self) -> Index:
        """The actions by index and by name."""
        return Index("action", self.n_actions, self.action_names)

    @property
    def rows(self) -> Index:
        """The given pairs: where every state has one, the same in all, they are the states."""
        if self.rectangular and self.n_actions == 1:
            return self.states
        return Index("pair", self.n_given, None)

    def in_order(self, values: Any, where: str) -> Any:
        """What has a row for each given pair, in their order: see `in_order_of_pairs`."""
        if not has_labels(values):
            return values
        if self.given_pairs is None:
            state, action = np.divmod(np.arange(self.n_given), self.n_actions)
        else:
            state, action = self.given_pairs.T
        return in_order_of_pairs(values, where, self.states, self.actions, (state, action))

    def place(self, pair: int) -> str:
        """The state and the action of a pair as text for an error message."""
        state, action = int(self.state[pair]), int(self.action[pair])
        where = named("state", state, self.state_names)
        return f"{where}, {named('action', action, self.action_names)}"


def named(kind: str, index: int, names: tuple[str, ...] | None) -> str:
    """An index as text for an error message, with its name where it has one."""
    return f"{kind} {index}" if names is None else f"{kind} {index} ({names[index]!r})"


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of an array; the array itself stays writeable."""
    view = array.view()
    view.flags.writeable = False
    return view


def numbers(values: ArrayLike, what: str) -> NDArray[Any]:
    """Real numbers as an array of their own type."""
    refuse_masked(values, what)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInput(f"{what} must be a regular array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        hint = _object_hint(array, what) if array.dtype == object else ""
        raise InvalidInput(f"{what} must be real numbers, not of type {array.dtype}{hint}")
    return array


def refuse_masked(values: Any, what: str) -> None:
    """Refuse a masked array with masked entries, whose numbers would be used."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidInput(
            f"{what} has masked entries: pass {what}.filled(...); an action that is not available "
            "is left out with pairs="
        )


def _object_hint(array: NDArray[Any], what: str) -> str:
    """What an array of Python objects holds that is no number, or how to convert it."""
    for place, value in np.ndenumerate(array):
        if not checks.is_number(value):
            where = f"[{', '.join(map(str, place))}]"
            return f"; {what}{where} is {value!r}" if place else ""
    return f": pass {what}.astype(float)"


def read_value(
    name: str, value: ArrayLike, n_states: int, names: tuple[str, ...] | None = None
) -> Floats:
    """A finite number for every state from the caller, as a copy; `name` is that of the argument.

    `names` are those of the states.
    """
    value = in_order_of_names(value, name, (Index("state", n_states, names),))
    try:
        v = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise InvalidInput(f"{name} is an array of numbers, not {kind}") from None
    if v.shape != (n_states,):
        raise InvalidInput(f"{name} must have shape ({n_states},), got {v.shape}")
    wrong = np.flatnonzero(~np.isfinite(v))
    if len(wrong):
        place = named("state", int(wrong[0]), names)
        raise InvalidInput(f"{name} of {place} is {v[wrong[0]]}: it must be finite")
    return v


def read_names(names: Sequence[str] | None, kind: str, count: int) -> tuple[str, ...] | None:
    """Read one distinct name for each of the states or actions."""
    if names is None:
        return None
    if isinstance(names, str):
        raise InvalidInput(f"{kind}_names must be a list of names, not one string")
    try:
        result = tuple(names)
    except TypeError:
        raise InvalidInput(f"{kind}_names must be a list of names, not {names!r}") from None
    for name in result:
        if not isinstance(name, str):
            hint = f"pass [str(name) for name in {kind}_names]"
            raise InvalidInput(f"{kind}_names must be strings, not {name!r}: {hint}")
        if name.endswith("\0"):
            raise InvalidInput(f"{kind}_names: {name!r} ends in \\0, which a file would not keep")
    if len(result) != count:
        raise InvalidInput(f"{kind}_names has {len(result)} names for {count} {kind}s")
    if len(set(result)) != count:
        again, _ = Counter(result).most_common(1)[0]
        raise InvalidInput(f"{kind}_names holds {again!r} twice")
    return tuple(str(name) for name in result)


def read_terminal(terminal: Any, states: Index) -> NDArray[np.bool_]:
    """Read the terminal states, given by index, by name or as a mask, as a mask."""
    n_states = states.count
    mask = np.zeros(n_states, bool)
    if terminal is None:
        return mask
    if has_labels(terminal) and np.asarray(terminal).dtype == bool:
        terminal = in_order_of_names(terminal, "terminal", (states,))
    by_name = [terminal] if isinstance(terminal, str) else names_in(terminal)
    if by_name is not None:
        mask[states.find_all(by_name, "terminal")] = True
        return mask
    if isinstance(terminal, Set):
        terminal = list(terminal)
    given = np.atleast_1d(numbers(terminal, "terminal"))
    if given.dtype == bool:
        if given.shape != (n_states,):
            raise InvalidInput(
                f"terminal as a mask must have shape ({n_states},), not {given.shape}"
            )
        return given.copy()
    if given.size == 0:
        return mask
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise InvalidInput("terminal must be a list of state indices or a boolean mask")
    if given.min() < 0 or given.max() >= n_states:
        bad = int(given.min() if given.min() < 0 else given.max())
        raise InvalidInput(f"terminal names state {bad}, not 0 to {n_states - 1}")
    times = np.bincount(given)
    if times.max() > 1:
        problem = f"terminal names state {int(times.argmax())} twice"
        is_mask = given.shape == (n_states,) and len(times) <= 2
        raise InvalidInput(
            problem + is_mask * ": pass numpy.array(terminal, bool), if it is a mask"
        )
    mask[given] = True
    return mask


def read_rows(
    transitions: Any, pairs: ArrayLike | None, state_names: Sequence[str] | None = None
) -> tuple[csr_array, int, bool]:
    """Read transitions as a CSR with one row per given pair.

    Returns the matrix, the number of actions (0 where `pairs` determines it) and whether the
    matrix may share its arrays with the caller.
    """
    states = _columns(transitions, state_names)
    matrices = matrices_of(transitions, "transitions", states) if pairs is None else None
    if matrices is not None:
        return interleave(matrices, "transitions"), len(matrices), False
    if states is not None:
        rows = Index("pair", len(transitions), None)
        known = [(rows, states)] if pairs is not None else [(states, states), (rows, states)]
        transitions = in_order_of_names(transitions, "transitions", *known)
    if not issparse(transitions):
        transitions = numbers(transitions, "transitions")
    shape = tuple(transitions.shape)
    if pairs is not None:
        if len(shape) != 2:
            raise InvalidInput(
                f"transitions with pairs= must be a matrix of shape (N, S), not {shape}"
            )
        actions = 0
    elif len(shape) == 3:
        if shape[0] != shape[2]:
            raise InvalidInput(
                f"transitions as an array must have shape (S, A, S), not {shape}"
                + actions_first_hint("transitions") * (shape[1] == shape[2])
                + actions_last_hint("transitions") * (shape[0] == shape[1])
            )
        actions = shape[1]
        transitions = transitions.reshape(shape[0] * shape[1], shape[2])
    elif len(shape) == 2:
        if shape[1] == 0 or shape[0] % shape[1]:
            raise InvalidInput(
                f"transitions as one matrix must have shape (S*A, S), not {shape}; "
                "where states differ in their actions, give pairs="
            )
        actions = shape[0] // shape[1]
    else:
        raise InvalidInput(f"transitions must be {FORMS}, not of shape {shape}")
    if transitions.shape[1] == 0 or transitions.shape[0] == 0:
        raise InvalidInput(f"transitions of shape {shape} hold no state-action pair")
    csr = as_csr(transitions, "transitions")
    return csr, actions, _shares_memory(csr, transitions)


def refuse_exchanged(transitions: Any, rewards: Any) -> None:
    """Refuse rewards in the place of transitions, as `DiscreteDP` of QuantEcon has them."""
    first, second = (tuple(getattr(x, "shape", ())) for x in (transitions, rewards))
    if first and first == second[:-1] and (len(first) == 1 or second[0] == second[-1] > 1):
        raise InvalidInput(
            f"transitions of shape {first} and rewards of shape {second} look exchanged: "
            "transitions come first, as in MDP(transitions, rewards, discount)"
        )


def actions_first_hint(what: str) -> str:
    """How to pass an array (A, S, S)."""
    return (
        f"; it looks like (A, S, S), as for pymdptoolbox: pass numpy.transpose({what}, (1, 0, 2))"
    )


def actions_last_hint(what: str) -> str:
    """How to pass an array (S, S, A)."""
    return f"; it looks like (S, S, A): pass numpy.transpose({what}, (0, 2, 1))"


def _shares_memory(csr: csr_array, given: Any) -> bool:
    """Whether the arrays of a CSR may be those of the caller's matrix."""
    names = ("data", "indices", "indptr")
    theirs = [getattr(given, name, None) for name in names] if issparse(given) else []
    return any(
        isinstance(array, np.ndarray) and np.may_share_memory(array, getattr(csr, name))
        for name, array in zip(names, theirs)
    )


def matrices_of(form: Any, what: str, states: Index | None) -> list[Any] | None:
    """The matrices of a list with one for each action; None for every other form.

    `states` are those of rows and columns, for matrices with labels.
    """
    if isinstance(form, list | tuple) and len(form) and all(hasattr(m, "shape") for m in form):
        if states is not None:
            form = [in_order_of_names(m, what, (states, states)) for m in form]
        for matrix in form:
            refuse_masked(matrix, what)
        return [m if issparse(m) else np.asarray(m) for m in form]
    return None


def _columns(transitions: Any, names: Sequence[str] | None) -> Index | None:
    """The states that the columns of transitions with labels stand for; None without labels."""
    several = isinstance(transitions, list | tuple)
    labelled = [m for m in (transitions if several else [transitions]) if has_labels(m)]
    if not labelled:
        return None
    count = int(labelled[0].shape[-1])
    return Index("state", count, read_names(names, "state", count))


def as_csr(matrix: Any, what: str) -> csr_array:
    """Read a matrix as a CSR of float64, sharing what can be shared."""
    if matrix.dtype.kind not in "biuf":
        raise InvalidInput(f"{what} must be real numbers, not of type {matrix.dtype}")
    try:
        csr = csr_array(matrix.astype(np.float64, copy=False))
        csr.check_format(full_check=True)
    except ValueError as error:
        raise InvalidInput(f"{what} is not a valid sparse matrix: {error}") from None
    small = max(csr.nnz, csr.shape[1]) <= np.iinfo(np.int32).max
    index = np.int32 if small else np.int64
    indices, indptr = (array.astype(index, copy=False) for array in (csr.indices, csr.indptr))
    return csr_array((csr.data, indices, indptr), shape=csr.shape)


def interleave(matrices: Sequence[Any], what: str) -> csr_array:
    """Build the CSR of all pairs, row s·A + a, from the A matrices of shape (S, S)."""
    states, actions = (*matrices[0].shape, 0)[0], len(matrices)
    dense = not any(map(issparse, matrices))
    for action, matrix in enumerate(matrices):
        if tuple(matrix.shape) != (states, states) or not states:
            by_state = dense and matrix.ndim == 2 and matrix.shape[1] == actions
            hint = f"; one for each state: pass numpy.stack({what})" if by_state else ""
            raise InvalidInput(
                f"{what} as a list must hold matrices of shape (S, S), "
                f"but that of action {action} has shape {tuple(matrix.shape)}{hint}"
            )
    if dense and actions == states > 1:
        raise InvalidInput(
            f"{what} as a list of {actions} arrays of shape {matrices[0].shape} could have one for "
            f"each action or one for each state: pass numpy.stack({what}, axis=1) if they are of "
            f"actions, numpy.stack({what}) if they are of states"
        )
    parts = [as_csr(matrix, what) for matrix in matrices]
    counts = np.stack([np.diff(part.indptr) for part in parts], axis=1)
    indptr = np.zeros(states * actions + 1, np.int64)
    np.cumsum(counts.ravel(), out=indptr[1:])
    small = max(int(indptr[-1]), states) <= np.iinfo(np.int32).max
    indptr = indptr.astype(np.int32 if small else np.int64)
    indices = np.empty(indptr[-1], indptr.dtype)
    data = np.empty(indptr[-1])
    for action, part in enumerate(parts):
        start = indptr[action:-1:actions] - part.indptr[:-1]
        to = np.repeat(start, counts[:, action])
        to += np.arange(part.nnz)
        indices[to], data[to] = part.indices, part.data
    return csr_array((data, indices, indptr), shape=(states * actions, states))


def read_layout(
    pairs: ArrayLike | None, shape: tuple[int, int], n_actions: int, terminal: NDArray[np.bool_]
) -> Layout:
    """Put the pairs into the order of their states and actions, without terminal states."""
    n_given, n_states = shape
    if pairs is None:
        state = np.repeat(np.arange(n_states, dtype=np.int32), n_actions)
        action = np.tile(np.arange(n_actions, dtype=np.int32), n_states)
        order = None
    else:
        state, action, order = _read_pairs(pairs, n_given, n_states)
    n_actions = n_actions or int(action.max(initial=-1)) + 1
    keep = ~terminal[state]
    if not keep.all():
        state, action = state[keep], action[keep]
        order = np.flatnonzero(keep) if order is None else order[keep]
    if not state.size:
        raise InvalidInput("every state is terminal: there is nothing to decide")
    given = None if pairs is None else np.asarray(pairs)
    return Layout(n_states, n_actions, n_given, state, action, order, pairs is None, given)


def _read_pairs(
    pairs: ArrayLike, n_given: int, n_states: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64] | None]:
    with suppress(ValueError):  # of rows of different lengths, which `numbers` refuses
        pairs = np.asarray(pairs)
    if isinstance(pairs, np.ndarray) and pairs.dtype.kind in "UO":
        raise InvalidInput(
            "pairs must be integers (state, action): of names, pass "
            "[(state_names.index(s), action_names.index(a)) for s, a in pairs]"
        )
    given = numbers(pairs, "pairs")
    if given.dtype.kind not in "iu":
        raise InvalidInput(f"pairs must be integers (state, action), not of type {given.dtype}")
    if given.shape != (n_given, 2):
        raise InvalidInput(
            f"pairs must have shape ({n_given}, 2), one (state, action) for each row "
            f"of transitions, not {given.shape}"
        )
    limits = (n_states, np.iinfo(np.int32).max)
    for column, what in enumerate(("state", "action")):
        low, high = int(given[:, column].min()), int(given[:, column].max())
        if low < 0 or high >= limits[column]:
            bad = low if low < 0 else high
            at = int(np.flatnonzero(given[:, column] == bad)[0])
            raise InvalidInput(
                f"pairs names {what} {bad} in row {at}; it must be 0 to {limits[column] - 1}"
            )
    state, action = given[:, 0].astype(np.int32, copy=False), given[:, 1].astype(np.int32)
    same = state[1:] == state[:-1]
    order = None
    if ((state[1:] < state[:-1]) | (same & (action[1:] < action[:-1]))).any():
        order = np.lexsort((action, state))
        state, action = state[order], action[order]
        same = state[1:] == state[:-1]
    twice = np.flatnonzero(same & (action[1:] == action[:-1]))
    if twice.size:
        s, a = int(state[twice[0]]), int(action[twice[0]])
        raise InvalidInput(f"pairs holds state {s}, action {a} twice")
    return state, action, order


def rows_in_order(
    transitions: Any, rows: csr_array, shared: bool, layout: Layout
) -> tuple[csr_array, bool]:
    """The rows of a DataFrame of transitions that are labelled by state and action, in order.

    Returns the matrix and whether it may share its arrays with the caller.
    """
    if not has_labels(transitions) or getattr(transitions.axes[0], "nlevels", 1) != 2:
        return rows, shared
    numbered = transitions.iloc[:, :0].assign(row=np.arange(len(transitions)))
    return rows[layout.in_order(numbered, "transitions")["row"].to_numpy()], False


def require_actions(layout: Layout, terminal: NDArray[np.bool_]) -> Ints:
    """The index of the first pair of every state; a state without any pair is an error."""
    pointer = np.searchsorted(layout.state, np.arange(layout.n_states + 1, dtype=np.int32))
    without = np.flatnonzero((pointer[1:] == pointer[:-1]) & ~terminal)
    if without.size:
        raise InvalidInput(
            f"{named('state', int(without[0]), layout.state_names)} has no actions; "
            "list it in terminal= if the episode ends there"
        )
    return pointer.astype(np.int32) if pointer[-1] <= np.iinfo(np.int32).max else pointer
