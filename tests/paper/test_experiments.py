"""The registry of experiments agrees with the modules, tasks and options that it names."""

import inspect
from importlib import import_module

from tsallax.paper.experiments import EXPERIMENTS, FIGURE, SUITE, SWEEP, names_of
from tsallax.paper.result import Result
from tsallax.paper.suites.suite_tasks import SUITES
from tsallax.paper.sweep.sweep_tasks import TASKS


def test_every_experiment_is_a_figure_a_task_or_a_suite():
    assert (*names_of(FIGURE), *names_of(SWEEP), *names_of(SUITE)) == tuple(EXPERIMENTS)
    assert names_of(SWEEP) == tuple(TASKS)
    assert names_of(SUITE) == tuple(SUITES)
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())


def test_quick_options_are_options_of_the_function_and_passed_on(monkeypatch):
    empty = Result("", (), {}, (), ())
    for experiment in (EXPERIMENTS[name] for name in names_of(FIGURE)):
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
