"""The episodes in progress of a fleet in Gymnasium environments, and their arrays in files.

An episode is a function of its seed and its actions, which are recorded, so that it can be repeated
up to the present.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tsallax.deep.loop import EPISODES_PREFIX
from tsallax.deep.loop_gymnasium import MAX_REPEATED
from tsallax.envs.action_format import ActionFormat
from tsallax.errors import InvalidInput

CAPACITY = 64
"""The number of steps for which there is space in the first episodes."""


@dataclass(frozen=True, eq=False)
class EpisodeLayout:
    """The types of rows and actions, and how they are grouped."""

    row: np.dtype[Any]
    """What an environment returns, of type `environment_workers.row_type`."""
    action: NDArray[Any]
    """An array like the action of one agent."""
    action_format: ActionFormat
    together: bool
    """Whether all agents are one group, with a leading axis, or each is its own."""

    @property
    def seen(self) -> tuple[str, ...]:
        """The fields of a row that an agent sees."""
        return tuple(name for name in ("observation", "mask") if name in (self.row.names or ()))

    def by_group(self, rows: NDArray[Any]) -> list[NDArray[np.uint8]]:
        """The bytes of rows, (agents of the group, 1, bytes), or (1, bytes) for one by one."""
        packed = np.ascontiguousarray(rows).view(np.uint8).reshape(-1, 1, self.row.itemsize)
        return [packed] if self.together else list(packed)


@dataclass
class FleetEpisodes:
    """The episodes in progress, one for each agent that learns."""

    layout: EpisodeLayout
    begun: NDArray[np.int64]
    """The number of episodes that each agent has begun."""
    length: NDArray[np.int64]
    """The number of steps of each episode so far."""
    taken: NDArray[Any]
    """The actions of each episode so far, (agents, at least the largest length, ...)."""
    rows: list[Any]
    """The present rows of the environments, as bytes, by group; empty before the first episode."""
    action: list[Any]
    """The actions chosen for them, by group."""

    @classmethod
    def none(cls, layout: EpisodeLayout, n: int) -> Self:
        """The state of n agents before their first episodes."""
        taken = np.zeros((n, CAPACITY, *layout.action.shape), layout.action.dtype)
        return cls(layout, np.zeros(n, np.int64), np.zeros(n, np.int64), taken, [], [])

    @property
    def groups(self) -> list[slice]:
        """The agents of each group."""
        n = len(self.begun)
        return [slice(0, n)] if self.layout.together else [slice(i, i + 1) for i in range(n)]

    def record(self, action: NDArray[Any], ended: NDArray[np.bool_]) -> None:
        """Add the actions of a step; a new episode begins where one ended."""
        n, capacity = self.taken.shape[:2]
        if self.length.max() >= capacity and capacity < MAX_REPEATED:
            self.taken = np.concatenate([self.taken, np.zeros_like(self.taken)], 1)
            capacity *= 2
        self.taken[np.arange(n), np.minimum(self.length, capacity - 1)] = action
        self.length = np.where(ended, 0, self.length + 1)
        self.begun += ended

    def present(self) -> NDArray[Any]:
        """The present rows of the environments."""
        parts = [np.asarray(rows).reshape(-1).view(self.layout.row) for rows in self.rows]
        return np.concatenate(parts)

    def chosen(self) -> NDArray[Any]:
        """The actions chosen for the next step, (agents, ...)."""
        shape = (-1, *self.layout.action.shape)
        return np.concatenate([np.asarray(a).reshape(shape) for a in self.action])

    def _set_present(self, rows: NDArray[Any], action: NDArray[Any]) -> None:
        self.rows = list(self.layout.by_group(rows))
        self.action = [action[:, None]] if self.layout.together else list(action[:, None])

    def keep(self, agents: NDArray[Any]) -> None:
        """Keep the episodes of these agents only."""
        self.begun, self.length = self.begun[agents], self.length[agents]
        self.taken = self.taken[agents]
        if self.rows:
            self._set_present(self.present()[agents], self.chosen()[agents])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The episodes as named arrays."""
        found = {"begun": self.begun, "length": self.length}
        if self.rows:
            rows, kept = self.present(), np.minimum(self.length, self.taken.shape[1])
            found |= {name: rows[name] for name in self.layout.seen}
            found["action"] = self.chosen()
            found["taken"] = np.concatenate(
                [taken[:length] for taken, length in zip(self.taken, kept, strict=True)]
            )
        return {f"{EPISODES_PREFIX}{name}": array for name, array in found.items()}

    @classmethod
    def restore(
        cls, layout: EpisodeLayout, arrays: dict[str, NDArray[Any]], n: int, step: int
    ) -> Self:
        """The episodes of n agents after `step` steps, from the arrays of a file."""
        counts = {"begun": ((n,), np.int64), "length": ((n,), np.int64)}
        begun, length = (_array(arrays, *item) for item in counts.items())
        some = begun.any() and not begun.all()
        if some or (begun < 0).any() or (length < 0).any() or (length > step).any():
            raise InvalidInput("damaged: its episodes have impossible numbers or lengths")
        now, like = cls.none(layout, n), layout.action
        now.begun, now.length = begun, length
        if not begun.any():
            return now
        kept = np.minimum(length, MAX_REPEATED)
        taken = _array(arrays, "taken", ((int(kept.sum()), *like.shape), like.dtype))
        capacity = CAPACITY
        while capacity < kept.max():
            capacity *= 2
        now.taken = np.zeros((n, capacity, *like.shape), like.dtype)
        for i, part in enumerate(np.split(taken, np.cumsum(kept)[:-1])):
            now.taken[i, : len(part)] = part
        rows = np.zeros(n, layout.row)
        rows["step"] = step
        for name in layout.seen:
            rows[name] = _array(arrays, name, (rows[name].shape, rows[name].dtype))
        action = _array(arrays, "action", ((n, *like.shape), like.dtype))
        for name, numbers in {"action": action, "taken": taken}.items():
            if not layout.action_format.has(numbers):
                problem = f"damaged: {EPISODES_PREFIX}{name} has an action that is not there"
                raise InvalidInput(problem)
        now._set_present(rows, action)
        return now


def _array(arrays: dict[str, NDArray[Any]], name: str, like: tuple[Any, Any]) -> NDArray[Any]:
    """An array of a file, refused if its shape or type is another."""
    name = EPISODES_PREFIX + name
    found = arrays.get(name)
    if found is None:
        raise InvalidInput(f"incomplete: {name} missing")
    if (found.shape, found.dtype) != like:
        raise InvalidInput(f"{name} has type {found.dtype} and shape {found.shape}")
    return found
