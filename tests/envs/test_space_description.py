"""Descriptions of spaces are plain data that gives the same space again, and refuse nonsense."""

import json

import numpy as np
import pytest

from refusals import refused
from tsallax.envs.space_description import SpaceDescription

DISCRETE = SpaceDescription(kind="discrete", dtype="int64", sizes=(3,), start=(-1,))
BOX = SpaceDescription(kind="box", shape=(2, 1), dtype="float32", low=(0.0, 0.0), high=(1.0, 2.0))
NESTED = SpaceDescription(
    kind="dict",
    names=("b", "a"),
    parts=(BOX, SpaceDescription(kind="tuple", parts=(DISCRETE, BOX))),
)


@pytest.mark.parametrize("space", [DISCRETE, BOX, NESTED], ids=str)
def test_a_description_survives_a_file(space: SpaceDescription) -> None:
    text = json.dumps(space.describe())
    assert SpaceDescription.from_description(json.loads(text)) == space


def test_leaves_are_in_the_order_of_the_space() -> None:
    assert list(NESTED.leaves()) == [BOX, DISCRETE, BOX]
    assert NESTED.keys == ("b", "a")
    assert NESTED.parts[1].keys == (0, 1)


def test_a_space_is_named_as_gymnasium_names_it() -> None:
    assert str(NESTED) == (
        "Dict(b: Box((2, 1), float32), a: Tuple(Discrete(3, start=-1), Box((2, 1), float32)))"
    )


def test_spaces_are_compared_without_the_types_of_arrays() -> None:
    other = SpaceDescription(kind="discrete", dtype="int32", sizes=(3,), start=(-1,))
    assert other != DISCRETE
    assert other.without_types() == DISCRETE.without_types()


def test_integers_are_counted_from_zero_or_refused() -> None:
    assert DISCRETE.check_integers(np.array([-1, 1])).tolist() == [[0], [2]]
    with refused("2 is not in Discrete(3, start=-1)"):
        DISCRETE.check_integers(np.array([0, 2]))
    with refused("has the type float64, should be integers"):
        DISCRETE.check_integers(np.array([0.0]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "graph"}, "unknown kind of space 'graph'"),
        ({"kind": "tuple"}, "a tuple of 0 spaces"),
        ({"kind": "dict", "names": ("a", "a"), "parts": (BOX, BOX)}, "a dict of 2 spaces"),
        ({"kind": "discrete", "dtype": "int64", "sizes": (0,), "start": (0,)}, "at least 1"),
        ({"kind": "multi_discrete", "dtype": "int64", "shape": (2,)}, "with the sizes"),
    ],
)
def test_spaces_that_cannot_be_are_refused(fields: dict[str, object], message: str) -> None:
    with refused(message):
        SpaceDescription(**fields)  # type: ignore[arg-type]
