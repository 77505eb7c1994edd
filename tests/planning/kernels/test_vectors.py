"""Vector arithmetic for short rows against NumPy, at every length of a row."""

import math
from decimal import Decimal

import numpy as np
import pytest

from tsallax.planning.kernels import vectors
from tsallax.planning.kernels.compilation import njit

U = np.uint64


@njit()
def bits(array, begin, end):
    return vectors.positive_bits(array, begin, end)


@njit()
def lowest(number):
    return vectors.trailing_zeros(number)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 31, 63, 64])
def test_a_bit_is_set_for_each_positive_number(n):
    rng = np.random.default_rng(n)
    numbers = rng.choice([-1.0, 0.0, -0.0, 5e-324, 1.0, np.inf, np.nan], 70)
    found = int(bits(numbers, U(2), U(2 + n)))
    assert [found >> i & 1 for i in range(n)] == (numbers[2 : 2 + n] > 0).tolist()
    assert found >> n == 0


def test_the_lowest_bit():
    assert [int(lowest(U(1) << U(i) | U(1) << U(63))) for i in range(64)] == list(range(64))


@njit()
def mapped(which, x, out):
    i = U(0)
    while i < len(x):
        lane = vectors.load(x, i)
        vectors.store(out, i, vectors.exp(lane) if which == 0 else vectors.log(lane))
        i += vectors.WIDTH


def test_exponentials_are_right_to_an_ulp():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [-708 * rng.random(1200), -rng.random(1200), -(10.0 ** -rng.integers(1, 30, 400))]
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
    x = np.concatenate([10.0 ** rng.uniform(-300, 300, 1200), rng.random(1200), near])
    out = np.empty_like(x)
    mapped(1, x, out)
    for ours, number in zip(out, x, strict=True):
        right = Decimal(float(number)).ln()
        assert abs(Decimal(float(ours)) - right) <= abs(right) * Decimal(2.0**-52)
