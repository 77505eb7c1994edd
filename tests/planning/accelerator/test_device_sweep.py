"""Ranges in blocks, and regularised maxima from the policy."""

import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import Hard, Soft, Sparse
from tsallax.planning.accelerator.device_sweep import (
    copied,
    extremes,
    gathered,
    over_range,
    regularized_maximum,
)
from tsallax.planning.precision import double_precision


@pytest.mark.parametrize(("n", "block"), [(1, 4), (10, 3), (12, 4), (7, 100)])
def test_a_range_in_blocks_is_the_range(n, block):
    square, double = over_range(lambda i: (i * i, 2 * i), n, block)
    np.testing.assert_array_equal(square, np.arange(n) ** 2)
    np.testing.assert_array_equal(double, 2 * np.arange(n))


@pytest.mark.parametrize("regularizer", [Hard(), Soft(0.2), Sparse(0.7)])
def test_the_maximum_from_the_policy_is_the_regularised_maximum(regularizer):
    rng = np.random.default_rng(0)
    with double_precision():
        q = jnp.asarray(rng.normal(size=(50, 9)) + 1e3).at[0].set(-jnp.inf).at[1:, 3].set(-jnp.inf)
        p, value = regularized_maximum(regularizer, q)
        expected = regularizer.value(q[1:])
    np.testing.assert_allclose(value[1:], expected, rtol=1e-15)
    assert value[0] == 0.0
    assert not p[0].any()
    np.testing.assert_allclose(np.asarray(p[1:]).sum(-1), 1.0, rtol=1e-14)
    assert not p[1:, 3].any()


def test_extremes_count_only_some_states():
    v, updated = jnp.zeros(3), jnp.array([1.0, -5.0, 2.0])
    low, high, size = extremes(v, updated, jnp.array([True, False, True]))
    assert (low, high, size) == (1.0, 2.0, 5.0)


def test_an_array_of_one_process_is_copied_and_gathered_as_it_is():
    x = np.arange(3.0)
    np.testing.assert_array_equal(gathered(copied(x, None)), x)
