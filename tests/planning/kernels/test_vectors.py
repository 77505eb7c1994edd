"""Vector arithmetic for short rows against NumPy, at every length of a row."""

import math
from decimal import Decimal

import numpy as np
import pytest
from numba import njit

from tsallax.planning.kernels import vectors
from tsallax.planning.kernels.row import sparse_excess, sparse_policy

U = np.uint64


@njit
def excess(row, n, top, s):
    return sparse_excess(row, n, top, s)


@njit
def policy(row, n, top, s, alpha, rewards, weights, first):
    return sparse_policy(row, n, top, s, alpha, rewards, weights, first)


@njit
def bits(array, begin, end):
    return vectors.bits_above(array, begin, end)


@njit
def lowest(number):
    return vectors.lowest(number)


@pytest.mark.parametrize("n", range(18))
def test_the_excess_over_a_threshold(n):
    rng = np.random.default_rng(n)
    row = rng.normal(size=20)
    above = np.maximum(row[:n] - 0.5 + 0.2, 0)
    total, size = excess(row, U(n), 0.5, -0.2)
    assert total == pytest.approx(above.sum(), rel=1e-14)
    assert size == np.count_nonzero(above)


@pytest.mark.parametrize("n", range(18))
def test_a_policy_and_nothing_beside_it_is_written(n):
    rng = np.random.default_rng(n)
    row, rewards = rng.normal(size=20), rng.normal(size=25)
    weights = np.full(25, 7.0)
    p = np.maximum(row[:n] - 0.5 + 0.2, 0) / 0.3
    found = policy(row, U(n), 0.5, -0.2, 0.3, rewards, weights, U(3))
    assert found == pytest.approx((p.sum(), p @ rewards[3 : 3 + n], p @ p), rel=1e-13, abs=1e-14)
    np.testing.assert_allclose(weights[3 : 3 + n], p, rtol=1e-15)
    assert (weights[:3] == 7).all()
    assert (weights[3 + n :] == 7).all()


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 31, 63, 64])
def test_bits_tell_which_numbers_are_above_zero(n):
    rng = np.random.default_rng(n)
    numbers = rng.choice([-1.0, 0.0, -0.0, 5e-324, 1.0, np.inf, np.nan], 70)
    found = int(bits(numbers, U(2), U(2 + n)))
    assert [found >> i & 1 for i in range(n)] == (numbers[2 : 2 + n] > 0).tolist()
    assert found >> n == 0


def test_the_lowest_bit():
    assert [int(lowest(U(1) << U(i) | U(1) << U(63))) for i in range(64)] == list(range(64))


@njit
def mapped(which, x, out):
    i = U(0)
    while i < len(x):
        lane = vectors.load(x, i)
        vectors.store(out, i, vectors.exp(lane) if which == 0 else vectors.log(lane))
        i += vectors.WIDTH


def test_exponentials_are_right_to_an_ulp():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [-708 * rng.random(4000), -rng.random(4000), -(10.0 ** -rng.integers(1, 30, 400))]
    )
    out = np.empty_like(x)
    mapped(0, x, out)
    for ours, number in zip(out, x, strict=True):
        right = Decimal(float(number)).exp()
        assert abs(Decimal(float(ours)) - right) <= right * Decimal(2.0**-52)
    x = np.array([0.0, -708.0, -708.01, -1e300, -np.inf, np.nan, -745.0, -0.0])
    out = np.empty_like(x)
    mapped(0, x, out)
    np.testing.assert_array_equal(out, [1, out[1], 0, 0, 0, np.nan, 0, 1])
    assert out[1] == pytest.approx(math.exp(-708), rel=1e-15)


def test_logarithms_are_right_to_an_ulp():
    rng = np.random.default_rng(1)
    near = 1 + np.concatenate(
        [10.0 ** rng.uniform(-16, 0, 400), -(10.0 ** rng.uniform(-16, -1, 400))]
    )
    x = np.concatenate([10.0 ** rng.uniform(-300, 300, 4000), rng.random(4000), near])
    out = np.empty_like(x)
    mapped(1, x, out)
    for ours, number in zip(out, x, strict=True):
        right = Decimal(float(number)).ln()
        assert abs(Decimal(float(ours)) - right) <= abs(right) * Decimal(2.0**-52)


def test_what_is_not_a_number_is_not_above_a_threshold():
    total, size = excess(np.array([np.nan, 1.0, -np.inf, 0.0, np.nan]), U(5), 1.0, -0.5)
    assert (total, size) == (0.5, 1.0)
