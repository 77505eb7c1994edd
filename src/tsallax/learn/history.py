"""What an agent went through: every episode, every evaluation, and averages along the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

EPISODES = {"episode_step": np.int64, "episode_return": np.float64, "episode_length": np.int64}
TRACE = {
    "trace_step": np.int64,
    "trace_loss": np.float64,
    "trace_value": np.float64,
    "trace_support": np.float64,
}
EVALUATIONS = {
    "evaluation_step": np.int64,
    "evaluation_episode": np.int64,
    "evaluation_return": np.float64,
    "evaluation_std": np.float64,
    "evaluation_length": np.float64,
    "evaluation_sampled": np.float64,
}
COLUMNS: dict[str, Any] = {**EPISODES, **TRACE, **EVALUATIONS}


@dataclass
class History:
    """Columns that grow: `history["episode_return"]` is an array with an entry per episode.

    Episodes: the step at which each ended, its return and its length. Trace: averages of loss,
    target value and the policy's support ratio over the steps before each entry. Evaluations: the
    mean, standard deviation and length of greedy episodes, and the mean of sampled ones.
    """

    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in COLUMNS})
    running: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    """The return so far of the episode each environment is in."""
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.asarray(self.columns[name], COLUMNS[name])

    @property
    def episodes(self) -> int:
        """The number of finished episodes."""
        return len(self.columns["episode_return"])

    def recent(self, n: int = 100) -> float:
        """The mean return of the last n episodes, NaN before the first."""
        last = self.columns["episode_return"][-n:]
        return float(np.mean(last)) if last else float("nan")

    def append(self, **row: Any) -> None:
        """Add an entry to some columns."""
        for name, value in row.items():
            self.columns[name].append(value)

    def record(self, step: int, rewards: NDArray[Any], ended: NDArray[Any]) -> None:
        """Take note of rewards and ends, (time, environments), of which the last was at `step`.

        Episodes come in the order of their ends, and rewards are added one after the other, so
        that it does not matter how many are recorded at a time.
        """
        time, n = rewards.shape
        begin = np.zeros(n, np.int64)
        for i, e in np.argwhere(ended):
            self._count(e, rewards[begin[e] : i + 1, e])
            self.append(
                episode_step=step - (time - 1 - int(i)) * n,
                episode_return=float(self.running[e]),
                episode_length=int(self.lengths[e]),
            )
            self.running[e], self.lengths[e], begin[e] = 0.0, 0, i + 1
        for e in range(n):
            self._count(e, rewards[begin[e] :, e])

    def _count(self, e: int, rewards: NDArray[Any]) -> None:
        self.running[e] = np.cumsum(np.concatenate(([self.running[e]], rewards)))[-1]
        self.lengths[e] += len(rewards)

    def forget_running(self) -> None:
        """Drop the unfinished episodes."""
        self.running[:], self.lengths[:] = 0.0, 0

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, as named arrays."""
        named = {name: self[name] for name in COLUMNS}
        return {**named, "running": self.running, "lengths": self.lengths}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> History:
        """The history that `arrays` made them from."""
        columns = {name: list(arrays[name].astype(kind)) for name, kind in COLUMNS.items()}
        return cls(columns, arrays["running"].astype(np.float64), arrays["lengths"].copy())
