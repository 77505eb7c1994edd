"""The kernel for the columns of action values, interpreted on the CPU, against the regularisers."""

import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import Hard, Soft, Sparse, Tsallis
from tsallax.planning.accelerator.column_maximum import (
    column_maximum,
    fused_column_maximum,
    plain_column_maximum,
)
from tsallax.planning.precision import double_precision

REGULARIZERS = [Hard(), Soft(0.3), Sparse(0.5), Sparse(1e-3)]


def columns(actions, n, dtype):
    rng = np.random.default_rng(actions)
    q = rng.normal(size=(actions, n)).astype(dtype)
    q[rng.random((actions, n)) < 0.3] = -np.inf
    q[:, 0] = -np.inf
    q[:, 1] = 2.0
    return q


@pytest.mark.parametrize(("actions", "n"), [(1, 5), (20, 300), (33, 129)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_the_kernel_agrees_with_the_regulariser(actions, n, dtype, regularizer):
    with double_precision():
        q = jnp.asarray(columns(actions, n, dtype))
        value, used = fused_column_maximum(regularizer, q, interpret=True)
        expected, count = plain_column_maximum(regularizer, q)
        reference = jnp.where(used > 0, regularizer.value(q, axis=0, where=q > -jnp.inf), 0.0)
    ulps = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(value, expected, rtol=ulps, atol=ulps)
    np.testing.assert_allclose(value[1:], reference[1:], rtol=ulps, atol=ulps)
    np.testing.assert_array_equal(used[:2], [0, 1 if regularizer == Hard() else actions])
    assert np.count_nonzero(np.asarray(used) != np.asarray(count)) <= 1


def test_other_regularisers_take_the_plain_path():
    q = jnp.asarray(columns(7, 20, np.float32))
    value, _ = column_maximum(Tsallis(0.5, 1.5), q)
    expected, _ = plain_column_maximum(Tsallis(0.5, 1.5), q)
    np.testing.assert_array_equal(value, expected)
