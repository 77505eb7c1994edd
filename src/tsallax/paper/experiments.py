"""The registry of experiments: everything that lists or names one reads it here.

A figure is a module of `tsallax.paper.figures` with a function `compute(report, **options) ->
Result`. A sweep trains agents for a task of the paper, of `sweep.sweep_tasks`; a suite, of
`suites.suite_tasks`, trains them for a table that is not in the paper.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from tsallax.paper.result import Progress, Result
from tsallax.paper.suites.suite_tasks import CLASSIC, CONTROL, MINATAR
from tsallax.paper.sweep.sweep_tasks import PENDULUM, REACHER

FIGURE, SWEEP, SUITE = "figure", "sweep", "suite"
"""The kinds of experiments."""


@dataclass(frozen=True)
class Experiment:
    """An experiment; `name` is the stem of its files."""

    name: str
    kind: str
    section: str
    """Its entry in the menu of the page."""
    title: str
    help: str
    quick: Mapping[str, Any] = field(default_factory=dict)
    """Options of `compute` with which a figure takes seconds."""
    module: str = ""
    """The module of a figure in `tsallax.paper.figures`, where that has another name."""

    def compute(self, report: Progress, *, quick: bool = False) -> Result:
        """Compute a figure."""
        module = import_module(f"tsallax.paper.figures.{self.module or self.name}")
        result: Result = module.compute(report, **(self.quick if quick else {}))
        return replace(result, title=self.title, quick=quick)


EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "figure1",
            FIGURE,
            "Figure 1",
            "Figure 1: sparse and softmax policies as the number of actions grows",
            "multi-goal point mass: sparse and softmax policies of 9 and 49 actions",
            {"grid": 13},
        ),
        Experiment(
            "figure2a",
            FIGURE,
            "Figure 2a",
            "Figure 2a: performance gap against the number of actions",
            "unicycle: the cost of regularisation against the number of actions",
            {"actions": (9, 25, 49), "grid": (9, 9, 8)},
        ),
        Experiment(
            "figure2b",
            FIGURE,
            "Figure 2b",
            "Figure 2b: support ratio against alpha",
            "unicycle: the support ratio against alpha",
            {"alphas": (0.1, 1.0, 10.0, 100.0), "grid": (9, 9, 8)},
        ),
        Experiment(
            "theorems",
            FIGURE,
            "Theorems",
            "Every lemma and theorem, checked",
            "every lemma and theorem, checked on many random MDPs",
            {"cases": 6},
            module="theorem_table",
        ),
        Experiment(
            REACHER.name,
            SWEEP,
            REACHER.title,
            f"Figure 4: {REACHER.title}",
            "27 variants of deep Q-learning and DDPG: 327 runs of 10,000 episodes",
        ),
        Experiment(
            PENDULUM.name,
            SWEEP,
            PENDULUM.title,
            f"Figure 3: {PENDULUM.title}",
            "inverted pendulum: the same variants, 327 runs of 3,000 episodes",
        ),
        Experiment(
            CLASSIC.name,
            SUITE,
            CLASSIC.title,
            CLASSIC.title,
            "presets on CartPole, Acrobot, LunarLander, Taxi, ..., 10 seeds each",
        ),
        Experiment(
            CONTROL.name,
            SUITE,
            CONTROL.title,
            CONTROL.title,
            "factored actions on eight MuJoCo tasks, 1 million steps, 5 seeds",
        ),
        Experiment(
            MINATAR.name,
            SUITE,
            MINATAR.title,
            MINATAR.title,
            "presets on two games of MinAtar, 10 seeds each; needs the extra minatar",
        ),
    )
}
"""The experiments by name, in the order of the page."""


def names_of(*kinds: str) -> tuple[str, ...]:
    """The names of the experiments of these kinds, in the order of the page.

    >>> names_of(FIGURE)
    ('figure1', 'figure2a', 'figure2b', 'theorems')
    """
    return tuple(name for name, experiment in EXPERIMENTS.items() if experiment.kind in kinds)
