"""Numbers of actions are elements of their space: each once, in order, joint or factored."""

import json
import math
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from refusals import refused
from tsallax.envs.action_format import ActionFormat
from tsallax.envs.gymnasium.spaces import action_space

SPACES: dict[str, Any] = {
    "discrete": (spaces.Discrete(3, start=-1), None, (3,), False),
    "multi discrete": (spaces.MultiDiscrete([3, 2], start=[1, 0]), None, (3, 2), True),
    "a matrix": (spaces.MultiDiscrete([[3, 2], [1, 4]]), None, (3, 2, 1, 4), True),
    "binary": (spaces.MultiBinary((2, 2)), None, (2, 2, 2, 2), True),
    "box": (spaces.Box(-1, 1, (2,)), (3, 2), (3, 2), False),
    "a number": (spaces.Box(-1, 1, ()), 5, (5,), False),
    "three dimensions": (spaces.Box(-1, 1, (3,)), 3, (3, 3, 3), True),
    "tuple": (spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (2,))]), 3, (2, 3, 3), True),
    "dict": (
        spaces.Dict(
            fire=spaces.Discrete(2),
            arm=spaces.Tuple([spaces.MultiBinary(1), spaces.Box(-2, 2, (1,), np.float64)]),
        ),
        (4,),
        None,
        True,
    ),
}


def format_of(case: str, factored: bool | None = None) -> ActionFormat:
    space, actions, *_ = SPACES[case]
    return ActionFormat.of(action_space("Env", space), actions, factored=factored)


def plain(action: Any) -> Any:
    """An element of a space as something that can be compared."""
    if isinstance(action, dict):
        return tuple((key, plain(value)) for key, value in action.items())
    return tuple(map(plain, action)) if isinstance(action, tuple) else np.asarray(action).tobytes()


@pytest.mark.parametrize("case", SPACES)
def test_every_joint_number_is_another_element_of_the_space(case: str) -> None:
    form, space = format_of(case, factored=False), SPACES[case][0]
    assert form.n_actions == math.prod(form.choices or ())
    actions = form.decode(np.arange(form.n_actions))
    assert all(action in space for action in actions)
    assert len({plain(action) for action in actions}) == len(actions) == form.n_actions


@pytest.mark.parametrize("case", SPACES)
def test_factored_numbers_are_those_of_the_joint_number(case: str) -> None:
    joint, factored = format_of(case, factored=False), format_of(case, factored=True)
    assert factored.n_actions == sum(factored.choices or ())
    numbers = np.arange(joint.n_actions or 0)
    each = np.stack(np.unravel_index(numbers, joint.choices), -1)
    pairs = zip(joint.decode(numbers), factored.decode(each), strict=True)
    assert all(plain(a) == plain(b) for a, b in pairs)
    assert joint.has(numbers)
    assert not joint.has([joint.n_actions])
    assert factored.has(each)
    assert not factored.has(each + 1)


@pytest.mark.parametrize("case", SPACES)
def test_a_description_survives_a_file(case: str) -> None:
    form = format_of(case)
    again = ActionFormat.from_description(json.loads(json.dumps(form.describe())))
    assert again == form
    assert (form.factored, form.choices) == (SPACES[case][3], SPACES[case][2] or form.choices)


def test_the_dimensions_of_a_dict_are_in_the_order_of_its_keys() -> None:
    space = SPACES["dict"][0]
    action = format_of("dict").decode([[1, 0, 3] if list(space) == ["arm", "fire"] else [0, 1, 3]])
    assert list(action[0]) == list(space)
    assert action[0]["arm"][1].dtype == np.float64
    form = format_of("dict")
    assert form.choices == tuple(n for key in space for n in {"fire": (2,), "arm": (2, 4)}[key])


def test_levels_of_a_box_are_those_of_its_grid() -> None:
    form = format_of("box", factored=True)
    assert form.decode([[0, 1], [1, 0]]).tolist() == [[-1, 1], [0, -1]]
    assert form.discretize is not None
    np.testing.assert_array_equal(form.discretize.level_table, [[-1, 0, 1], [-1, 1, 0]])


def test_real_actions_have_no_choices() -> None:
    form = ActionFormat.of(action_space("Env", spaces.Box(-1, 1, (1, 2))), None, continuous=True)
    assert form.choices is form.n_actions is None
    assert form.decode([[0.5, -1.0]]).tolist() == [[[0.5, -1.0]]]
    again = ActionFormat.from_description(json.loads(json.dumps(form.describe())))
    assert again == form


@pytest.mark.parametrize(
    ("space", "actions", "options", "message"),
    [
        (spaces.Discrete(3), 3, {}, "has 3 discrete actions: leave actions out"),
        (spaces.MultiBinary(3), 3, {}, "are not continuous: leave actions out"),
        (spaces.Box(-1, 1, (2,)), None, {}, "continuous, in 2 dimensions: give actions"),
        (spaces.Box(-1, 1, (2,)), (3,), {}, "1 numbers of levels for 2 action dimensions"),
        (spaces.Box(-1, 1, (17,)), 11, {"factored": False}, "11 x 11 x ... are more than"),
        (spaces.MultiDiscrete([100] * 4), None, {"factored": False}, "such as factored=True"),
        (spaces.MultiDiscrete([10**5] * 200), None, {}, "of up to 100000 choices are too many"),
        (spaces.MultiBinary(2), None, {"continuous": True}, "not real vectors; use DeepQ"),
    ],
)
def test_what_cannot_be_numbered_is_refused(
    space: Any, actions: Any, options: Any, message: str
) -> None:
    with refused(message):
        ActionFormat.of(action_space("Env", space), actions, **options)


def test_seventeen_dimensions_of_eleven_levels_have_few_outputs() -> None:
    form = ActionFormat.of(action_space("Humanoid", spaces.Box(-0.4, 0.4, (17,))), 11)
    assert form.n_actions == 17 * 11
    np.testing.assert_allclose(form.decode([[5] * 17]), np.zeros((1, 17)), atol=1e-8)
