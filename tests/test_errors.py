"""`InvalidInput` carries its culprit and remedy as fields, and survives pickling."""

import pickle

import pytest

from tsallax import checks
from tsallax.errors import InvalidInput, place_in_user_code


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


def test_the_place_of_an_error_is_in_the_code_of_the_user_not_in_that_of_packages():
    def fails():
        checks.count("n", 0)

    with pytest.raises(InvalidInput) as caught:
        fails()
    line = fails.__code__.co_firstlineno + 1
    assert place_in_user_code(caught.value) == f" (test_errors.py, line {line})"
    assert place_in_user_code(ValueError("never raised")) == ""


def test_errors_survive_pickling():
    error = InvalidInput("problem", source="a", add=("b", 1), omit="c")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is InvalidInput
    assert vars(again) == vars(error)
