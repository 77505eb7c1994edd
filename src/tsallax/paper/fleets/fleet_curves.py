"""Curves of a fleet in training: episodes by step, and evaluations on the way.

They are kept beside the fleet's checkpoint, in a file that is written before it: entries of steps
after the checkpoint are dropped when both are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tsallax.checks import count, number
from tsallax.deep.fleet import Fleet
from tsallax.deep.training_schedule import passes_multiple
from tsallax.paper.fleets.row_files import Point
from tsallax.paper.result import tidy

DIGITS = 6
CURVE_POINTS = 100
"""The number of points of a curve of training returns."""


@dataclass(frozen=True)
class EvaluationProtocol:
    """How long to train, and when and for how many episodes to evaluate."""

    steps: int
    eval_every: int
    eval_episodes: int
    final_episodes: int
    milestones: tuple[int, ...]


@dataclass
class FleetCurves:
    """What happened to the members of a fleet, by step."""

    step: int = 0
    """The last one that was recorded."""
    counts: list[tuple[int, list[int]]] = field(default_factory=list)
    """Steps, and the number of episodes of each member by then."""
    evaluations: list[tuple[int, int, list[float | None]]] = field(default_factory=list)
    """Steps, episodes of each member's evaluation, and their mean returns, but of diverged ones."""

    def record(self, protocol: EvaluationProtocol, fleet: Fleet) -> int | None:
        """Record the episodes of a fleet; the number of evaluation episodes that are due."""
        before, now = self.step, fleet.steps
        self.step = now
        last = now >= protocol.steps
        if last or passes_multiple(before, now, max(1, protocol.steps // CURVE_POINTS)):
            self.counts.append((now, [len(record.returns) for record in fleet.records]))
        if last:
            return None
        if any(before < at <= now for at in protocol.milestones):
            return protocol.final_episodes
        due = passes_multiple(before, now, protocol.eval_every)
        return protocol.eval_episodes if due else None

    def training_curve(self, returns: Sequence[float], member: int) -> tuple[Point, ...]:
        """Mean returns of the episodes of a member that ended between two entries."""
        points, begin = [], 0
        for step, counts in self.counts:
            part = returns[begin : counts[member]]
            if len(part):
                points.append((step, tidy(float(np.mean(part)), DIGITS), len(part)))
            begin = counts[member]
        return tuple(points)

    def evaluation_curve(self, member: int) -> tuple[Point, ...]:
        """The greedy returns of a member on the way."""
        return tuple(
            (step, tidy(mean, DIGITS), n)
            for step, n, means in self.evaluations
            if (mean := means[member]) is not None
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain data, for the file of the fleet's state."""
        return {"counts": self.counts, "evaluations": self.evaluations}


def curves_up_to(step: int, members: int, state: Mapping[str, Any]) -> FleetCurves:
    """The curves in the state of a fleet of n members up to a step, that of its checkpoint.

    Damaged ones raise a ValueError, KeyError or TypeError.
    """
    counts = [(count("step", at), [int(n) for n in found]) for at, found in state["counts"]]
    evaluations = [
        (count("step", at), int(n), [None if x is None else number("return", x) for x in found])
        for at, n, found in state["evaluations"]
    ]
    sizes = [len(found) for _, found in counts] + [len(found) for *_, found in evaluations]
    if any(size != members for size in sizes):
        raise ValueError
    return FleetCurves(
        step,
        [entry for entry in counts if entry[0] <= step],
        [entry for entry in evaluations if entry[0] <= step],
    )
