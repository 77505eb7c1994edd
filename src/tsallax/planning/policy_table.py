"""The policy of a solution state by state, as text or for JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tsallax.planning.finite_horizon import FiniteHorizonSolution
from tsallax.planning.functional_solution import FunctionalSolution
from tsallax.planning.solution import Solution
from tsallax.planning.summary import proven_digits
from tsallax.wording import plural

AnySolution = Solution | FunctionalSolution | FiniteHorizonSolution

MAX_ACTIONS = 6
"""The number of actions of a state that fit into a line."""


class StateRow(NamedTuple):
    """A state with its value and the actions of its support, the most probable first."""

    state: str | int
    value: float
    actions: dict[str | int, float]


def state_rows(solution: AnySolution, limit: int | None = None, step: int = 0) -> list[StateRow]:
    """The first `limit` states, or all; a terminal state has no actions.

    Of a solution with a finite horizon, values and policy are those of one step.

    >>> from tsallax import Sparse, problems, solve
    >>> rows = state_rows(solve(problems.forest(), Sparse(8.0)))
    >>> rows[2].state, {action: round(p, 3) for action, p in rows[2].actions.items()}
    (2, {'wait': 0.911, 'cut': 0.089})
    """
    if isinstance(solution, FunctionalSolution):
        return _functional_rows(solution, limit)
    mdp = solution.mdp
    if isinstance(solution, FiniteHorizonSolution):
        value, pi = solution.values[step], solution.pair_policy_at(step)
    else:
        value, pi = solution.value, solution.pair_policy
    states, actions = mdp.state_names, mdp.action_names
    rows = []
    for s in range(mdp.n_states if limit is None else min(limit, mdp.n_states)):
        pairs = np.arange(mdp.pointer[s], mdp.pointer[s + 1])
        pairs = pairs[pi[pairs] > 0]
        pairs = pairs[np.argsort(-pi[pairs], kind="stable")]
        taken = {
            int(a) if actions is None else actions[a]: float(p)
            for a, p in zip(mdp.action_of[pairs], pi[pairs], strict=True)
        }
        rows.append(StateRow(s if states is None else states[s], float(value[s]), taken))
    return rows


def _functional_rows(solution: FunctionalSolution, limit: int | None) -> list[StateRow]:
    """States and actions of a model from functions, by their coordinates."""
    mdp = solution.mdp
    states = np.arange(mdp.n_states if limit is None else min(limit, mdp.n_states))
    rows = []
    for s, pi in zip(states.tolist(), solution.policy_at(states), strict=True):
        used = np.flatnonzero(pi)
        used = used[np.argsort(-pi[used], kind="stable")]
        taken: dict[str | int, float] = {mdp.actions.describe(int(a)): float(pi[a]) for a in used}
        rows.append(StateRow(mdp.states.describe(s), float(solution.value[s]), taken))
    return rows


def as_data(rows: list[StateRow]) -> list[dict[str, Any]]:
    """The rows for JSON, where the keys of an object are text."""
    return [
        {
            "state": row.state,
            "value": row.value,
            "policy": {str(action): p for action, p in row.actions.items()},
        }
        for row in rows
    ]


def as_text(solution: AnySolution, limit: int | None = None, step: int = 0) -> str:
    """The first `limit` states, or all, as aligned lines with as many digits as are proven."""
    digits, title = proven_digits(solution.error), "policy"
    if isinstance(solution, FiniteHorizonSolution):
        digits = proven_digits(float(solution.errors[step]))
        title = f"policy of step {step}"
    lines = [("state", "value", title)]
    for row in state_rows(solution, limit, step):
        lines.append((_printable(row.state), f"{row.value:,.{digits}f}", _choice(row)))
    widths = [max(len(line[i]) for line in lines) for i in range(2)]
    text = [f"{s:<{widths[0]}}  {value:>{widths[1]}}  {policy}" for s, value, policy in lines]
    left = solution.mdp.n_states + 1 - len(lines)
    return "\n".join(text + [f"and {plural(left, 'more state')}"] * (left > 0))


def _choice(row: StateRow) -> str:
    """The actions of a state with their probabilities, of a single action its name alone."""
    if not row.actions:
        return "terminal"
    if len(row.actions) == 1:
        return _printable(next(iter(row.actions)))
    parts = [f"{_printable(action)} {p:.4g}" for action, p in row.actions.items()]
    left = len(parts) - MAX_ACTIONS
    return ", ".join(parts[:MAX_ACTIONS]) + (f" and {left:,} more" if left > 0 else "")


def _printable(name: str | int) -> str:
    """A name, quoted where a terminal could not show it."""
    text = str(name)
    return text if text.isprintable() and text else repr(text)
