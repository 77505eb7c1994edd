"""The registry of experiments agrees with the modules, tasks and commands that it names."""

import inspect
from importlib import import_module

import pytest

from tsallax.paper.experiments import EXPERIMENTS, LEARNING, PLANNING
from tsallax.paper.result import Result
from tsallax.paper.sweep.tasks import TASKS


def test_every_experiment_is_of_planning_or_of_learning():
    assert (*PLANNING, *LEARNING) == tuple(EXPERIMENTS)
    assert {name: EXPERIMENTS[name].task for name in LEARNING} == TASKS
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())


@pytest.mark.parametrize("name", PLANNING)
def test_quick_options_are_options_of_the_function(name):
    experiment = EXPERIMENTS[name]
    function = import_module(f"tsallax.paper.figures.{experiment.module}").compute
    assert experiment.quick.keys() <= inspect.signature(function).parameters.keys()


def test_quick_options_are_passed_on(monkeypatch):
    from tsallax.paper.figures import figure1

    made = Result("figure1", "", (), {}, (), ())
    seen = []
    monkeypatch.setattr(figure1, "compute", lambda report, **o: seen.append(o) or made)
    assert EXPERIMENTS["figure1"].compute(print, quick=True) is made
    assert EXPERIMENTS["figure1"].compute(print) is made
    assert seen == [{"grid": 13}, {}]
