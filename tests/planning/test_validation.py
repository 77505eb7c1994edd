"""Probabilities are rescaled within float32 accuracy and refused beyond it, pair by pair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from tsallax.planning import forms, validation


def layout_of(states: int, actions: int) -> forms.Layout:
    return forms.read_layout(None, (states * actions, states), actions, np.zeros(states, bool))


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 30), density=st.floats(0, 1))
def test_row_sums_are_those_of_the_dense_matrix(seed, rows, density):
    rng = np.random.default_rng(seed)
    matrix = csr_array(random_array((rows, 5), density=density, rng=rng))
    sums = validation.row_sums(matrix.data, matrix.indptr)
    np.testing.assert_allclose(sums, matrix.toarray().sum(1), atol=1e-14)


@pytest.mark.parametrize("blocks", [1, 2])
def test_rows_close_to_one_are_rescaled_and_the_given_matrix_is_not_changed(blocks, monkeypatch):
    monkeypatch.setattr(validation, "BLOCK", 4 // blocks)
    given_rows = csr_array(np.array([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5000002], [1.0, 0.0]]))
    data, before = given_rows.data, given_rows.data.copy()
    rows, termination = validation.distributions(given_rows, True, None, layout_of(2, 2))
    assert termination is None
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=4e-16)
    np.testing.assert_array_equal(data, before)
    np.testing.assert_array_equal(rows.toarray()[:2], [[0.5, 0.5], [0.25, 0.75]])


def test_only_arrays_that_nobody_can_write_to_are_shared():
    layout = layout_of(2, 1)
    values = np.array([1.0, 2.0])
    for view in (values, forms.frozen(values), np.broadcast_to(values[:, None], (2, 1))):
        assert not np.shares_memory(validation.per_pair(view, layout), values)
    values.flags.writeable = False
    assert np.shares_memory(validation.per_pair(values, layout), values)
