"""The transition table `P` of a Gymnasium toy-text environment, or such a table alone, as an MDP.

P[s][a] lists (probability, s', reward, terminated). Duplicate successors are merged. A
`terminated` transition leads to its successor where that is a terminal state, and is a termination
of the pair otherwise. A state is terminal if transitions enter it, all of them terminate, and no
episode starts there. In a table alone, which does not say where episodes start, it must also lead
nowhere else and earn nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from tsallax.errors import InvalidInput, one_line

ACTION_NAMES = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
}


def arguments(env: Any, make_kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of an environment or table, and the arguments of `MDP` except the discount."""
    if not isinstance(env, str):
        if make_kwargs:
            options = ", ".join(make_kwargs)
            raise InvalidInput(f"{options}: only for an environment given by its id, not made yet")
        if isinstance(env, Mapping):
            return _table(SimpleNamespace(P=env), "the table P")
        return _table(getattr(env, "unwrapped", env))
    made = make(env, make_kwargs)
    try:
        return _table(made.unwrapped, env)
    finally:
        made.close()


def refuse_table(transitions: Any) -> None:
    """Refuse a table `P[state][action]` as the transitions of `MDP`.

    >>> refuse_table({0: {0: [(1.0, 0, 0.0, True)]}})
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: transitions is a dict: use MDP.from_gymnasium for a table of ...
    """
    if isinstance(transitions, Mapping) and not issparse(transitions):
        problem = f"transitions is a {type(transitions).__name__}: use MDP.from_gymnasium"
        raise InvalidInput(f"{problem} for a table of Gymnasium, P[state][action]")


def make(name: str, options: Mapping[str, Any]) -> Any:
    """Make a Gymnasium environment by its id."""
    try:
        import gymnasium
    except ImportError:
        raise InvalidInput("needs Gymnasium: pip install gymnasium", source=name) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the error below includes it
            return gymnasium.make(name, **options)
    except Exception as error:  # environments raise exceptions of any type
        reason = one_line(error)
        raise InvalidInput(f"Gymnasium cannot make it: {reason}", source=name) from None


def _table(env: Any, given_name: str | None = None) -> tuple[str, dict[str, Any]]:
    spec = getattr(env, "spec", None)
    name: str = given_name or getattr(spec, "id", None) or type(env).__name__
    table = getattr(env, "P", None)
    if not isinstance(table, Mapping | list | tuple) or not len(table):
        raise InvalidInput(
            f"{name}: has no table P[state][action] of (probability, next state, reward, "
            "terminated); FrozenLake, Taxi and CliffWalking have one"
        )
    if getattr(env, "fickle_passenger", False):
        raise InvalidInput("with fickle_passenger=True its table P is incomplete", source=name)
    n_states = len(table)
    initial = getattr(env, "initial_state_distrib", None)
    pairs, entries = _entries(name, table, n_states)
    pair, chance, successor, reward, ends = entries
    state = pairs[pair, 0]
    matters = (successor != state) | (reward != 0.0)
    starts = np.bincount(state, matters, minlength=n_states) > 0
    starts = starts if initial is None else np.asarray(initial, float) > 0.0
    if starts.shape != (n_states,):
        raise InvalidInput(
            f"{starts.size} initial probabilities for {n_states} states", source=name
        )
    entered = np.bincount(successor, minlength=n_states) > 0
    entered_without_ending = np.bincount(successor, ~ends, minlength=n_states) > 0
    terminal = entered & ~entered_without_ending & ~starts
    stops = ends & ~terminal[successor]
    kept = (chance[~stops], (pair[~stops], successor[~stops]))
    return name, {
        "transitions": csr_array(kept, shape=(len(pairs), n_states)),
        "rewards": np.bincount(pair, chance * reward, minlength=len(pairs)),
        "initial": initial,
        "pairs": pairs,
        "terminal": terminal,
        "termination": np.bincount(pair[stops], chance[stops], minlength=len(pairs)),
        "state_names": _cells(env, n_states),
        "action_names": ACTION_NAMES.get(type(env).__name__),
    }


def _cells(env: Any, n_states: int) -> list[str] | None:
    """Names "row,column" where the states of an environment are the cells of a grid."""
    kind = type(env).__name__
    shape: tuple[int, ...] = tuple(env.shape) if kind == "CliffWalkingEnv" else ()
    if kind == "FrozenLakeEnv":
        shape = np.shape(env.desc)
    if len(shape) != 2 or shape[0] * shape[1] != n_states:
        return None
    return [f"{row},{column}" for row in range(shape[0]) for column in range(shape[1])]


def _entries(name: str, table: Any, n_states: int) -> tuple[Any, tuple[Any, ...]]:
    """All pairs; and pair, probability, s', reward and end of every possible outcome."""
    pairs: list[tuple[int, int]] = []
    rows: list[tuple[int, float, int, float, bool]] = []
    for state in range(n_states):
        try:
            actions = table[state]
            listed = actions.items() if isinstance(actions, Mapping) else enumerate(actions)
            for action, outcomes in listed:
                for chance, successor, reward, ends in outcomes:
                    if not 0 <= successor < n_states:
                        raise InvalidInput(
                            f"{name}: P[{state}][{action}] leads to state {successor} "
                            f"of 0 to {n_states - 1}"
                        )
                    outcome = float(chance), int(successor), float(reward), bool(ends)
                    if outcome[0] != 0:
                        rows.append((len(pairs), *outcome))
                pairs.append((state, int(action)))
        except InvalidInput:
            raise
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise InvalidInput(f"P[{state}] cannot be read: {error!r}", source=name) from None
    if not rows:
        raise InvalidInput("its table P holds no transition", source=name)
    columns = zip(*rows, strict=True)
    types = (np.int64, np.float64, np.int64, np.float64, np.bool_)
    return np.array(pairs), tuple(np.array(c, t) for c, t in zip(columns, types, strict=True))
