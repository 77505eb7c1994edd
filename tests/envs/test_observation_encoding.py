"""Observations are stored as integers, as images, or as the vectors of Gymnasium's `flatten`."""

import json
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces.utils import flatten
from gymnasium.vector.utils import concatenate, create_empty_array

from refusals import refused
from tsallax.envs.gymnasium.spaces import observation_space
from tsallax.envs.observation_encoding import ObservationEncoding
from tsallax.envs.observation_format import ObservationFormat

PAIR = spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(2))
VECTORS: dict[str, Any] = {
    "box": spaces.Box(-1, 1, (4,)),
    "matrix": spaces.Box(-1, 1, (2, 3), np.float64),
    "a number": spaces.Box(-1, 1, ()),
    "few bytes": spaces.Box(0, 255, (2, 3), np.uint8),
    "multi discrete": spaces.MultiDiscrete([[2, 3], [1, 4]], start=[[0, 5], [0, 0]]),
    "multi binary": spaces.MultiBinary((2, 2)),
    "tuple": spaces.Tuple([spaces.Discrete(32), spaces.Discrete(11, start=2), spaces.Discrete(2)]),
    "dict": spaces.Dict(
        position=spaces.Box(-1, 1, (2,)),
        inner=spaces.Dict(hand=spaces.Discrete(3), eyes=spaces.MultiBinary(2)),
        both=spaces.Tuple([spaces.MultiDiscrete([2, 3]), spaces.Box(0, 1, (1, 1))]),
    ),
}


def encoding_of(space: Any, flat: bool = False) -> ObservationEncoding:
    return ObservationEncoding(observation_space("Env", space), flat)


@pytest.mark.parametrize("case", VECTORS)
def test_vectors_are_those_of_gymnasium(case: str) -> None:
    space = VECTORS[case]
    space.seed(0)
    encoding, several = encoding_of(space), [space.sample() for _ in range(5)]
    expected = [flatten(space, value).ravel() for value in several]
    rows = encoding.encode(several)
    assert rows.dtype == np.float32
    assert encoding.format == ObservationFormat.vector(rows.shape[1])
    np.testing.assert_array_equal(rows, np.array(expected, np.float32))
    one, single = encoding.encode_given(several[0])
    assert single
    np.testing.assert_array_equal(one[0], rows[0])
    listed, single = encoding.encode_given(several)
    assert not single
    np.testing.assert_array_equal(listed, rows)
    empty: Any = create_empty_array(space, 5)
    stacked, single = encoding.encode_given(concatenate(space, several, empty))
    assert not single
    np.testing.assert_array_equal(stacked, rows)


def test_discrete_observations_are_integers_from_zero() -> None:
    encoding = encoding_of(spaces.Discrete(5, start=2))
    assert encoding.format == ObservationFormat.integer(5)
    rows = encoding.encode([2, np.int64(6)])
    assert rows.dtype == np.int32
    assert rows.tolist() == [0, 4]
    assert encoding.encode_given(np.array([3, 4]))[0].tolist() == [1, 2]
    assert encoding.encode_given(3)[1]
    assert encoding_of(spaces.Discrete(3), flat=True).encode([1]).tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("shape", "stored"),
    [
        ((96, 80, 3), (96, 80, 3)),
        ((84, 84), (84, 84, 1)),
        ((4, 84, 80), (84, 80, 4)),
        ((1, 8, 8), (8, 8, 1)),
        ((10, 10, 10), (10, 10, 10)),
    ],
)
def test_images_have_their_channels_last(shape: Any, stored: Any) -> None:
    space = spaces.Box(0, 255, shape, np.uint8)
    encoding = encoding_of(space)
    assert encoding.format == ObservationFormat.image(*stored)
    one = space.sample()
    image, single = encoding.encode_given(one)
    assert single
    assert image.dtype == np.uint8
    assert image.shape == (1, *stored)
    moved = one if one.ndim < 3 or shape == stored else np.moveaxis(one, 0, 2)
    np.testing.assert_array_equal(image[0], moved.reshape(stored))
    with refused("has the type float32, should be uint8"):
        encoding.encode([one.astype(np.float32)])


def test_images_of_booleans_become_bytes() -> None:
    space = spaces.Box(0, 1, (10, 10, 4), np.bool_)
    encoding = encoding_of(space)
    assert encoding.format == ObservationFormat.image(10, 10, 4)
    one = space.sample()
    (image,), single = encoding.encode_given(one)
    assert single
    assert image.dtype == np.uint8
    np.testing.assert_array_equal(image, 255 * one)
    with refused("has the type uint8, should be bool"):
        encoding.encode([image])


def test_what_is_stored_is_a_copy() -> None:
    for space in (spaces.Box(0, 255, (8, 8), np.uint8), spaces.Box(-1, 1, (3,))):
        buffer = np.zeros((1, *space.shape), space.dtype)
        stored = encoding_of(space).encode(buffer)
        buffer += 1
        assert not stored.any()


@pytest.mark.parametrize(
    ("space", "wrong", "message"),
    [
        (spaces.Box(-1, 1, (2,)), [np.zeros(3)], "of shape (3,), should be (2,)"),
        (spaces.Box(-1, 1, (2,)), [[1.0], [1.0, 2.0]], "should be numbers of Box"),
        (spaces.Box(-1, 1, (1,)), [["a"]], "should be numbers of Box"),
        (spaces.Discrete(3), [3], "3 is not in Discrete(3)"),
        (spaces.Discrete(3), [1.5], "type float64, should be integers of"),
        (spaces.MultiDiscrete([2, 3]), [[1, 3]], "[1, 3] is not in MultiDiscrete"),
        (spaces.Dict(a=spaces.Discrete(2)), [{"b": 1}], "without the key 'a' of its Dict"),
        (spaces.Dict(a=spaces.Discrete(2)), [{"b": 1}], "space, but with the key 'b'"),
        (PAIR, [{"a": 1}], "without the key 'b' of its Dict space"),
        (PAIR, [{}], "without the keys 'a', 'b' of its Dict space"),
        (PAIR, [{"a": 1, "b": 1, "c": 1}], "with the key 'c', not in its Dict space"),
        (spaces.Dict(a=spaces.Discrete(2)), [3], "3 is not in Dict"),
        (spaces.Tuple([spaces.Discrete(2)]), [(1, 1)], "is not in Tuple"),
    ],
)
def test_what_is_not_in_the_space_is_refused(space: Any, wrong: Any, message: str) -> None:
    with refused(message):
        encoding_of(space).encode(wrong)
    with refused(message):
        encoding_of(space).encode_given(wrong if len(wrong) > 1 else wrong[0])


@pytest.mark.parametrize("case", VECTORS)
def test_a_description_survives_a_file(case: str) -> None:
    encoding = encoding_of(VECTORS[case])
    again = ObservationEncoding.from_description(json.loads(json.dumps(encoding.describe())))
    assert again == encoding
