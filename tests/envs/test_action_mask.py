"""Masks in all the forms that Gymnasium has become one array in the order of the outputs."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from refusals import refused
from tsallax.envs.action_format import ActionFormat
from tsallax.envs.action_mask import mask_row, mask_rows
from tsallax.envs.gymnasium.spaces import action_space

PAIR = spaces.MultiDiscrete([2, 3])
NESTED = spaces.Dict(hand=spaces.Discrete(2), legs=spaces.Tuple([PAIR, spaces.MultiBinary(1)]))


def bits(*values: int) -> Any:
    return np.array(values, np.int8)


def row(space: Any, mask: Any, factored: bool | None = None, actions: Any = None) -> list[int]:
    form = ActionFormat.of(action_space("Env", space), actions, factored=factored)
    found = mask_row(form, mask)
    assert found.dtype == np.bool_
    return found.astype(int).tolist()


@pytest.mark.parametrize(
    ("space", "mask", "expected"),
    [
        (spaces.Discrete(3), bits(1, 0, 1), [1, 0, 1]),
        (spaces.Discrete(3, start=5), [True, False, True], [1, 0, 1]),
        (PAIR, (bits(1, 0), bits(0, 1, 1)), [1, 0, 0, 1, 1]),
        (PAIR, bits(1, 0, 0, 1, 1), [1, 0, 0, 1, 1]),
        (PAIR, [[1, 0], [0, 1, 1]], [1, 0, 0, 1, 1]),
        (
            NESTED,
            {"hand": [0, 1], "legs": [[[1, 0], [1, 1, 0]], None]},
            [0, 1, 1, 0, 1, 1, 0, 1, 1],
        ),
        (spaces.MultiDiscrete([[2], [2]]), ((bits(1, 0),), (bits(0, 1),)), [1, 0, 0, 1]),
        (spaces.MultiBinary(2), np.array([[1, 0], [1, 1]], bool), [1, 0, 1, 1]),
        (
            NESTED,
            {"hand": bits(0, 1), "legs": ((bits(1, 0), bits(1, 1, 0)), None)},
            [0, 1, 1, 0, 1, 1, 0, 1, 1],
        ),
        (NESTED, {"hand": None, "legs": None}, [1] * 9),
        (NESTED, bits(0, 1, 1, 0, 1, 1, 0, 1, 1), [0, 1, 1, 0, 1, 1, 0, 1, 1]),
        (PAIR, "all", [1] * 5),
    ],
)
def test_a_mask_has_an_entry_for_each_choice(space: Any, mask: Any, expected: list[int]) -> None:
    assert row(space, mask) == expected


def test_the_mask_of_joint_actions_is_the_product_of_those_of_the_dimensions() -> None:
    each = (bits(1, 0), bits(0, 1, 1))
    joint = [int(a and b) for a in each[0] for b in each[1]]
    assert row(PAIR, each, factored=False) == joint
    assert row(PAIR, np.concatenate(each), factored=False) == joint
    assert row(PAIR, bits(0, 0, 0, 0, 0, 1), factored=False) == [0, 0, 0, 0, 0, 1]
    assert row(spaces.Box(-1, 1, (1,)), bits(0, 1, 1), actions=3) == [0, 1, 1]


def test_masks_allow_what_they_say() -> None:
    form = ActionFormat.of(action_space("Env", PAIR), None)
    mask = mask_rows(form, [bits(1, 0, 0, 1, 1), "all"], 2)
    assert form.allows(mask, [[0, 2], [1, 0]])
    assert not form.allows(mask, [[0, 0], [1, 0]])
    assert not form.allows(mask, [[1, 2], [1, 0]])
    assert form.allows(None, [[1, 2], [1, 0]])
    joint = ActionFormat.of(action_space("Env", PAIR), None, factored=False)
    assert joint.allows(mask_rows(joint, [bits(1, 0, 0, 1, 1)], 1), [2])
    assert not joint.allows(mask_rows(joint, [bits(1, 0, 0, 1, 1)], 1), [3])


def test_masks_of_several_states_are_a_list_or_stacked() -> None:
    form = ActionFormat.of(action_space("Env", PAIR), None)
    one, other = (bits(1, 0), bits(0, 1, 1)), (bits(0, 1), bits(1, 1, 1))
    expected = [[1, 0, 0, 1, 1], [0, 1, 1, 1, 1]]
    stacked = tuple(np.stack(pair) for pair in zip(one, other, strict=True))
    for given in ([one, other], stacked, np.array(expected, np.int8)):
        assert mask_rows(form, given, 2).astype(int).tolist() == expected
    with refused("is a list of 1 for 2 observations"):
        mask_rows(form, [one], 2)
    with refused("has the shape (3, 5) for 2 observations"):
        mask_rows(form, np.ones((3, 5), np.int8), 2)


@pytest.mark.parametrize(
    ("space", "mask", "message"),
    [
        (spaces.Discrete(3), bits(1, 0), "has the shape (2,), should be (3,)"),
        (spaces.Discrete(3), np.array([0.5, 1, 1]), "is of float64, [0.5, 1.0, 1.0], should be of"),
        (spaces.Discrete(3), bits(2, 0, 1), "is of int8, [2, 0, 1], should be of zeros and ones"),
        (spaces.Discrete(3), np.array(["a", "b", "c"]), "should be of zeros and ones"),
        (spaces.Discrete(3), bits(0, 0, 0), "allows no action"),
        (spaces.Discrete(3), {"a": 1}, "is a dict"),
        (PAIR, (bits(1, 1, 1), bits(1, 1)), "has the lengths [3, 2], should be [2, 3]"),
        (PAIR, (bits(1, 1), bits(0, 0, 0)), "allows no action in dimension 1"),
        (PAIR, [[1, 1], [1, 1]], "has the lengths [2, 2], should be [2, 3]"),
        (spaces.Discrete(3), 1, "is 1, should be an array of zeros and ones (int8)"),
        (NESTED, {"hand": None}, "has the parts ('hand',), should be"),
    ],
)
def test_what_is_not_a_mask_is_refused(space: Any, mask: Any, message: str) -> None:
    with refused(message):
        row(space, mask)


def test_an_array_that_may_mask_dimensions_or_combinations_is_refused() -> None:
    square = spaces.Box(-1, 1, (2,))
    with refused("is ambiguous: its 4 entries may be those of each dimension or those of all"):
        row(square, bits(1, 1, 1, 0), actions=2)
    assert row(square, (bits(1, 1), bits(1, 0)), actions=2) == [1, 0, 1, 0]
    assert row(square, bits(1, 1, 1, 0), factored=True, actions=2) == [1, 1, 1, 0]
    assert row(square, bits(1, 1, 0, 1, 1, 1), actions=3) == [1, 1, 1, 1, 1, 1, 0, 0, 0]
    assert row(square, bits(0, 0, 0, 0, 0, 0, 0, 0, 1), actions=3) == [0] * 8 + [1]
