"""An even grid over a box of actions has its ends, its order, and says what it cannot do."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import refused
from tsallax.envs import Discretize

boxes = st.lists(
    st.tuples(st.floats(-100, 100), st.floats(0.1, 50), st.integers(2, 7)), min_size=1, max_size=3
)


@given(boxes)
def test_the_table_is_the_product_of_even_grids_with_their_ends(box: Any) -> None:
    low, high = [b[0] for b in box], [b[0] + b[1] for b in box]
    grid = Discretize.of(low, high, [b[2] for b in box])
    assert grid.table.shape == (len(grid), len(box))
    assert len(np.unique(grid.table, axis=0)) == len(grid)
    np.testing.assert_array_equal(grid.table[0], low)
    np.testing.assert_array_equal(grid.table[-1], high)
    for column, levels in zip(grid.table.T, grid.levels, strict=True):
        values = np.unique(column)
        assert len(values) == levels
        np.testing.assert_allclose(np.diff(values), (values[-1] - values[0]) / (levels - 1))


@given(boxes, st.integers(0, 10**6))
def test_every_action_is_nearest_to_itself_and_no_other_is_nearer(box: Any, seed: int) -> None:
    low, high = [b[0] for b in box], [b[0] + b[1] for b in box]
    grid = Discretize.of(low, high, [b[2] for b in box])
    np.testing.assert_array_equal(grid.nearest(grid.table), np.arange(len(grid)))
    point = np.random.default_rng(seed).uniform(np.array(low) - 1, np.array(high) + 1)
    distances = np.abs(grid.table - point).sum(axis=1)
    assert distances[grid.nearest(point)] == pytest.approx(distances.min())


def test_grids_are_values() -> None:
    grid = Discretize.of(-3.0, 3.0, 5)
    assert grid == Discretize((-3.0,), (3.0,), (5,))
    assert hash(grid) == hash(Discretize.of([-3], [3], [5]))
    assert 0.0 in grid.table  # an odd number of levels has the middle
    with pytest.raises(ValueError, match="read-only"):
        grid.table[0] = 0


@pytest.mark.parametrize(
    ("low", "high", "actions", "message"),
    [
        ([-1], [1], 1, "actions must be an integer of at least 2, got 1"),
        ([-1, -1], [1, np.inf], 3, "action dimension 1: bounds -1 to inf, needs finite ones"),
        ([-np.nan], [1], 3, "action dimension 0: bounds nan to 1, needs finite ones"),
        ([-1, -1], [1, 1], [3], "1 numbers of levels for 2 action dimensions; give one number"),
        ([1], [1], 3, "action dimension 0: low 1 is not below high 1"),
        ([-1] * 3, [1] * 3, 1001, "1001 x 1001 x 1001 = 1003003001 actions, at most 10000000"),
        ([-1], [1], True, "actions must be an integer of at least 2, got True"),
        ([-1, 0], [1], 3, "low and high: shapes"),
        ([], [], 3, "low and high: 0 and 0 dimensions"),
    ],
)
def test_impossible_grids_are_refused_in_one_line(
    low: Any, high: Any, actions: Any, message: str
) -> None:
    with refused(message):
        Discretize.of(low, high, actions)


def test_no_action_is_nearest_to_nan() -> None:
    grid = Discretize.of([-1, -1], [1, 1], 3)
    with refused("action: contains NaN"):
        grid.nearest([[0.0, 0.0], [0.5, np.nan]])
    assert grid.nearest([np.inf, -np.inf]) == 6


def test_actions_of_another_size_have_no_nearest() -> None:
    with refused("its last axis should be 2"):
        Discretize.of([-1, -1], [1, 1], 3).nearest([0.5])
