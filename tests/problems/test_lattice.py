"""Interpolation on a grid keeps the mean; rows of independent coordinates are products."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsallax.errors import InvalidInput
from tsallax.problems.lattice import counts, interpolate, joint_rows, point


@settings(max_examples=100)
@given(cells=st.floats(-20, 20), size=st.integers(2, 9), periodic=st.booleans())
def test_interpolation_keeps_the_mean_and_never_leaves_the_axis(cells, size, periodic):
    move = interpolate(np.array([cells]), size, periodic)
    (i, j), (a, b) = move.indices[0], move.weights[0]
    assert 0 <= i < j < size
    assert a >= 0
    assert b >= 0
    assert a + b == pytest.approx(1, abs=1e-12)
    if periodic:
        for at, weight in ((i, a), (j, b)):
            away = min((cells - at) % size, (at - cells) % size)
            assert weight == pytest.approx(max(0.0, 1 - away), abs=1e-8)
    else:
        assert a * i + b * j == pytest.approx(np.clip(cells, 0, size - 1), abs=1e-8)


@given(seed=st.integers(0, 10**6))
def test_joint_rows_are_products_of_the_coordinates(seed):
    rng = np.random.default_rng(seed)
    cells = rng.uniform(-1, 4, (2, 6))
    moves = interpolate(cells[0], 4), interpolate(cells[1], 3, periodic=True)
    dense = [np.zeros((6, move.size)) for move in moves]
    for table, move in zip(dense, moves, strict=True):
        np.add.at(table, (np.arange(6)[:, None], move.indices), move.weights)
    expected = np.einsum("ni,nj->nij", *dense).reshape(6, -1)
    np.testing.assert_allclose(joint_rows(*moves).toarray(), expected, atol=1e-15)


def test_counts_of_axes_are_one_number_or_a_tuple():
    assert counts("grid", 7, 3) == [7, 7, 7]
    assert counts("actions", 49, 2, total=True) == [7, 7]
    for given_counts, total in ((48, True), (1, True), (1, False), ((2, 3, 4), False)):
        with pytest.raises(InvalidInput, match="grid must be"):
            counts("grid", given_counts, 2, total)
    with pytest.raises(InvalidInput, match="goal must be two finite numbers"):
        point("goal", (1.0, float("nan")))
