"""The registry of experiments agrees with the modules, tasks and options that it names."""

import inspect
from importlib import import_module

from tsallax.paper.experiments import EXPERIMENTS, LEARNING, PLANNING
from tsallax.paper.result import Result
from tsallax.paper.sweep.tasks import TASKS


def test_every_experiment_is_of_planning_or_of_learning():
    assert (*PLANNING, *LEARNING) == tuple(EXPERIMENTS)
    assert {name: EXPERIMENTS[name].task for name in LEARNING} == TASKS
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())


def test_quick_options_are_options_of_the_function_and_passed_on(monkeypatch):
    empty = Result("", (), {}, (), ())
    for experiment in (EXPERIMENTS[name] for name in PLANNING):
        module, seen = (
            import_module(f"tsallax.paper.figures.{experiment.module or experiment.name}"),
            [],
        )
        assert experiment.quick.keys() <= inspect.signature(module.compute).parameters.keys()
        fake = lambda report, seen=seen, **o: seen.append(o) or empty  # noqa: E731
        monkeypatch.setattr(module, "compute", fake)
        assert experiment.compute(print, quick=True).title == experiment.title
        experiment.compute(print)
        assert seen == [experiment.quick, {}]
