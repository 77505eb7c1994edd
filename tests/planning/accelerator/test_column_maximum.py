"""The kernel for the columns of action values, interpreted on the CPU, against the regularisers."""

import jax
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
        value, used, expected, count, reference = (np.asarray(x) for x in _all(regularizer, q))
    ulps = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(value, expected, rtol=ulps, atol=ulps)
    np.testing.assert_allclose(value[1:], reference, rtol=ulps, atol=ulps)
    np.testing.assert_array_equal(used[:2], [0, 1 if regularizer == Hard() else actions])
    assert np.count_nonzero(used != count) <= 1


@jax.jit
def _all(regularizer, q):
    reference = regularizer.value(q[:, 1:], axis=0, where=q[:, 1:] > -jnp.inf)
    return (
        *fused_column_maxima(regularizer, q, interpret=True),
        *plain_column_maxima(regularizer, q),
        reference,
    )


def test_other_regularisers_take_the_plain_path():
    q = jnp.asarray(columns(7, 20, np.float32))
    value, _ = column_maxima(Tsallis(0.5, 1.5), q)
    expected, _ = plain_column_maxima(Tsallis(0.5, 1.5), q)
    np.testing.assert_array_equal(value, expected)
