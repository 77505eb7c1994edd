"""A model as model checkers store it: states with choices, choices with branches.

The exchange formats know neither terminal states nor an episode that ends on a pair. In a file

- a terminal state is a state with the label `terminal` and one choice, which returns to it for
  a reward of zero. In files of other programs a state without choices is terminal, too;
- the probability that the episode ends on a pair leads to one more state, the last one, with the
  label `termination_sink` and such a choice. It is left out again when the file is read.

Neither changes the value of any other state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.planning.forms import Floats
from tsallax.planning.validation import NEAR_ONE, row_sums

TERMINAL = "terminal"
"""Label of the states in which an episode has ended."""
SINK = "termination_sink"
"""Label of the state that stands for the end of an episode on a pair."""
FEW_ACTIONS = 1000
"""Numbers of actions below this are kept, even where there are fewer choices."""
MAX_NAME_LENGTH = 1 << 28
"""Names that are made here are left out where they have more characters than this in all."""

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ExplicitModel:
    """States, choices and branches, with what is attached to them.

    Attributes:
        pointer: choices of state s are `pointer[s]` to `pointer[s+1] - 1`.
        indptr: branches of choice c are `indptr[c]` to `indptr[c+1] - 1`.
        target: state that each branch leads to.
        probability: probability of each branch.
        rewards: expected reward of each choice.
        initial: probability of each initial state; None for a model that names none.
        action: action of each choice; None for its position among those of its state.
        action_names: name of each action.
        state_names: name of each state.
        terminal: states with the label `terminal`.
        sink: states with the label `termination_sink`.
        discount: None for a file that has none.
    """

    pointer: Ints
    indptr: Ints
    target: Ints
    probability: Floats
    rewards: Floats
    terminal: Mask
    sink: Mask
    initial: Floats | None = None
    action: Ints | None = None
    action_names: Sequence[str] | None = None
    state_names: Sequence[str] | None = None
    discount: float | None = None

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.pointer) - 1

    @property
    def n_choices(self) -> int:
        """Number of choices."""
        return len(self.indptr) - 1


def model_of(mdp: Any) -> ExplicitModel:
    """The states, choices and branches that an MDP is written as."""
    ends = mdp.termination is not None
    terminal = np.append(mdp.terminal, ends) if ends else np.array(mdp.terminal)
    sink = np.zeros(len(terminal), bool)
    sink[mdp.n_states :] = True
    loops = np.flatnonzero(terminal)
    counts = np.append(np.diff(mdp.pointer), [0] * ends) + terminal
    pointer = np.append(0, np.cumsum(counts, dtype=np.int64))
    given = np.ones(pointer[-1], bool)
    given[pointer[loops]] = False

    csr = mdp.transitions
    stops = mdp.termination > 0 if ends else np.zeros(mdp.n_pairs, bool)
    branches = np.ones(pointer[-1], np.int64)
    branches[given] = np.diff(csr.indptr) + stops
    indptr = np.append(0, np.cumsum(branches))
    inside = np.repeat(given, branches)
    if ends:
        inside[indptr[1:][given][stops] - 1] = False
    target = np.full(indptr[-1], mdp.n_states, np.int64)
    probability = np.ones(indptr[-1])
    target[inside], probability[inside] = csr.indices, csr.data
    target[indptr[pointer[loops]]] = loops
    if ends:
        probability[indptr[1:][given][stops] - 1] = mdp.termination[stops]

    rewards = np.zeros(pointer[-1])
    rewards[given] = mdp.rewards
    action = np.full(pointer[-1], mdp.n_actions - 1, np.int64)
    action[given] = mdp.action_of
    names = mdp.state_names
    if ends and names is not None:
        names = (*names, _new_name(SINK, set(names)))
    return ExplicitModel(
        pointer, indptr, target, probability, rewards, terminal & ~sink, sink,
        np.append(mdp.initial, [0.0] * ends), action, mdp.action_names, names, mdp.discount,
    )  # fmt: skip


def mdp_arguments(model: ExplicitModel, discount: float | None) -> dict[str, Any]:
    """The arguments of `MDP` for a model that was read, whose array lengths are consistent."""
    if discount is None:
        discount = model.discount
    if discount is None:
        raise InvalidInput("the file holds no discount", add=("discount", 0.99))
    _check_branches(model)
    counts = np.diff(model.pointer)
    state_of = np.repeat(np.arange(model.n_states), counts)
    action, action_names = _actions(model, state_of)

    absorbing = _absorbing(model)
    initial, names = model.initial, model.state_names
    n_states, n_choices = model.n_states, model.n_choices
    target, probability, indptr = model.target, model.probability, model.indptr
    termination = None
    last = n_states - 1
    folds = model.sink.sum() == 1 and model.sink[last] and absorbing[last] and last > 0
    if folds and (initial is None or initial[last] == 0):
        termination = np.zeros(n_choices)
        ends = target == last
        np.add.at(termination, np.searchsorted(indptr, np.flatnonzero(ends), "right") - 1,
                  probability[ends])  # fmt: skip
        kept = np.append(0, np.cumsum(~ends))
        n_states, n_choices = last, n_choices - 1
        indptr = kept[indptr[: n_choices + 1]]
        target, probability = target[~ends][: indptr[-1]], probability[~ends][: indptr[-1]]
        termination = termination[:n_choices]
        initial = None if initial is None else initial[:last]
        names = None if names is None else names[:last]
    return {
        "transitions": csr_array((probability, target, indptr), shape=(n_choices, n_states)),
        "rewards": model.rewards[:n_choices],
        "discount": discount,
        "initial": initial,
        "pairs": np.stack([state_of[:n_choices], action[:n_choices]], axis=1),
        "terminal": ((counts == 0) | (model.terminal & absorbing))[:n_states],
        "termination": termination,
        "state_names": names,
        "action_names": action_names,
    }


def uniform(mask: Mask) -> Floats | None:
    """The uniform distribution over some states; None where there is none."""
    count = np.count_nonzero(mask)
    return mask / count if count else None


def is_uniform(initial: Floats) -> bool:
    """Whether a distribution is, bit by bit, uniform over the states it does not rule out."""
    expected = uniform(initial > 0)
    return expected is not None and np.array_equal(expected, initial)


def expected(indptr: Ints, probability: Floats, rewards: Floats) -> Floats:
    """Expected reward of each choice from the rewards of its branches.

    It is exact where all branches of a choice have the same reward.
    """
    filled = np.flatnonzero(indptr[1:] > indptr[:-1])
    base = np.zeros(len(indptr) - 1)
    base[filled] = rewards[indptr[filled]]
    with np.errstate(all="ignore"):
        excess = rewards - np.repeat(base, np.diff(indptr))
        return base + row_sums(probability * excess, indptr)


def state_rewards(pointer: Ints, rewards: Floats) -> Floats:
    """The reward of its state for each choice: it is paid whenever the state is left."""
    return np.repeat(rewards, np.diff(pointer))


def file_discount(value: Any) -> float:
    """The discount that a file states, if it is a number."""
    if not checks.is_number(value) or abs(value) > 1:
        raise InvalidInput("the discount in the file is not a number from 0 to 1")
    return float(value)


def is_text(value: Any) -> bool:
    """Whether it is a string that a file can hold."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def rational(numerator: int, denominator: int) -> float:
    """The float64 closest to a fraction."""
    try:
        return numerator / denominator
    except (ZeroDivisionError, OverflowError):
        return float("nan")


def _check_branches(model: ExplicitModel) -> None:
    """Refuse numbers that are no probabilities, with their place."""
    if model.n_choices == 0:
        raise InvalidInput("no state has a choice: there is nothing to decide")
    wrong = ~((model.probability >= 0) & (model.probability <= 1 + NEAR_ONE))
    if wrong.any():
        branch = int(np.argmax(wrong))
        choice = int(np.searchsorted(model.indptr, branch, "right")) - 1
        state = int(np.searchsorted(model.pointer, choice, "right")) - 1
        raise InvalidInput(
            f"state {state}, choice {choice - int(model.pointer[state])}: the probability of "
            f"reaching state {model.target[branch]} is {model.probability[branch]:.17g}"
        )
    sums = row_sums(model.probability, model.indptr)
    off = np.abs(sums - 1.0) > NEAR_ONE
    if off.any():
        choice = int(np.argmax(off))
        state = int(np.searchsorted(model.pointer, choice, "right")) - 1
        raise InvalidInput(
            f"state {state}, choice {choice - int(model.pointer[state])}: the probabilities sum to "
            f"{sums[choice]:.12g}, not to 1; the file may be damaged or cut off"
        )


def _absorbing(model: ExplicitModel) -> Mask:
    """States with one choice, which returns to them for a reward of zero."""
    result: Mask = np.diff(model.pointer) == 1
    states = np.flatnonzero(result)
    choice = model.pointer[states]
    first = model.indptr[choice]
    fits = (model.indptr[choice + 1] - first == 1) & (model.rewards[choice] == 0)
    result[states] = fits
    states, first = states[fits], first[fits]
    result[states] = (model.target[first] == states) & (model.probability[first] == 1)
    return result


def _actions(model: ExplicitModel, state_of: Ints) -> tuple[Ints, list[str] | None]:
    """The action of each choice, distinct within each state, and the names of the actions.

    Other programs may give several choices of a state the same label: the second choice with
    the label `a` becomes the action `a (2)`.
    """
    if model.action is None:
        return np.arange(model.n_choices) - model.pointer[state_of], None
    action, names = model.action, model.action_names
    repeat = _repetitions(state_of, action)
    n_actions = int(action.max()) + 1
    if not repeat.any() and n_actions <= max(len(names or ()), model.n_choices, FEW_ACTIONS):
        return action, None if names is None else list(names[:n_actions])
    used, kind = np.unique(repeat * n_actions + action, return_inverse=True)
    times, indices = (part.tolist() for part in np.divmod(used, n_actions))
    if names is None or sum(len(names[a]) for a in indices) > MAX_NAME_LENGTH:
        return kind, None
    taken, chosen = set(names), []
    for time, index in zip(times, indices):
        name = names[index] if time == 0 else _new_name(f"{names[index]} ({time + 1})", taken)
        taken.add(name)
        chosen.append(name)
    return kind, chosen


def _repetitions(state_of: Ints, action: Ints) -> Ints:
    """How many choices of the same state with the same action precede each choice."""
    if ((state_of[1:] != state_of[:-1]) | (action[1:] > action[:-1])).all():
        return np.zeros(len(action), np.int64)
    order = np.lexsort((np.arange(len(action)), action, state_of))
    s, a = state_of[order], action[order]
    first = np.append(True, (s[1:] != s[:-1]) | (a[1:] != a[:-1]))
    place = np.arange(len(action))
    result = np.empty(len(action), np.int64)
    result[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return result


def _new_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
