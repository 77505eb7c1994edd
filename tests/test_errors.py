"""`InvalidInput` carries its culprit and remedy as fields, and survives pickling."""

import pickle

import pytest

from tsallax.errors import InvalidInput


def test_the_message_is_one_line_of_source_problem_and_remedy_as_the_caller_spells_it():
    def option(name, example=None):
        return f"--{name}" if example is None else f"--{name} {example}"

    error = InvalidInput("has real actions", source="Reacher-v5", add=("actions", 31))
    assert str(error) == "Reacher-v5: has real actions: give actions, such as actions=31"
    assert error.message(option).endswith("give --actions, such as --actions 31")
    assert InvalidInput("x", omit="backend").message(option) == "x: leave --backend out"
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("problem", ["is damaged", "a.npz: is damaged"])
def test_a_source_is_added_once(problem):
    error = InvalidInput(problem).of("a.npz")
    assert str(error) == "a.npz: is damaged"
    assert str(error.of("a.npz")) == "a.npz: is damaged"


def test_errors_survive_pickling():
    error = InvalidInput("problem", source="a", add=("b", 1), omit="c")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is InvalidInput
    assert vars(again) == vars(error)
