"""One state's regularised maximum against its definition in decimal numbers of forty digits."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

from tsallax.planning.kernels.compilation import njit
from tsallax.planning.kernels.row import regularized_maximum, sparse_excess, sparse_policy
from tsallax.planning.kernels.vectors import padded_length

getcontext().prec = 40
INDICES = [0.25, 0.9, 1.0, 1.0 + 2.0**-30, 1.05, 1.25, 4 / 3, 1.5, 1.7, 2.0, 2.5, 6.0]


U = np.uint64


@njit()
def excess(row, n, top, s):
    return sparse_excess(row, n, top, s)


@njit()
def policy(row, n, top, s, alpha, rewards, weights, first):
    return sparse_policy(row, n, top, s, alpha, rewards, weights, first)


def found(row, alpha, q, guess=0.0):
    n = len(row)
    p, at = np.full(int(padded_length(n)), np.nan), np.zeros(n, np.uint32)
    t, value, entropy, k = regularized_maximum(row, np.uint64(n), row.max(), alpha, q, guess, p, at)
    policy = np.zeros(n)
    policy[at[:k]] = p[:k]
    assert len(set(at[:k].tolist())) == k
    assert (p[:k] > 0).all()
    return t, value, entropy, policy


def expected(row, alpha, q):
    """(value, entropy, policy) by bisection for t, from exp_q and Omega as they are defined."""
    index, one = Decimal(q), Decimal(1)
    x = [(Decimal(z) - Decimal(row.max())) / Decimal(alpha) for z in row]

    def deformed(u):
        if q == 1.0:
            return u.exp()
        lift = 1 + (index - 1) * u
        return lift ** (one / (index - 1)) if lift > 0 else Decimal(0)

    low, high = Decimal(0), Decimal(len(row)) ** 2
    for _ in range(120):
        t = (low + high) / 2
        low, high = (t, high) if sum(deformed(u - t) for u in x) >= 1 else (low, t)
    p = [deformed(u - low) for u in x]
    p = [y / sum(p) for y in p]
    if q == 1.0:
        omega = -sum(y * y.ln() for y in p if y > 0)
    else:
        omega = (1 - sum(y**index for y in p if y > 0)) / (index * (index - 1))
    value = sum(y * Decimal(z) for y, z in zip(p, row, strict=True)) + Decimal(alpha) * omega
    return float(value), float(omega), np.array([float(y) for y in p])


@pytest.mark.parametrize("q", INDICES)
def test_value_entropy_and_policy_are_the_defined_ones(q):
    rng = np.random.default_rng(int(1000 * q))
    for n, spread, alpha in [(2, 1.0, 0.5), (5, 3.0, 0.3), (7, 0.1, 2.0), (9, 20.0, 1.0)]:
        row = spread * rng.normal(size=n) + 3.0
        value, omega, policy = expected(row, alpha, q)
        for guess in (0.0, 0.3, 1e3):
            _, ours, entropy, p = found(row, alpha, q, guess)
            size = np.abs(row).max() + alpha
            assert ours == pytest.approx(value, abs=1e-15 * (n + 8) * size)
            assert entropy == pytest.approx(omega, abs=1e-13)
            np.testing.assert_allclose(p, policy, rtol=0, atol=2e-13)
            assert abs(p.sum() - 1.0) < 1e-15 * n


@pytest.mark.parametrize("q", INDICES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9])
def test_equal_values_are_equally_likely(q, n):
    _, _, _, p = found(np.full(n, 7.0), 0.1, q)
    np.testing.assert_allclose(p, 1 / n, rtol=1e-14)


@pytest.mark.parametrize("q", INDICES)
@pytest.mark.parametrize("alpha", [1e-300, 1e-12, 1e12])
def test_coefficients_far_from_one_give_numbers(q, alpha):
    row = np.array([1.0, 3.0, -2.0, 2.999, 0.0])
    _, value, entropy, p = found(row, alpha, q)
    assert abs(p.sum() - 1.0) < 1e-14
    assert 0.0 <= entropy <= 4.0 ** (2 if q < 1 else 1)
    assert value >= 3.0
    assert np.isfinite(value)
    assert p.argmax() == 1


@pytest.mark.parametrize("q", INDICES)
def test_nan_gives_nan(q):
    row = np.array([1.0, np.nan, 0.5])
    p, at = np.empty(4), np.zeros(3, np.uint32)
    _, value, _, _ = regularized_maximum(row, np.uint64(3), np.nan, 1.0, q, 0.0, p, at)
    assert np.isnan(value)


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


def test_nan_is_not_above_a_threshold():
    total, size = excess(np.array([np.nan, 1.0, -np.inf, 0.0, np.nan]), U(5), 1.0, -0.5)
    assert (total, size) == (0.5, 1.0)
