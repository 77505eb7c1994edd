"""The runs of a sweep by algorithm and number of actions, and which algorithms are best.

Epsilon-greedy with the plain update has no alpha: the paper's three names for it are one algorithm
here, with the runs of all three.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from tsallax.errors import InvalidInput
from tsallax.paper.sweep.sweep_rows import SweepRow
from tsallax.paper.sweep.sweep_tasks import SweepTask, Variant
from tsallax.statistics import Array, resample

Cell = tuple[str, int | None]
"""An algorithm's name and its number of actions."""

PLAIN_EPSILON_GREEDY = "EpsGrdy+Bellman"
DDPG_CELL: Cell = ("DDPG", None)
TOP = 5
RULE = (
    "the mean, over the numbers of actions, of the rank of the mean greedy return; ties are broken "
    "by episodes to the threshold"
)


def algorithm_name(explore: str | None, update: str | None, alpha: float | None) -> str:
    """The paper's name, without alpha where nothing depends on it.

    >>> algorithm_name("epsilon", "hard", 0.1), algorithm_name("sparse", "hard", 0.1)
    ('EpsGrdy+Bellman', 'Sparse+Bellman-0.1')
    """
    pooled = (explore, update) == ("epsilon", "hard")
    return PLAIN_EPSILON_GREEDY if pooled else Variant(explore, update, alpha).name


class Times(NamedTuple):
    """The times to the threshold of the runs of a cell."""

    episodes: Array
    """The episodes to the threshold, or in all where it was not reached."""
    reached: NDArray[np.bool_]
    """Whether it was reached."""


@dataclass(frozen=True, eq=False)
class SweepRuns:
    """The runs of one task, their numbers of actions and coefficients, and their threshold."""

    task: SweepTask
    rows: tuple[SweepRow, ...]
    named: dict[Cell, tuple[SweepRow, ...]]
    """The runs by the paper's names."""
    cells: dict[Cell, tuple[SweepRow, ...]]
    """The runs by algorithm."""
    actions: tuple[int, ...]
    alphas: tuple[float, ...]
    threshold: float

    @cached_property
    def weights(self) -> dict[Cell, Array]:
        """Bootstrap weights of the runs of every cell."""
        return resample({cell: len(rows) for cell, rows in self.cells.items()})

    @cached_property
    def algorithms(self) -> dict[str, SweepRow]:
        """A run of every algorithm with actions to choose among, by name."""
        return {cell[0]: rows[0] for cell, rows in self.cells.items() if cell != DDPG_CELL}

    @cached_property
    def greedy(self) -> dict[Cell, Array]:
        """Mean returns without exploration."""
        return {cell: np.array([r.greedy for r in rows]) for cell, rows in self.cells.items()}

    @cached_property
    def times(self) -> dict[Cell, Times]:
        """The times to the threshold."""
        return {cell: times_of(rows) for cell, rows in self.cells.items()}

    @cached_property
    def capped_episodes(self) -> dict[Cell, Array]:
        """Episodes to the threshold; those of the longest run where it was not reached."""
        most = max(row.episodes for row in self.rows)
        return {cell: np.where(t.reached, t.episodes, most) for cell, t in self.times.items()}

    def matches(self, factor: str, x: str, y: str, actions: int) -> list[tuple[Cell, Cell]]:
        """Cells that differ in "explore" or "update" alone, one with x and one with y."""
        rows = self.algorithms.values()
        others = dict.fromkeys(row.update if factor == "explore" else row.explore for row in rows)
        found: list[tuple[Cell, Cell]] = []
        for other in others:
            for alpha in self.alphas:
                ways = [(kind, other) if factor == "explore" else (other, kind) for kind in (x, y)]
                pair = [algorithm_name(explore, update, alpha) for explore, update in ways]
                if all((one, actions) in self.cells for one in pair):
                    found.append(((pair[0], actions), (pair[1], actions)))
        return found

    def cells_of_kind(self, factor: str, kind: str, actions: int) -> list[Cell]:
        """The cells of one way to explore or update, one for every name of the paper's."""
        firsts = [runs[0] for (_, n), runs in self.named.items() if n == actions]
        mine = [row for row in firsts if getattr(row, factor) == kind]
        return [(algorithm_name(row.explore, row.update, row.alpha), actions) for row in mine]


def gather(task: SweepTask, rows: Sequence[SweepRow]) -> SweepRuns:
    """Sort the runs of a task into cells, in the paper's order."""
    mine = [row for row in rows if row.task == task.name]
    if not mine:
        raise InvalidInput(f"no runs of {task.name}: sweep it first")
    thresholds = sorted({row.threshold for row in mine})
    if len(thresholds) > 1:
        both = f"{thresholds[0]:g} and {thresholds[-1]:g}"
        raise InvalidInput(f"runs of {task.name} have the thresholds {both}: keep one kind")
    mine.sort(key=_place)
    named: dict[Cell, dict[int, SweepRow]] = {}
    cells: dict[Cell, dict[int, SweepRow]] = {}
    for row in mine:
        named.setdefault((row.algorithm, row.actions), {})[row.seed] = row
        cell = algorithm_name(row.explore, row.update, row.alpha), row.actions
        cells.setdefault(cell, {}).setdefault(row.seed, row)
    return SweepRuns(
        task=task,
        rows=tuple(mine),
        named={cell: tuple(runs.values()) for cell, runs in named.items()},
        cells={cell: tuple(runs.values()) for cell, runs in cells.items()},
        actions=tuple(sorted({row.actions for row in mine if row.actions is not None})),
        alphas=tuple(sorted({r.alpha for r in mine if r.alpha is not None}, reverse=True)),
        threshold=thresholds[0],
    )


def _place(row: SweepRow) -> tuple[int, int, float, int, int]:
    ways = ("sparse", "soft", "epsilon", "hard", None)
    explore, update = ways.index(row.explore), ways.index(row.update)
    return explore, update, -(row.alpha or 0.0), row.actions or 0, row.seed


def times_of(rows: Sequence[SweepRow]) -> Times:
    """The times to the threshold of some runs."""
    return Times(
        np.array([row.reached or row.episodes for row in rows], np.float64),
        np.array([row.reached is not None for row in rows]),
    )


@dataclass(frozen=True, eq=False)
class Ranking:
    """Algorithms in order, best first, and the bootstrap distribution of the first five."""

    names: tuple[str, ...]
    """Those with runs at every number of actions of which any has, by `RULE`."""
    top: Array
    """Which of them are among the first five; tied ones share the last places."""
    top_by_mean: Array
    """Which of them are the first five by the paper's rule, the mean of their mean returns."""
    first: Array | None
    """`top` in bootstrap draws, (draws, names); None where a cell has one run."""


def ranking(sweep: SweepRuns) -> Ranking:
    """Order the algorithms by return."""
    count = {one: sum((one, n) in sweep.cells for n in sweep.actions) for one in sweep.algorithms}
    names = [one for one in count if count[one] == max(count.values())]
    actions = [n for n in sweep.actions if all((one, n) in sweep.cells for one in names)]
    if not names or not actions:
        return Ranking((), np.zeros(0), np.zeros(0), None)
    grid = [[(one, n) for n in actions] for one in names]
    mean = np.array([[sweep.greedy[c].mean() for c in cells] for cells in grid])
    time = np.array([[sweep.capped_episodes[c].mean() for c in cells] for cells in grid])
    score, average = _score(mean, time), np.round(mean.mean(1), 9)
    order = np.lexsort((-average, score))
    first = None
    if all(len(sweep.greedy[c]) > 1 for cells in grid for c in cells):
        means, late = (
            np.stack([np.stack([sweep.weights[c] @ v[c] for c in cells], 1) for cells in grid], 1)
            for v in (sweep.greedy, sweep.capped_episodes)
        )
        first = _first(_score(means, late))[:, order]
    top, by_mean = _first(score)[order], _first(-average)[order]
    return Ranking(tuple(names[i] for i in order), top, by_mean, first)


def _score(mean: Array, time: Array) -> Array:
    """Smaller is better; (..., algorithms) from (..., algorithms, actions)."""
    rank = rankdata(-np.round(mean, 9), axis=-2).mean(-1)
    return np.asarray(rank + 1e-6 * rankdata(np.round(time.mean(-1), 9), axis=-1))


def _first(score: Array) -> Array:
    """Which are among the smallest five; ties at the fifth place share what is left of it.

    >>> _first(np.array([1.0, 4, 2, 4, 3, 0, 9])).tolist()
    [1.0, 0.5, 1.0, 0.5, 1.0, 1.0, 0.0]
    """
    score = np.round(score, 9)
    before = rankdata(score, method="min", axis=-1) - 1
    equal = rankdata(score, method="max", axis=-1) - before
    return np.asarray(np.clip((TOP - before) / equal, 0.0, 1.0))
