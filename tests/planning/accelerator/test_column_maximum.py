"""The kernel for the columns of action values, interpreted on the CPU, against the regularisers."""

import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import Hard, Soft, Sparse, Tsallis
from tsallax.planning.accelerator.column_maximum import (
    column_maxima,
    fused_column_maxima,
    plain_column_maxima,
)
from tsallax.planning.precision import double_precision

REGULARIZERS = [Hard(), Soft(0.3), Sparse(0.5)]


def columns(actions, n, dtype):
    rng = np.random.default_rng(actions)
    q = rng.normal(size=(actions, n)).astype(dtype)
    q[rng.random((actions, n)) < 0.3] = -np.inf
    q[:, 0] = -np.inf
    q[:, 1] = 2.0
    return q


@pytest.mark.parametrize(
    ("regularizer", "dtype"),
    [(r, np.float64) for r in REGULARIZERS] + [(Sparse(1e-3), np.float32)],
)
def test_the_kernel_agrees_with_the_regulariser(dtype, regularizer):
    actions = 33
    with double_precision():
        q = jnp.asarray(columns(actions, 129, dtype))
        value, used = fused_column_maxima(regularizer, q, interpret=True)
        expected, count = plain_column_maxima(regularizer, q)
        some = q[:, np.asarray(used) > 0]
        reference = regularizer.value(some, axis=0, where=some > -jnp.inf)
    ulps = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(value, expected, rtol=ulps, atol=ulps)
    has_some = (np.asarray(q) > -np.inf).any(0)
    np.testing.assert_allclose(value[has_some], reference, rtol=ulps, atol=ulps)
    np.testing.assert_array_equal(used[:2], [0, 1 if regularizer == Hard() else actions])
    assert np.count_nonzero(np.asarray(used) != np.asarray(count)) <= 1


def test_other_regularisers_take_the_plain_path():
    q = jnp.asarray(columns(7, 20, np.float32))
    value, _ = column_maxima(Tsallis(0.5, 1.5), q)
    expected, _ = plain_column_maxima(Tsallis(0.5, 1.5), q)
    np.testing.assert_array_equal(value, expected)
