"""The runs of a sweep as rows, in `*.jsonl` files (`tsallax.paper.fleets.row_files`)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tsallax.deep.options import with_current_names
from tsallax.paper.fleets.row_files import RowFormat, is_count, is_finite
from tsallax.paper.sweep.sweep_tasks import EXPLORE, TASKS, UPDATE, Variant

EVERY = 20
"""Training episodes that an entry of a row's `returns` averages."""
WINDOW = 100
"""Episodes over which a training return is averaged."""

FINITE = ("final", "greedy", "sampled", "threshold", "seconds")
ERRORS = ("greedy_error", "sampled_error")
MINIMA = {"seed": 0, "episodes": 1, "steps": 1, "evaluated": 1, "every": 1, "agents": 1}
"""The least values of the fields that are integers."""

Key = tuple[str, str, int | None, int]


@dataclass(frozen=True)
class SweepRow:
    """One agent's run.

    Attributes:
        algorithm: the paper's name, such as "Sparse+SparseBellman-0.1" or "DDPG".
        explore, update, alpha: what the name says; None for DDPG.
        actions: the number of actions in all; None for DDPG.
        threshold: the return that counts as learned.
        reached: the first episode whose mean with the 99 before it is at the threshold, from one.
        final: the mean return of the last 100 training episodes.
        greedy, greedy_error: mean return of evaluation episodes without exploration, and the
            standard error over these episodes, which says nothing about other runs.
        sampled, sampled_error: the same with actions drawn from the exploring policy.
        evaluated: the number of evaluation episodes of each kind.
        returns: mean returns of training episodes, `every` at a time; the last may be of fewer.
        seconds, agents: the time it took with the agents that learned beside it, and their number.
        config: every option of the learner.
        provenance: versions, hardware and date.
    """

    task: str
    algorithm: str
    explore: str | None
    update: str | None
    alpha: float | None
    actions: int | None
    seed: int
    episodes: int
    steps: int
    threshold: float
    reached: int | None
    final: float
    greedy: float
    greedy_error: float
    sampled: float
    sampled_error: float
    evaluated: int
    every: int
    returns: tuple[float, ...]
    seconds: float
    agents: int
    config: dict[str, Any]
    provenance: dict[str, str]

    @property
    def key(self) -> Key:
        """Task, algorithm, number of actions and seed: unique in a sweep."""
        return self.task, self.algorithm, self.actions, self.seed

    @property
    def table(self) -> str:
        """The table that shows it."""
        return self.task

    @property
    def label(self) -> str:
        """The run in words."""
        return f"{self.algorithm}, {self.actions} actions, seed {self.seed}"


def first_episode_at(returns: list[float], threshold: float, window: int = WINDOW) -> int | None:
    """The first episode, from one, at which the mean over the window is at the threshold.

    >>> first_episode_at([0.0, 4.0, 4.0, 9.0], threshold=4.0, window=2)
    3
    """
    total = np.concatenate([[0.0], np.cumsum(np.asarray(returns, np.float64))])
    means = (total[window:] - total[:-window]) / window
    at_threshold = np.flatnonzero(means >= threshold)
    return int(at_threshold[0]) + window if len(at_threshold) else None


def compact(returns: list[float], every: int = EVERY) -> tuple[float, ...]:
    """Means of `every` returns at a time, to five digits.

    >>> compact([1.0, 2.0, 4 / 3], every=2)
    (1.5, 1.3333)
    """
    parts = (returns[i : i + every] for i in range(0, len(returns), every))
    return tuple(float(f"{sum(part) / len(part):.5g}") for part in parts)


def _invalid_field(data: dict[str, Any]) -> str | None:
    """The first field of a row with an impossible value, or None."""
    fine = {name: is_finite(data[name]) for name in FINITE}
    fine |= {name: is_finite(data[name]) and data[name] >= 0 for name in ERRORS}
    fine |= {name: is_count(data[name], least) for name, least in MINIMA.items()}
    fine |= {name: isinstance(data[name], dict) for name in ("config", "provenance")}
    fine["task"] = data["task"] in list(TASKS)
    for name in fine:
        if not fine[name]:
            return name
    explore, update, alpha, actions = (data[x] for x in ("explore", "update", "alpha", "actions"))
    reached, episodes, returns = data["reached"], data["episodes"], data["returns"]
    if reached is not None and not (is_count(reached, 1) and reached <= episodes):
        return "reached"
    if actions is not None and not is_count(actions, 2):
        return "actions"
    q_learning = explore in list(EXPLORE) and update in list(UPDATE) and is_finite(alpha)
    if not q_learning and not explore is update is alpha is actions is None:
        return "explore"
    if Variant(explore, update, alpha).name != data["algorithm"]:
        return "algorithm"
    if not (isinstance(returns, list | tuple) and all(map(is_finite, returns))):
        return "returns"
    return None if len(returns) == -(-episodes // data["every"]) else "returns"


def _converted(data: dict[str, Any]) -> dict[str, Any]:
    returns = tuple(float(x) for x in data["returns"])
    return {**data, "returns": returns, "config": with_current_names(data["config"])}


SWEEP_ROWS = RowFormat(SweepRow, ".jsonl", "a sweep", _invalid_field, _converted)
