"""The operators against exact rationals, bisection in 60 digits, their definition and laws."""

from contextlib import AbstractContextManager
from fractions import Fraction
from itertools import accumulate

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsallax.errors import InvalidInput
from tsallax.simplex import entmax, sparsemax, spmax, support, threshold, tsallis_max

INDICES = [0.2, 0.5, 0.9, 1.0, 1 + 1e-6, 1.1, 1.25, 1.5, 1.9, 2.0, 2.5, 4.0, 10.0]
WIDTH = 7
EPS = float(np.finfo(np.float32).eps)

entries = st.floats(-20, 20, width=32) | st.sampled_from([0.0, 1.0, 0.5, -0.25, 1e-40, -1e-6])
vectors = st.lists(entries, min_size=1, max_size=WIDTH)


def double() -> AbstractContextManager[None]:
    """Double precision for the length of a `with`, whatever the version of JAX calls it."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return jax.experimental.enable_x64()


def padded(z):
    """z at a fixed width, so that one compilation serves every example, and its mask."""
    values = np.full(WIDTH, 77.0, np.float32)
    values[: len(z)] = z
    return values, np.arange(WIDTH) < len(z)


def exact_sparsemax(z):
    """The paper's sorting formula in exact rationals: tau, p and spmax."""
    z = [Fraction(float(v)) for v in z]
    ordered = sorted(z, reverse=True)
    sums = list(accumulate(ordered))
    size = max(i for i in range(1, len(z) + 1) if 1 + i * ordered[i - 1] > sums[i - 1])
    tau = (sums[size - 1] - 1) / size
    p = [max(v - tau, Fraction(0)) for v in z]
    value = sum((v**2 - tau**2 for v in ordered[:size]), Fraction(0)) / 2 + Fraction(1, 2)
    return tau, p, value


def exact_entmax(z, q):
    """Policy and value of the Tsallis index q by bisection in 60 digits."""
    with mpmath.workdps(60):
        z = [mpmath.mpf(float(v)) for v in z]
        q = mpmath.mpf(q)
        top = max(z)

        def density(t):
            if q == 1:
                return [mpmath.exp(v - top - t) for v in z]
            base = [1 + (q - 1) * (v - top - t) for v in z]
            return [b ** (1 / (q - 1)) if b > 0 else mpmath.mpf(0) for b in base]

        low, high = mpmath.mpf(0), mpmath.mpf(1)
        while sum(density(high)) > 1:
            high *= 2
        for _ in range(190):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(density(middle)) > 1 else (low, middle)
        p = density(low)
        if q == 1:
            omega = -sum(v * mpmath.log(v) for v in p if v > 0)
        else:
            omega = (1 - sum(v**q for v in p)) / (q * (q - 1))
        value = sum(a * b for a, b in zip(p, z)) + omega
        return np.array(p, float), float(value)


def max_entropy(n, q):
    return np.log(n) if q == 1 else -np.expm1((1 - q) * np.log(n)) / (q * (q - 1))


@given(vectors)
def test_sparsemax_is_the_papers_formula_in_exact_rationals(z):
    values, mask = padded(z)
    tau, p, value = exact_sparsemax(values[mask])
    scale = EPS * (1 + np.abs(values[mask]).max())
    got = np.asarray(sparsemax(values, where=mask), float)
    np.testing.assert_allclose(got[mask], np.array(p, float), atol=4 * EPS, rtol=4 * EPS)
    assert not got[~mask].any()
    assert abs(float(threshold(values, where=mask)) - float(tau)) <= 2 * scale
    assert abs(float(spmax(values, where=mask)) - float(value)) <= 2 * scale
    clear = np.array([abs(v - tau) > 4 * EPS for v in map(Fraction, map(float, values[mask]))])
    expected = np.array([v > 0 for v in p])
    got_support = np.asarray(support(values, where=mask))
    np.testing.assert_array_equal(got_support[mask][clear], expected[clear])


@given(vectors)
def test_the_support_is_where_the_papers_condition_holds(z):
    """1 + i z_(i) > sum_{j <= i} z_(j) on the support, and not beyond it."""
    values, mask = padded(np.round(np.asarray(z) * 64) / 64)
    ordered = np.sort(values[mask].astype(float))[::-1]
    i = np.arange(1, len(ordered) + 1)
    condition = 1 + i * ordered > np.cumsum(ordered)
    assert int(support(values, where=mask).sum()) == condition.sum()


@pytest.mark.parametrize("q", INDICES)
def test_entmax_agrees_with_bisection_in_sixty_digits(q):
    rng = np.random.default_rng(0)
    for scale in (0.01, 0.3, 1.0, 5.0):
        for z in np.float32(scale * rng.normal(size=(3, WIDTH))):
            p, value = exact_entmax(z, q)
            close = 4e-7 * max(1.0, 1 / min(p[p > 0]) ** max(q - 2, 0))
            np.testing.assert_allclose(entmax(z, q), p, atol=close)
            np.testing.assert_allclose(tsallis_max(z, q), value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("q", [0.5, 0.9999, 1 + 1e-9, 1.3, 1.5, 2.0, 3.0])
def test_entmax_is_right_to_rounding_in_double_precision(q):
    rng = np.random.default_rng(1)
    with double():
        for scale in (0.1, 1.0, 10.0):
            z = scale * rng.normal(size=WIDTH)
            p, value = exact_entmax(z, q)
            got = entmax(z, q)
            assert got.dtype == jnp.float64
            close = 4e-15 * max(1.0, 1 / min(p[p > 0]) ** max(q - 2, 0))
            np.testing.assert_allclose(got, p, atol=close)
            np.testing.assert_allclose(tsallis_max(z, q), value, rtol=4e-15, atol=4e-15)


@pytest.mark.parametrize("q", [1.5, 2.0, 1.3])
def test_entmax_agrees_with_the_entmax_library(q):
    torch = pytest.importorskip("torch")
    peer = pytest.importorskip("entmax")
    rng = np.random.default_rng(2)
    z = np.float32(rng.normal(size=(40, 300)) * rng.choice([0.01, 0.1, 1, 10], size=(40, 1)))
    z[:10] = np.round(z[:10], 1)
    # the library's index alpha stands for z (alpha - 1) inside, and k = 1/q is its convention too
    expected = {
        2.0: lambda t: peer.sparsemax(t, dim=-1),
        1.5: lambda t: peer.entmax15(t, dim=-1),
    }.get(q, lambda t: peer.entmax_bisect(t, alpha=q, dim=-1, n_iter=60))(torch.tensor(z))
    np.testing.assert_allclose(entmax(z, q), expected.numpy(), atol=3e-6)


@pytest.mark.parametrize("q", INDICES)
@given(z=vectors, alpha=st.floats(0.01, 100))
def test_the_maximum_is_bounded_by_the_largest_entropy(q, z, alpha):
    """max z <= alpha tsallis_max(z/alpha) <= max z + alpha Omega_max(d), eq. (spmax_bnd)."""
    values, mask = padded(z)
    scaled = np.float32(values / alpha)
    value = float(tsallis_max(scaled, q, where=mask))
    top = float(scaled[mask].max())
    slack = 4 * EPS * (abs(top) + 1)
    assert top - 1e-37 <= value <= top + max_entropy(len(z), q) * (1 + 4 * EPS) + slack


@pytest.mark.parametrize("q", [0.2, 0.9, 1.0, 1.1, 1.5, 2.0, 4.0])
@given(z=vectors, shift=st.floats(-1e4, 1e4, width=32))
def test_the_maximum_moves_with_a_shift_and_the_policy_stands_still(q, z, shift):
    values, mask = padded(np.round(np.asarray(z) * 64) / 64)
    shift = np.float32(np.round(shift))
    moved = values + shift
    close = 4 * EPS * (abs(shift) + 30)
    np.testing.assert_array_equal(entmax(moved, q, where=mask), entmax(values, q, where=mask))
    change = float(tsallis_max(moved, q, where=mask)) - float(tsallis_max(values, q, where=mask))
    assert abs(change - shift) <= close


@pytest.mark.parametrize("q", [0.2, 0.9, 1.0, 1.1, 1.5, 2.0, 4.0])
@given(z=vectors, bumps=st.lists(st.floats(0, 3), min_size=WIDTH, max_size=WIDTH))
def test_the_maximum_is_monotone(q, z, bumps):
    values, mask = padded(z)
    higher = np.float32(values + np.asarray(bumps))
    low, high = tsallis_max(values, q, where=mask), tsallis_max(higher, q, where=mask)
    assert low <= high + 8 * EPS * (1 + abs(float(high)))


@pytest.mark.parametrize("q", [0.2, 0.9, 1.0, 1.1, 1.5, 2.0, 4.0])
@given(z=vectors)
def test_the_policy_attains_the_maximum(q, z):
    """<p, z> + Omega(p) = tsallis_max(z), for a p that is a distribution."""
    values, mask = padded(z)
    p = np.asarray(entmax(values, q, where=mask), float)
    assert (p >= 0).all()
    assert abs(p.sum() - 1) < 8 * EPS
    on = p[p > 0]
    omega = -(on * np.log(on)).sum() if q == 1 else (1 - (on**q).sum()) / (q * (q - 1))
    attained = p[mask] @ values[mask] + omega
    value = float(tsallis_max(values, q, where=mask))
    assert abs(attained - value) <= 2e-5 * (1 + abs(value)) / min(1, abs(q - 1) if q != 1 else 1, 1)


@given(vectors)
def test_spmax_is_below_log_sum_exp(z):
    values, mask = padded(z)
    assert spmax(values, where=mask) <= tsallis_max(values, 1, where=mask) + 1e-5


def test_index_one_is_softmax_and_log_sum_exp():
    z = np.float32(np.random.default_rng(3).normal(size=(5, 40)) * 3)
    np.testing.assert_allclose(entmax(z, 1), jax.nn.softmax(z), rtol=2e-6)
    np.testing.assert_allclose(tsallis_max(z, 1), jax.nn.logsumexp(z, -1), rtol=1e-6)


@pytest.mark.parametrize("q", [1 - 1e-7, 1 + 1e-12, 1 + 1e-5])
def test_an_index_next_to_one_is_next_to_softmax(q):
    z = np.float32(np.random.default_rng(4).normal(size=(5, 40)))
    np.testing.assert_allclose(entmax(z, q), jax.nn.softmax(z), atol=3e-5 * 10, rtol=1e-4)
    np.testing.assert_allclose(tsallis_max(z, q), jax.nn.logsumexp(z, -1), rtol=1e-4)


@pytest.mark.parametrize("q", [0.2, 0.9, 1.0, 1.25, 1.5, 2.0, 10.0])
@pytest.mark.parametrize(
    "row",
    [
        np.zeros(100_000),
        1e-5 * np.random.default_rng(5).normal(size=100_000),
        np.r_[0.0, np.full(99_999, -0.5)],
        np.random.default_rng(6).normal(size=100_000),
    ],
    ids=["ties", "nearly-uniform", "one-above-many", "normal"],
)
def test_a_hundred_thousand_actions_sum_to_one(q, row):
    p = np.asarray(entmax(np.float32(row), q), float)
    assert abs(p.sum() - 1) < 2e-6
    value = float(tsallis_max(np.float32(row), q)) - float(np.float32(row).max())
    assert 0 <= value <= max_entropy(100_000, q) * (1 + 2e-6)


def test_a_large_support_is_exact():
    row = np.float32(1e-5 * np.random.default_rng(7).normal(size=5_000))
    _, p, value = exact_sparsemax(row)
    np.testing.assert_allclose(sparsemax(row), np.array(p, float), rtol=1e-5, atol=1e-11)
    np.testing.assert_array_equal(support(row), [v > 0 for v in p])
    np.testing.assert_allclose(float(spmax(row)), float(value), rtol=2 * EPS)


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5, 2.0, 4.0])
def test_an_offset_of_ten_million_changes_nothing(q):
    z = np.float32(np.random.default_rng(8).integers(-3, 4, size=(20, 300)))
    offset = np.float32(1e7)
    p = entmax(z + offset, q)
    np.testing.assert_array_equal(p, entmax(z, q))
    np.testing.assert_allclose(np.asarray(p, float).sum(-1), 1, atol=1e-6)


def test_supports_of_several_elements_come_out():
    z = np.float32([[0.0, 0.0, -9.0, 0.0], [0.5, 0.25, 0.125, -1.0]])
    expected = [[1 / 3, 1 / 3, 0, 1 / 3], [13 / 24, 7 / 24, 4 / 24, 0]]
    np.testing.assert_allclose(sparsemax(z), expected, atol=1e-7)


@pytest.mark.parametrize("q", [0.2, 1.0, 1.5, 2.0, 10.0])
def test_ties_denormals_and_a_single_action(q):
    for n in (1, 4, 300):
        ties = np.full(n, -3.25, np.float32)
        np.testing.assert_allclose(entmax(ties, q), np.full(n, 1 / n), rtol=4e-6)
        np.testing.assert_allclose(
            float(tsallis_max(ties, q)) + 3.25, max_entropy(n, q), rtol=2e-6, atol=1e-6
        )
    tiny = np.float32([0, 1e-45, -1e-45, 1e-40])
    np.testing.assert_allclose(entmax(tiny, q), np.full(4, 0.25), rtol=4e-6)
    np.testing.assert_array_equal(entmax(np.float32([4.0]), q), [1.0])
    np.testing.assert_array_equal(tsallis_max(np.float32([4.0]), q), 4.0)


@pytest.mark.parametrize("q", [2.5, 4.0, 10.0])
def test_an_action_at_the_edge_of_the_support_gets_almost_nothing(q):
    """Where d p / d z is infinite for q > 2, rounding must not turn into probability."""
    edge = np.float32([0.0, -1 / (q - 1) + 1e-7])
    assert exact_entmax(edge, q)[0][1] < 1e-6
    assert entmax(edge, q)[1] < 1e-4
    assert 0 <= tsallis_max(edge, q) < 1e-6


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5, 2.0, 4.0])
def test_masked_and_minus_infinite_entries_are_left_out(q):
    z = np.float32(np.random.default_rng(9).normal(size=(6, 9)))
    mask = np.random.default_rng(10).random((6, 9)) < 0.5
    mask[:, 0] = True
    poisoned = np.where(mask, z, np.nan)
    p = np.asarray(entmax(poisoned, q, where=mask))
    value = np.asarray(tsallis_max(poisoned, q, where=mask))
    np.testing.assert_array_equal(p, entmax(np.where(mask, z, -np.inf), q))
    np.testing.assert_array_equal(value, tsallis_max(np.where(mask, z, -np.inf), q))
    assert not p[~mask].any()
    np.testing.assert_allclose(p[0, mask[0]], entmax(z[0, mask[0]], q), rtol=2e-5, atol=1e-6)


def test_a_mask_broadcasts_against_the_values():
    z = np.float32(np.random.default_rng(11).normal(size=(3, 4)))
    column = np.array([True, False, True, True])
    np.testing.assert_array_equal(
        sparsemax(z, where=column), sparsemax(z, where=np.broadcast_to(column, (3, 4)))
    )


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_poison_their_row_only(q, bad):
    z = np.float32([[0.0, bad, 1.0], [0.0, 0.2, 1.0]])
    p, value = np.asarray(entmax(z, q)), np.asarray(tsallis_max(z, q))
    assert np.isnan(p[0]).all()
    assert np.isnan(value[0])
    np.testing.assert_array_equal(p[1], entmax(z[1], q))
    assert np.isnan(jax.grad(lambda v: tsallis_max(v, q).sum())(z)[0]).all()


@pytest.mark.parametrize(("axis", "q"), [(0, 2.0), (1, 1.5), (2, 1.0), (-2, 2.0), (-3, 1.0)])
def test_any_axis_is_the_last_axis_moved(axis, q):
    z = np.float32(np.random.default_rng(12).normal(size=(3, 4, 5)))
    moved = np.moveaxis(z, axis, -1)
    p = entmax(z, q, axis)
    assert p.shape == z.shape
    np.testing.assert_array_equal(np.moveaxis(p, axis, -1), entmax(moved, q))
    np.testing.assert_array_equal(tsallis_max(z, q, axis), tsallis_max(moved, q))


@pytest.mark.parametrize(("q", "ulps"), [(2.0, 0), (1.5, 32)])
def test_jit_vmap_single_rows_and_blocks_of_rows_agree(q, ulps, monkeypatch):
    """Bit for bit where no exponential is involved: a row does not feel its neighbours."""
    z = np.float32(np.random.default_rng(13).normal(size=(23, 300)))
    expected, value = np.asarray(entmax(z, q)), np.asarray(tsallis_max(z, q))

    def agree(a, b):
        np.testing.assert_allclose(a, b, rtol=ulps * EPS, atol=ulps * EPS / 10)

    agree(jax.jit(lambda v: entmax(v, q))(z), expected)
    agree(jax.vmap(lambda v: entmax(v, q))(z), expected)
    agree(jnp.stack([entmax(row, q) for row in z[:3]]), expected[:3])
    monkeypatch.setattr("tsallax.simplex.BLOCK", 300 * 5)
    agree(entmax(z[:22], q), expected[:22])
    agree(tsallis_max(z[:22].reshape(11, 2, 300), q).ravel(), value[:22])


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
def test_short_floats_are_computed_in_float32_and_returned_short(dtype):
    z = jnp.asarray(np.random.default_rng(14).normal(size=(4, 2000)), dtype)
    for function in (sparsemax, spmax, threshold, lambda v: entmax(v, 1.5)):
        assert function(z).dtype == dtype
        np.testing.assert_array_equal(function(z), function(z.astype(jnp.float32)).astype(dtype))


def test_integers_become_floats():
    p = sparsemax(np.array([3, 3, 1]))
    assert p.dtype == jnp.float32
    np.testing.assert_array_equal(p, [0.5, 0.5, 0.0])


@pytest.mark.parametrize("q", [0.5, 1.0, 1.2, 1.5, 2.0, 3.0])
def test_derivatives_agree_with_finite_differences(q):
    rng = np.random.default_rng(15)
    with double():
        z, v = jnp.asarray(rng.normal(size=6)) / 2, jnp.asarray(rng.normal(size=6))
        h = 1e-6

        def slope(f):
            return (f(z + h * v) - f(z - h * v)) / (2 * h)

        p = entmax(z, q)
        assert int((p > 0).sum()) > 1
        np.testing.assert_allclose(jax.grad(tsallis_max)(z, q), p, atol=1e-14)
        forward = jax.jvp(lambda y: entmax(y, q), (z,), (v,))[1]
        np.testing.assert_allclose(forward, slope(lambda y: entmax(y, q)), atol=1e-7)
        np.testing.assert_allclose(jax.jacrev(entmax)(z, q) @ v, forward, atol=1e-13)
        np.testing.assert_allclose(jax.hessian(tsallis_max)(z, q) @ v, forward, atol=1e-13)
        tau = jax.jvp(threshold, (z,), (v,))[1]
        np.testing.assert_allclose(tau, slope(threshold), atol=1e-7)
        np.testing.assert_allclose(jax.grad(threshold)(z), support(z) / support(z).sum())


def test_gradients_ignore_masked_entries():
    z = np.float32([1.0, np.nan, 0.5, -np.inf])
    mask = np.array([True, False, True, True])
    gradient = jax.grad(lambda v: spmax(v, where=mask))(z)
    np.testing.assert_array_equal(gradient, [0.75, 0.0, 0.25, 0.0])
    jacobian = jax.jacrev(lambda v: sparsemax(v, where=mask))(z)
    np.testing.assert_array_equal(np.asarray(jacobian)[[0, 0, 2, 1, 3], [0, 2, 2, 1, 3]],
                                  [0.5, -0.5, 0.5, 0.0, 0.0])  # fmt: skip


@pytest.mark.parametrize("q", [1.0, 1.5, 2.0])
def test_a_row_without_actions_is_refused_or_nan_when_traced(q):
    for z, mask in (
        (np.float32([[0, 1], [-np.inf, -np.inf]]), None),
        (np.float32([[0, 1], [2, 3]]), np.array([[True, True], [False, False]])),
    ):
        with pytest.raises(InvalidInput, match="no actions"):
            entmax(z, q, where=mask)
        p = np.asarray(jax.jit(lambda v, m=mask: entmax(v, q, where=m))(z))
        assert np.isnan(p[1]).all()
        assert np.isfinite(p[0]).all()


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("q", [1.0, 1.5, 2.0])
def test_no_rows_at_all_give_empty_arrays(q, wrap):
    z = jnp.zeros((0, 3), jnp.float16)
    for empty in (wrap(lambda z: entmax(z, q))(z), wrap(support)(z)):
        assert empty.shape == (0, 3)
    for empty in (wrap(lambda z: tsallis_max(z, q))(z), wrap(threshold)(z)):
        assert empty.shape == (0,)
        assert empty.dtype == jnp.float16
    assert wrap(lambda z: entmax(z, q, axis=0))(jnp.zeros((3, 2, 0))).shape == (3, 2, 0)
    assert jax.grad(lambda z: tsallis_max(z, q).sum())(z).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sparsemax(np.zeros((2, 0))), "no actions"),
        (lambda: sparsemax(np.zeros((2, 3)), axis=2), "no axis 2"),
        (lambda: sparsemax(np.zeros((2, 3)), axis=None), "no axis None"),
        (lambda: sparsemax(np.zeros((2, 3)), axis=0.0), r"no axis 0\.0"),
        (lambda: sparsemax(1.0), "no axis"),
        (lambda: sparsemax(np.zeros(3, complex)), "real"),
        (lambda: spmax(np.zeros(3), where=np.ones(4, bool)), "broadcast"),
        (lambda: entmax(np.zeros(3), 0), "positive"),
        (lambda: entmax(np.zeros(3), -1.5), "positive"),
        (lambda: entmax(np.zeros(3), float("nan")), "positive"),
        (lambda: tsallis_max(np.zeros(3), float("inf")), "finite"),
        (lambda: tsallis_max(np.zeros(3), "2"), "number"),
        (lambda: tsallis_max(np.zeros(3), True), "number"),
    ],
)
def test_unusable_input_is_refused_in_one_line(call, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
