"""Ranges in blocks, and regularised maxima from the policy."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import Hard, Soft, Sparse
from tsallax.planning.accelerator.device_sweep import (
    copied,
    gathered,
    in_parts,
    over_range,
    regularized_maximum,
    sweep_numbers,
)
from tsallax.planning.precision import double_precision
from tsallax.time_limits import DeadlineReached, deadline


@pytest.mark.parametrize(("n", "block"), [(1, 4), (10, 3), (12, 4)])
def test_a_range_in_blocks_is_the_range(n, block):
    square, double = over_range(lambda i: (i * i, 2 * i), n, block)
    np.testing.assert_array_equal(square, np.arange(n) ** 2)
    np.testing.assert_array_equal(double, 2 * np.arange(n))


@pytest.mark.parametrize("regularizer", [Hard(), Soft(0.2), Sparse(0.7)])
def test_the_maximum_from_the_policy_is_the_regularised_maximum(regularizer):
    rng = np.random.default_rng(0)
    with double_precision():
        q = rng.normal(size=(50, 9)) + 1e3
        q[0], q[1:, 3] = -np.inf, -np.inf
        (p, value), expected = jax.jit(
            lambda q: (regularized_maximum(regularizer, q), regularizer.value(q[1:]))
        )(q)
    p, value = np.asarray(p), np.asarray(value)
    np.testing.assert_allclose(value[1:], expected, rtol=1e-15)
    assert value[0] == 0.0
    assert not p[0].any()
    np.testing.assert_allclose(p[1:].sum(-1), 1.0, rtol=1e-14)
    assert not p[1:, 3].any()


def test_the_change_of_terminal_states_does_not_count():
    v, updated = jnp.zeros(3), jnp.array([1.0, -5.0, 2.0])
    low, high, size, valid, used, most = sweep_numbers(v, updated, jnp.array([3, 0, 1]))
    assert (low, high, size, valid, used, most) == (1.0, 2.0, 5.0, True, 4.0, 3)


def test_a_range_in_parts_is_the_range_and_ends_at_a_deadline():
    def square(first, part=4):
        return over_range(lambda i: i * i, 10, 3, None, first, part)

    np.testing.assert_array_equal(in_parts(square, 10, 4), np.arange(10) ** 2)
    np.testing.assert_array_equal(
        in_parts(lambda first: square(first, 10), 10, 10)[3:], np.arange(3, 10) ** 2
    )
    calls = []
    with pytest.raises(DeadlineReached), deadline(time.monotonic() + 0.05):
        in_parts(lambda first: (calls.append(first), time.sleep(0.1), square(first))[2], 10, 4)
    assert calls == [0]


def test_an_array_of_one_process_is_copied_and_gathered_as_it_is():
    x = np.arange(3.0)
    np.testing.assert_array_equal(gathered(copied(x, None)), x)
