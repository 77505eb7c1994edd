"""The runs of a table by task, levels and agent: means, intervals, speeds and curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tsallax.errors import InvalidInput
from tsallax.paper.fleets.row_files import Point
from tsallax.paper.suites.suite_rows import SuiteRow
from tsallax.paper.suites.suite_tasks import OURS, SUITES, Suite
from tsallax.paper.tables.formatting import shown
from tsallax.paper.tables.mean_curves import DRAWS
from tsallax.statistics import Array, Estimate, mean_curve, mean_of, resample

POINTS = 100
"""The number of points of a curve."""
SAME_STEPS = 1.01
"""Up to this ratio of their steps, runs count as equally long."""
Place = tuple[str, int | None]
"""A task and the levels of its actions."""


@dataclass(frozen=True, eq=False)
class SuiteCell:
    """The runs of one agent at one place, one for each seed."""

    place: Place
    agent: str
    rows: tuple[SuiteRow, ...]

    @cached_property
    def weights(self) -> Array:
        """Bootstrap weights of the runs."""
        return resample({"runs": len(self.rows)})["runs"]

    @cached_property
    def greedy(self) -> Array:
        """Mean returns without exploration, after training."""
        return np.array([row.greedy for row in self.rows])

    @property
    def mean(self) -> Estimate:
        """The mean greedy return with its interval."""
        return mean_of(self.greedy, self.weights)

    def greedy_at(self, step: int) -> Array | None:
        """Greedy returns of the evaluation after `step` steps; None where a run has none."""
        found = [_at(row.evaluations, step) for row in self.rows]
        return None if None in found else np.array(found, np.float64)

    def mean_at(self, step: int) -> Estimate | None:
        """The mean of `greedy_at` with its interval."""
        found = self.greedy_at(step)
        return None if found is None else mean_of(found, self.weights)

    @property
    def speed(self) -> Estimate:
        """Steps per second with its interval."""
        return mean_of(np.array([row.steps_per_second for row in self.rows]), self.weights)

    def is_as_long_as(self, other: "SuiteCell") -> bool:
        """Whether the runs of two agents have the same steps, up to the rounding of cycles."""
        return are_equal([self.rows[0].steps, other.rows[0].steps])

    def curve(self, kind: str) -> tuple[Array, Array, Array, Array] | None:
        """Steps, mean over the runs and both ends of its interval, of "training" or "evaluations".

        Runs are interpolated between their points; the curve ends where the shortest does.
        """
        lines = [np.array(getattr(row, kind), np.float64) for row in self.rows]
        if any(len(line) < 1 for line in lines):
            return None
        first, last = max(line[0, 0] for line in lines), min(line[-1, 0] for line in lines)
        if first > last:
            return None
        fewest = min(len(line) for line in lines)
        x = np.linspace(first, last, min(POINTS, fewest)) if fewest > 1 else np.array([last])
        runs = np.stack([np.interp(x, line[:, 0], line[:, 1]) for line in lines])
        return x, *mean_curve(runs, self.weights[:DRAWS])


def are_equal(steps: Sequence[int]) -> bool:
    """Whether runs of these steps count as equally long: cycles and programs round them."""
    return max(steps) <= SAME_STEPS * min(steps)


def label(place: Place) -> str:
    """A task and its levels in words.

    >>> label(("Hopper", 3)), label(("CartPole-v1", None))
    ('Hopper, 3 levels', 'CartPole-v1')
    """
    return place[0] if place[1] is None else f"{place[0]}, {place[1]} levels"


def decimals(value: float) -> int:
    """Decimals of a return, so that it has about three digits.

    >>> decimals(0.61), decimals(-76.6), decimals(9360.0)
    (2, 1, 0)
    """
    return 2 if abs(value) < 10 else 1 if abs(value) < 1000 else 0


def shown_return(mean: Estimate | None) -> str:
    """A mean return with its interval, or nothing."""
    return "" if mean is None else shown(mean, decimals(mean.value))


def _at(points: Sequence[Point], step: int) -> float | None:
    """The return at the first point within a hundredth after a step."""
    return next((value for at, value, _ in points if step <= at <= SAME_STEPS * step), None)


@dataclass(frozen=True, eq=False)
class SuiteRuns:
    """All runs of a suite."""

    suite: Suite
    rows: tuple[SuiteRow, ...]
    cells: dict[tuple[Place, str], SuiteCell]
    places: tuple[Place, ...]
    """The places of our agents if there are runs of them, else those of the peer."""
    agents: tuple[str, ...]

    def cell(self, place: Place, agent: str) -> SuiteCell | None:
        """The runs of an agent at a place; those of a peer have no levels and count for any."""
        found = self.cells.get((place, agent))
        if found is None and agent == self.suite.peer:
            return self.cells.get(((place[0], None), agent))
        return found


def gather_suite(name: str, rows: Sequence[SuiteRow]) -> SuiteRuns:
    """Sort the runs of a suite into cells, in the order of the suite."""
    suite = SUITES[name]
    mine = [row for row in rows if row.suite == name]
    if not mine:
        raise InvalidInput(f"no runs of {name}: train it first")
    tasks = list(suite.tasks)
    for row in mine:
        if row.task not in tasks:
            raise InvalidInput(f"{name} has no task {row.task!r}: choose from {', '.join(tasks)}")
    mine.sort(key=lambda row: (tasks.index(row.task), row.levels or 0, _rank(row.agent), row.seed))
    found: dict[tuple[Place, str], list[SuiteRow]] = {}
    for row in mine:
        found.setdefault(((row.task, row.levels), row.agent), []).append(row)
    for (place, agent), runs in found.items():
        if len({row.steps for row in runs}) > 1 or len({row.evaluated for row in runs}) > 1:
            raise InvalidInput(
                f"runs of {agent} on {place[0]} have different steps or evaluations: keep one kind"
            )
    agents = sorted({row.agent for row in mine}, key=_rank)
    ours = [place for place, agent in found if agent != suite.peer]
    return SuiteRuns(
        suite=suite,
        rows=tuple(mine),
        cells={key: SuiteCell(*key, tuple(runs)) for key, runs in found.items()},
        places=tuple(dict.fromkeys(ours or [place for place, _ in found])),
        agents=tuple(agents),
    )


def _rank(agent: str) -> tuple[int, str]:
    """Ours first, then the ways to explore in their order, then peers."""
    order = (OURS, "sparse", "soft", "epsilon")
    stem = agent.partition("-")[0]
    return (order.index(stem) if stem in order else len(order)), agent
