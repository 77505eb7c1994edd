"""Products of ranges: indices and coordinates are each other's inverses."""

import itertools

import jax
import numpy as np
import pytest

from tsallax import InvalidInput
from tsallax.planning.function_space import read_space
from tsallax.planning.precision import double_precision

GIVEN = [5, (2, 3), ([-1.5, 0.0, 4.0], 2), (np.arange(-2, 3), [1.0, 10.0, 100.0])]


@pytest.mark.parametrize("given", GIVEN)
def test_coordinates_and_indices_are_inverse_and_the_last_axis_varies_fastest(given):
    parts = given if isinstance(given, tuple) else (given,)
    values = [range(p) if isinstance(p, int) else list(p) for p in parts]
    expected = list(itertools.product(*values))
    with double_precision():
        space = read_space("states", given)
        assert space.size == len(expected)
        index = np.arange(space.size)
        coordinates = jax.jit(jax.vmap(space.element))(index)
        found, inside = jax.jit(jax.vmap(space.index))(coordinates)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(coordinates)]
    assert [tuple(float(x[i]) for x in leaves) for i in range(space.size)] == expected
    assert isinstance(coordinates, tuple) == isinstance(given, tuple)
    np.testing.assert_array_equal(found, index)
    assert inside.all()


@pytest.mark.parametrize(
    ("given", "outside"),
    [(5, 5), (5, -1), (5, 1.5), (5, np.nan), ([0.0, 1.0, 3.0], 2.0), ([0.0, 0.5, 1.0], 0.25)],
)
def test_what_is_no_coordinate_is_outside(given, outside):
    with double_precision():
        index, inside = jax.jit(read_space("states", given).index)(outside)
    assert not inside
    assert 0 <= index < 5


def test_an_element_is_described_by_its_coordinates():
    space = read_space("states", (2, 3, 4))
    assert space.sizes == (2, 3, 4)
    assert space.describe(23) == "(1, 2, 3)"


@pytest.mark.parametrize("given", [0, -1, (), "ab", [1.0, 1.0], [2, 1], [np.inf], [[1, 2]], True])
def test_what_is_no_space_is_refused(given):
    with pytest.raises(InvalidInput, match="states"):
        read_space("states", given)


def test_sizes_in_a_list_are_refused_with_the_way_out():
    with pytest.raises(InvalidInput, match="sizes of a product are a tuple"):
        read_space("states", [3, 2])
