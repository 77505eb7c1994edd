"""The registry of experiments: everything that lists or names one reads it here.

An experiment of planning is a module of `tsallax.paper.figures` with a function
`compute(report, **options) -> Result`; one of learning is a task, of which a sweep trains agents.
Those are the paper's; the tables of `tsallax.paper.suites` are further ones.

>>> [experiment.name for experiment in EXPERIMENTS.values() if experiment.task is None]
['figure1', 'figure2a', 'figure2b', 'theorems']
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from tsallax.paper.result import Progress, Result
from tsallax.paper.suites.suite_tasks import CLASSIC, CONTROL, Suite
from tsallax.paper.sweep.tasks import PENDULUM, REACHER, Task


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper; `name` is the stem of its files."""

    name: str
    section: str
    """Its entry in the menu of the page."""
    title: str
    help: str
    quick: Mapping[str, Any] = field(default_factory=dict)
    """Options of `compute` with which it takes seconds."""
    module: str = ""
    """Its module in `tsallax.paper.figures`, where that has another name."""
    task: Task | None = None
    """What agents learn; None for an experiment of planning."""

    def compute(self, report: Progress, *, quick: bool = False) -> Result:
        """Run an experiment of planning."""
        module = import_module(f"tsallax.paper.figures.{self.module or self.name}")
        result: Result = module.compute(report, **(self.quick if quick else {}))
        return replace(result, title=self.title, quick=quick)


def _learning(task: Task, figure: str, help: str) -> Experiment:
    return Experiment(task.name, task.title, f"{figure}: {task.title}", help, task=task)


EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "figure1",
            "Figure 1",
            "Figure 1: sparse and softmax policies as the number of actions grows",
            "multi-goal point mass: sparse and softmax policies of 9 and 49 actions",
            {"grid": 13},
        ),
        Experiment(
            "figure2a",
            "Figure 2a",
            "Figure 2a: performance gap against the number of actions",
            "unicycle: the cost of regularisation against the number of actions",
            {"actions": (9, 25, 49), "grid": (9, 9, 8)},
        ),
        Experiment(
            "figure2b",
            "Figure 2b",
            "Figure 2b: support ratio against alpha",
            "unicycle: the support ratio against alpha",
            {"alphas": (0.1, 1.0, 10.0, 100.0), "grid": (9, 9, 8)},
        ),
        Experiment(
            "theorems",
            "Theorems",
            "Every lemma and theorem, checked",
            "every lemma and theorem, checked on many random MDPs",
            {"cases": 6},
            module="theorem_table",
        ),
        _learning(
            REACHER,
            "Figure 4",
            "27 variants of deep Q-learning and DDPG: 327 runs of 10,000 episodes",
        ),
        _learning(PENDULUM, "Figure 3", "likewise, inverted pendulum"),
    )
}
"""The paper's experiments by name, in the order of the page."""

PLANNING = tuple(name for name, experiment in EXPERIMENTS.items() if experiment.task is None)
"""Names of the experiments of planning."""
LEARNING = tuple(name for name in EXPERIMENTS if name not in PLANNING)
"""Names of the experiments of learning."""


def _beyond(suite: Suite, help: str) -> Experiment:
    return Experiment(suite.name, suite.title, suite.title, help)


TABLES: Mapping[str, Experiment] = {
    table.name: table
    for table in (
        _beyond(CLASSIC, "presets on CartPole, Acrobot, LunarLander, Taxi, ..., 10 seeds each"),
        _beyond(CONTROL, "factored actions on eight MuJoCo tasks, 1 million steps, 5 seeds"),
    )
}
"""Tables of learning beyond the paper's, by name."""
