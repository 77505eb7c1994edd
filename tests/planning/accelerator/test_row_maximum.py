"""Regularised maxima of rows: those of the simplex operators, with the actions in use."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import Hard, Soft, Sparse, Tsallis
from tsallax.planning.accelerator import row_maximum
from tsallax.planning.accelerator.device_sweep import regularized_maximum
from tsallax.planning.accelerator.row_maximum import first_places, largest, row_maxima
from tsallax.planning.precision import double_precision

WIDTH = 203  # not a number of whole blocks
SIZE = 40


def action_values(spread):
    """Rows with missing actions, one without any, one with NaN, one with two best actions."""
    q = spread * np.random.default_rng(0).normal(size=(9, WIDTH))
    q[:, ::7] = -np.inf
    q[1], q[2, 11] = -np.inf, np.nan
    q[3, [5, 200]] = q[3].max() + 0.25
    return q


@pytest.mark.parametrize(
    "regularizer", [Sparse(0.5), Tsallis(0.5, 1.5), Soft(0.5), Hard()], ids=str
)
@pytest.mark.parametrize("spread", [10.0, 0.05], ids=["few actions", "many actions"])
def test_wide_rows_have_the_maxima_of_all_actions(regularizer, spread, monkeypatch):
    monkeypatch.setattr(row_maximum, "WIDE", 64)
    q = action_values(spread)
    with double_precision():
        found = jax.jit(row_maxima, static_argnums=2)(regularizer, q, SIZE)
        p, value = regularized_maximum(regularizer, jnp.asarray(q))
        bonus = regularizer.alpha * regularizer.entropy(p)
    found, p = jax.tree.map(np.asarray, found), np.array(p)
    assert np.isnan(found.value[2])
    assert (found.value[1], found.used[1], found.weights[1].sum()) == (0.0, 0, 0.0)
    assert (found.actions[found.weights == 0.0] == 0).all()
    rows = [0, *range(3, 9)]
    np.testing.assert_allclose(found.value[rows], value[np.array(rows)], rtol=1e-14)
    np.testing.assert_array_equal(found.used[rows], (p[rows] > 0).sum(-1))
    np.testing.assert_allclose(found.bonus[rows], bonus[np.array(rows)], atol=1e-14)
    for row in rows:
        used = np.flatnonzero(p[row])[: found.actions.shape[-1]]
        if isinstance(regularizer, Hard):
            used = used[:1]  # of actions that are equally good
            p[row, used] = 1.0
        np.testing.assert_array_equal(found.actions[row][: len(used)], used)
        np.testing.assert_allclose(found.weights[row][: len(used)], p[row, used], atol=1e-14)
        assert not found.weights[row][len(used) :].any()


def test_a_list_of_one_has_the_most_probable_action():
    with double_precision():
        found = row_maxima(Sparse(1.0), jnp.array([[1.0, 1.2, 1.1]]), 1)
    assert found.actions.tolist() == [[1]]
    assert found.weights[0, 0] == pytest.approx(0.1 + 1 / 3)


@pytest.mark.parametrize("wide", [1, 10**9])
def test_the_first_of_the_largest_entries_is_found(wide, monkeypatch):
    monkeypatch.setattr(row_maximum, "WIDE", max(wide, row_maximum.BLOCK + 1))
    x = np.random.default_rng(0).integers(0, 30, (20, WIDTH)).astype(np.float32)
    top, place = largest(jnp.asarray(x))
    np.testing.assert_array_equal(top[:, 0], x.max(-1))
    np.testing.assert_array_equal(place[:, 0], x.argmax(-1))


def test_first_places_are_filled_up_with_the_length():
    chosen = jnp.array([[False, True, False, True], [False] * 4])
    assert first_places(chosen, 3).tolist() == [[1, 3, 4], [4, 4, 4]]
