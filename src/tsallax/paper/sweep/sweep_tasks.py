"""The paper's deep experiments: two tasks, 27 variants of Q-learning, DDPG, and its results."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from tsallax.errors import InvalidInput

EXPLORE = {"sparse": "Sparse", "soft": "Soft", "epsilon": "EpsGrdy"}
UPDATE = {"sparse": "SparseBellman", "soft": "SoftBellman", "hard": "Bellman"}
ALPHAS = (1.0, 0.1, 0.01)


@dataclass(frozen=True)
class SweepTask:
    """An environment with the protocol of the paper."""

    name: str
    title: str
    env: str
    dimensions: int
    """The number of dimensions of its actions."""
    actions: tuple[int, ...]
    """The paper's discretisations: numbers of actions in all."""
    episodes: int
    steps: int
    """The steps after which a run ends, whatever its episodes."""
    threshold: float
    """The return at which the task counts as learned."""
    length: int
    """The most steps of an episode."""
    paper_name: str
    """Its name in the paper's tables."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the learners of all variants, where the defaults do not suit the task."""

    def levels(self, actions: int) -> int:
        """The levels of each dimension that make this number of actions.

        >>> TASKS["reacher"].levels(961)
        31
        """
        levels: int = round(max(float(actions), 0.0) ** (1 / self.dimensions))
        if levels < 2 or levels**self.dimensions != actions:
            near = max(2, levels) ** self.dimensions
            raise InvalidInput(
                f"{self.name} cannot have {actions} actions, an even grid in {self.dimensions} "
                f"dimension{'s' * (self.dimensions > 1)}: {near} is one"
            )
        return levels


REACHER = SweepTask(
    "reacher", "Reacher", "Reacher-v5", 2, (9, 121, 961, 2601), 10_000, 500_000, -6.0, 50,
    "reacher",
)  # fmt: skip
PENDULUM = SweepTask(
    "pendulum", "Inverted pendulum", "InvertedPendulum-v5", 1, (3, 101, 1001, 2001), 3_000,
    400_000, 980.0, 1000, "inverted_pendulum", {"epsilon": "1:0.02:10000"},
)  # fmt: skip
TASKS = {task.name: task for task in (REACHER, PENDULUM)}


@dataclass(frozen=True)
class Variant:
    """A way to explore, a way to update and a coefficient; DDPG has none of them."""

    explore: str | None = None
    update: str | None = None
    alpha: float | None = None

    @property
    def name(self) -> str:
        """The paper's name.

        >>> Variant("epsilon", "soft", 0.1).name
        'EpsGrdy+SoftBellman-0.1'
        """
        return self.stem if self.alpha is None else f"{self.stem}-{self.alpha:g}"

    @property
    def stem(self) -> str:
        """The name without alpha."""
        if self.explore is None or self.update is None:
            return "DDPG"
        return f"{EXPLORE[self.explore]}+{UPDATE[self.update]}"


def _variants(alphas: Sequence[float]) -> tuple[Variant, ...]:
    return tuple(Variant(e, u, a) for e in EXPLORE for u in UPDATE for a in alphas)


VARIANTS = _variants(ALPHAS)
"""The 27 of the paper. It counts epsilon-greedy with the plain update three times, once for each
alpha, which nothing in it depends on: three times the seeds."""
DDPG_VARIANT = Variant()


def choose_variants(
    names: Sequence[str] | None, alphas: Sequence[float] | None = None
) -> list[Variant]:
    """Variants by name, in the paper's order; a name without alpha stands for all alphas.

    >>> [v.name for v in choose_variants(["Sparse+SparseBellman", "DDPG"], [0.1])]
    ['Sparse+SparseBellman-0.1', 'DDPG']
    """
    for alpha in alphas or ():
        if not 0 < alpha < float("inf"):
            raise InvalidInput(f"alpha must be positive, got {alpha:g}")
    chosen = ALPHAS if alphas is None else sorted(set(alphas), reverse=True)
    every = (*_variants(chosen), DDPG_VARIANT)
    if names is None:
        return list(every)
    known = {v.name.lower() for v in every} | {v.stem.lower() for v in every}
    wanted = [name.lower() for name in names]
    for given in names:
        if given.lower() not in known:
            stems = dict.fromkeys(v.stem for v in every)
            raise InvalidInput(
                f"unknown variant {given!r}: choose from {', '.join(stems)}, with an alpha "
                f"such as {every[0].name} or without for all of them"
            )
    return [v for v in every if v.name.lower() in wanted or v.stem.lower() in wanted]


@dataclass(frozen=True)
class PaperResult:
    """A cell of the paper's tables."""

    expected_return: float
    episodes: int | None
    """The episodes to the threshold, where the paper gives them."""


def paper_results(task: SweepTask) -> dict[tuple[str, int | None], PaperResult]:
    """The paper's numbers by algorithm and number of actions, None for DDPG's continuous ones."""
    text = (files("tsallax.paper.sweep") / "results.csv").read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        if row["env"] == task.paper_name:
            actions = int(row["actions"]) if row["actions"].isdecimal() else None
            episodes = row["episodes_to_threshold"]
            taken = int(float(episodes)) if episodes else None
            found[row["algorithm"], actions] = PaperResult(float(row["expected_return"]), taken)
    return found
