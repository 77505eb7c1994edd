"""`History`: the episodes and evaluations of an agent, and averages over its updates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.errors import InvalidInput

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
    """The number of its steps so far."""
    tally: NDArray[np.float64] = field(default_factory=lambda: np.zeros(4))
    """The number of cycles since the last entry of the trace, and the sums of its numbers."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        checks.one_of("column", name, COLUMNS)
        return np.asarray(self.columns[name], COLUMNS[name])

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    @property
    def episodes(self) -> int:
        """The number of finished episodes."""
        return len(self.columns["episode_return"])

    def recent(self, n: int = 100) -> float:
        """The mean return of the last n episodes, NaN before the first."""
        last = self.columns["episode_return"][-n:]
        return float(np.mean(last)) if last else float("nan")

    def mean_return(self, step: int, n: int) -> float:
        """The mean return of the last n episodes that ended up to a step, NaN if they are fewer."""
        end = int(np.searchsorted(self["episode_step"], step, side="right"))
        return float(self["episode_return"][end - n : end].mean()) if end >= n else float("nan")

    def is_best(self) -> bool:
        """Whether the greedy return of the last evaluation is higher than those of all others."""
        *others, last = self.columns["evaluation_return"]
        return not others or last > max(others)

    def append(self, **row: Any) -> None:
        """Add an entry to some columns."""
        for name, value in row.items():
            self.columns[name].append(value)

    def record(
        self,
        step: int,
        rewards: NDArray[Any],
        ended: NDArray[Any],
        valid: NDArray[Any] | None = None,
    ) -> None:
        """Add rewards and ends of episodes, (time, environments), of which the last was at `step`.

        Episodes are listed in the order of their ends, and rewards are summed one after the other,
        so that the result does not depend on how many are recorded at a time. Steps that are not
        `valid` do not count in an episode's length.
        """
        time, n = rewards.shape
        steps = np.ones((time, n), np.int64) if valid is None else valid.astype(np.int64)
        begin = np.zeros(n, np.int64)
        for i, e in np.argwhere(ended):
            self._add(e, rewards[begin[e] : i + 1, e], steps[begin[e] : i + 1, e])
            self.append(
                episode_step=step - (time - 1 - int(i)) * n,
                episode_return=float(self.running[e]),
                episode_length=int(self.lengths[e]),
            )
            self.running[e], self.lengths[e], begin[e] = 0.0, 0, i + 1
        for e in range(n):
            self._add(e, rewards[begin[e] :, e], steps[begin[e] :, e])

    def _add(self, e: int, rewards: NDArray[Any], steps: NDArray[np.int64]) -> None:
        self.running[e] = np.cumsum(np.concatenate(([self.running[e]], rewards)))[-1]
        self.lengths[e] += steps.sum()

    def accumulate(self, loss: NDArray[Any], value: NDArray[Any], support: NDArray[Any]) -> None:
        """Add numbers by cycle, (cycles,), to the sums of which the trace takes averages."""
        new = np.stack([np.ones(len(loss)), loss, value, support]).astype(np.float64)
        self.tally = np.cumsum(np.column_stack([self.tally, new]), 1)[:, -1]

    def append_trace(self, step: int) -> None:
        """Add an entry to the trace: the averages since the last one."""
        cycles, *sums = self.tally.tolist()
        means = [total / cycles for total in sums]
        self.append(**dict(zip(TRACE, [step, *means])))
        self.tally = np.zeros(4)

    def drop_unfinished(self) -> None:
        """Drop the unfinished episodes."""
        self.running[:], self.lengths[:] = 0.0, 0

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All columns and sums, as named arrays."""
        named = {name: self[name] for name in COLUMNS}
        return {**named, "running": self.running, "lengths": self.lengths, "tally": self.tally}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The history with these arrays."""
        kinds = {**COLUMNS, "running": np.float64, "lengths": np.int64, "tally": np.float64}
        for name, kind in kinds.items():
            if arrays[name].dtype != kind:
                raise InvalidInput(f"history.{name} has type {arrays[name].dtype}")
        for group in (EPISODES, TRACE, EVALUATIONS, ("running", "lengths")):
            first = arrays[next(iter(group))]
            for name in group:
                if arrays[name].ndim != 1 or arrays[name].shape != first.shape:
                    raise InvalidInput(f"history.{name} has shape {arrays[name].shape}")
        columns = {name: list(arrays[name]) for name in COLUMNS}
        running, lengths, tally = (arrays[name] for name in ("running", "lengths", "tally"))
        if tally.shape != (4,):
            raise InvalidInput(f"history.tally has shape {tally.shape}")
        if not (tally[0] >= 0 and float(tally[0]).is_integer()):
            raise InvalidInput(f"damaged: history.tally counts {tally[0]} cycles")
        if not (lengths >= 0).all() or not np.isfinite(running).all():
            raise InvalidInput(
                "damaged: its episodes in progress have impossible lengths or returns"
            )
        return cls(columns, running, lengths, tally)


def read_history(arrays: Mapping[str, NDArray[Any]], steps: int, n_envs: int) -> History:
    """The history in the arrays of a file, after `steps` steps of `n_envs` environments."""
    named = {k.removeprefix("history."): v for k, v in arrays.items() if k[:8] == "history."}
    try:
        history = History.from_arrays(named)
    except KeyError as error:
        raise InvalidInput(f"incomplete: history.{error.args[0]} missing") from None
    known = (history[name].max(initial=0) for name in ("episode_step", "trace_step"))
    if max(known) > steps:
        raise InvalidInput(f"damaged: a history of more than its {steps} steps")
    if len(history.running) != n_envs:
        raise InvalidInput(f"history.running has shape {history.running.shape}")
    return history
