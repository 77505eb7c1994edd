"""The operators agree with exact arithmetic and with optax, and obey the laws of the paper."""

import os
import subprocess
import sys
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from precision import double
from refusals import refused
from tsallax.simplex import entmax, sparsemax, spmax, support, threshold, tsallis_max

INDICES = [0.5, 1.0, 1.1, 1.5, 2.0, 4.0]
"""One entropic index for each branch of the implementation."""
MORE_INDICES = (0.2, 0.9, 0.9999, 1 + 1e-9, 1 + 1e-6, 1.25, 1.3, 1.9, 2.5, 10.0)
ROWS, WIDTH = 4, 7
"""The shape of nearly all values here: one compilation for each index serves all tests."""
TABLE = np.float32(np.random.default_rng(9).normal(size=(ROWS, WIDTH)))
EPS = float(np.finfo(np.float32).eps)


def padded(rows):
    """Rows of up to WIDTH values at that width, and their mask."""
    values, mask = np.full((ROWS, WIDTH), 77.0, np.float32), np.zeros((ROWS, WIDTH), bool)
    for i, row in enumerate(rows):
        values[i, : len(row)], mask[i, : len(row)] = row, True
    return values, mask


entries = st.floats(-20, 20, width=32) | st.sampled_from([0.0, 1.0, 0.5, -0.25, 1e-40, -1e-6])
vectors = st.lists(entries, min_size=1, max_size=WIDTH)
tables = st.lists(vectors, min_size=ROWS, max_size=ROWS).map(padded)
indices = st.sampled_from(INDICES)


def each_index(*fast: float, slow: tuple[float, ...] = ()):
    """Run a test for some indices, and with `make test-slow` for others."""
    later = [pytest.param(q, marks=pytest.mark.slow) for q in slow]
    return pytest.mark.parametrize("q", [*fast, *later])


def exact(z, q=2.0):
    """Policy and value of index q in exact rationals (q = 2) or 70 digits."""
    numbers = [Fraction(float(v)) for v in z]
    if q != 2:
        numbers = [oracle.to_mpf(v) for v in numbers]
    value, policy = oracle.greedy(numbers, Fraction(1), Fraction(q))
    return np.array([float(p) for p in policy]), float(value)


def max_entropy(n, q):
    return float(oracle.max_entropy(n, Fraction(q)))


def floats(array):
    return np.asarray(array, float)


@given(tables)
def test_sparsemax_is_the_papers_formula_in_exact_rationals(table):
    values, mask = table
    results = [floats(f(values, where=mask)) for f in (sparsemax, threshold, spmax, support)]
    for z, present, p, tau, value, inside in zip(values, mask, *results, strict=True):
        numbers = [Fraction(float(v)) for v in z[present]]
        true_tau, true_p, true_value = oracle.sparsemax(numbers)
        scale = EPS * (1 + np.abs(z[present]).max())
        np.testing.assert_allclose(p[present], floats(true_p), atol=4 * EPS, rtol=4 * EPS)
        assert not p[~present].any()
        assert abs(tau - float(true_tau)) <= 2 * scale
        assert abs(value - float(true_value)) <= 2 * scale
        clear = np.array([abs(v - true_tau) > 4 * EPS for v in numbers])
        np.testing.assert_array_equal(inside[present][clear], (floats(true_p) > 0)[clear])


def test_sparsemax_agrees_with_optax():
    rng = np.random.default_rng(2)
    project = jax.jit(jax.vmap(optax.projections.projection_simplex))
    for scale in (0.01, 0.1, 0.3, 1.0, 10.0):
        z = np.float32(scale * rng.normal(size=(2, ROWS, WIDTH)))
        for rows in (z[0], np.round(z[1], 1)):  # with ties
            np.testing.assert_allclose(sparsemax(rows), project(rows), atol=1e-6)


def assert_exact(z, q, policy_error, value_error):
    """Policies and values agree with exact arithmetic."""
    policies, values = entmax(z, q), tsallis_max(z, q)
    assert policies.dtype == values.dtype == z.dtype
    for row, policy, value in zip(z, policies, values, strict=True):
        p, best = exact(row, q)
        close = policy_error * max(1.0, 1 / min(p[p > 0]) ** max(q - 2, 0))
        np.testing.assert_allclose(policy, p, atol=close)
        np.testing.assert_allclose(value, best, rtol=value_error, atol=value_error)


SCALES = np.array([[0.01], [0.3], [1.0], [5.0]])


@each_index(*INDICES, slow=MORE_INDICES)
def test_entmax_agrees_with_seventy_digits(q):
    for seed in range(3):
        rows = np.random.default_rng(seed).normal(size=(ROWS, WIDTH))
        assert_exact(np.float32(SCALES * rows), q, 4e-7, 1e-6)


@each_index(1.5, 2.0, slow=(0.5, 1.0, 1.1, 4.0, *MORE_INDICES))
def test_entmax_is_right_to_rounding_in_double_precision(q):
    with double():
        rows = np.random.default_rng(1).normal(size=(ROWS, WIDTH))
        assert_exact(2 * SCALES * rows, q, 4e-15, 4e-15)


try:  # the environment of the benchmarks has it, with torch
    import entmax as peer
    import torch
except ImportError:
    pass
else:

    @pytest.mark.parametrize("q", [1.5, 2.0, 1.3])
    def test_entmax_agrees_with_the_entmax_library(q):
        rng = np.random.default_rng(2)
        z = np.float32(rng.normal(size=(40, 300)) * rng.choice([0.01, 0.1, 1, 10], size=(40, 1)))
        # its index alpha is the q of this library, and so is its factor k = 1/q
        expected = peer.entmax_bisect(torch.tensor(z), alpha=q, dim=-1, n_iter=60)
        np.testing.assert_allclose(entmax(z, q), expected.numpy(), atol=3e-6)


@given(q=indices, table=tables, alpha=st.floats(0.01, 100))
def test_the_maximum_is_bounded_by_the_largest_entropy(q, table, alpha):
    """max z <= alpha tsallis_max(z/alpha) <= max z + alpha Omega_max(d), eq. (spmax_bnd)."""
    values, mask = np.float32(table[0] / alpha), table[1]
    value = floats(tsallis_max(values, q, where=mask))
    top = floats(values.max(-1, where=mask, initial=-np.inf))
    entropy = np.array([max_entropy(int(n), q) for n in mask.sum(-1)])
    assert (top - 1e-37 <= value).all()
    assert (value <= top + entropy * (1 + 4 * EPS) + 4 * EPS * (np.abs(top) + 1)).all()


@given(q=indices, table=tables, shift=st.integers(-10_000, 10_000) | st.just(10_000_000))
def test_the_maximum_moves_with_a_shift_and_the_policy_does_not_change(q, table, shift):
    fraction = 64 if abs(shift) <= 10_000 else 1  # of values whose sums are exact in float32
    values, mask = np.round(table[0] * fraction) / fraction, table[1]
    moved = values + np.float32(shift)
    np.testing.assert_array_equal(entmax(moved, q, where=mask), entmax(values, q, where=mask))
    before, after = (floats(tsallis_max(z, q, where=mask)) for z in (values, moved))
    assert (np.abs(after - before - shift) <= 4 * EPS * (abs(shift) + 30)).all()


@given(q=indices, table=tables, bumps=st.lists(st.floats(0, 3), min_size=WIDTH, max_size=WIDTH))
def test_the_maximum_is_monotone(q, table, bumps):
    values, mask = table
    low, high = (
        floats(tsallis_max(z, q, where=mask)) for z in (values, np.float32(values + bumps))
    )
    assert (low <= high + 8 * EPS * (1 + np.abs(high))).all()


@given(q=indices, table=tables)
def test_the_policy_attains_the_maximum(q, table):
    """<p, z> + Omega(p) = tsallis_max(z), for a p that is a distribution."""
    values, mask = table
    p, value = (floats(f(values, q, where=mask)) for f in (entmax, tsallis_max))
    assert (p >= 0).all()
    assert (np.abs(p.sum(-1) - 1) < 8 * EPS).all()
    on = np.where(p > 0, p, 1)
    omega = -(on * np.log(on)) if q == 1 else (p - p**q) / (q * (q - 1))
    attained = (p * values + omega).sum(-1)
    assert (np.abs(attained - value) <= 2e-5 * (1 + np.abs(value)) / (abs(q - 1) or 1)).all()


@given(tables)
def test_spmax_is_below_log_sum_exp(table):
    values, mask = table
    assert (spmax(values, where=mask) <= tsallis_max(values, 1, where=mask) + 1e-5).all()


MANY = 100_000


@pytest.mark.parametrize(
    ("q", "n"),
    [
        (2.0, MANY),
        pytest.param(1.5, 10_000, marks=pytest.mark.slow),
        *(pytest.param(q, MANY, marks=pytest.mark.slow) for q in (0.2, 0.9, 1, 1.25, 1.5, 10)),
    ],
)
def test_rows_of_many_actions_sum_to_one(q, n):
    """Equal, nearly equal, one above many equal, and normal values."""
    noise = np.random.default_rng(5).normal(size=(2, n))
    z = np.float32([np.zeros(n), 1e-5 * noise[0], np.r_[0.0, np.full(n - 1, -0.5)], noise[1]])
    p = floats(entmax(z, q))
    np.testing.assert_allclose(p.sum(-1), 1, atol=2e-6)
    value = floats(tsallis_max(z, q)) - z.max(-1)
    assert (value >= 0).all()
    assert (value <= max_entropy(n, q) * (1 + 2e-6)).all()


def test_a_large_support_is_exact():
    row = np.float32(1e-5 * np.random.default_rng(7).normal(size=3_000))
    _, p, value = oracle.sparsemax([Fraction(float(v)) for v in row])
    z = np.full((4, MANY), -np.inf, np.float32)
    z[:, : len(row)] = row
    policy = sparsemax(z)[0, : len(row)]
    np.testing.assert_allclose(policy, floats(p), rtol=1e-5, atol=1e-11)
    np.testing.assert_array_equal(policy > 0, [v > 0 for v in p])
    np.testing.assert_allclose(float(spmax(z)[0]), float(value), rtol=2 * EPS)


@each_index(1.5, 2.0, 4.0, slow=(0.2, 1.0, 10.0))
def test_ties_denormals_and_a_single_action(q):
    values, mask = padded([[-3.25] * WIDTH, [-3.25], [0, 1e-45, -1e-45, 1e-40, 0, 0, 0], [0] * 3])
    counts = mask.sum(-1)
    expected = mask / counts[:, None]
    np.testing.assert_allclose(entmax(values, q, where=mask), expected, rtol=4e-6)
    bonus = floats(tsallis_max(values, q, where=mask)) - values[:, 0]
    entropies = [max_entropy(int(n), q) for n in counts]
    np.testing.assert_allclose(bonus, entropies, rtol=2e-6, atol=1e-6)


@each_index(4.0, slow=(2.5, 10.0))
def test_an_action_at_the_edge_of_the_support_gets_almost_nothing(q):
    """Where d p / d z is infinite for q > 2, rounding must not turn into probability."""
    values, mask = padded([[0.0, -1 / (q - 1) + 1e-7]] * ROWS)
    assert exact(values[0, :2], q)[0][1] < 1e-6
    assert entmax(values, q, where=mask)[0, 1] < 1e-4
    assert 0 <= tsallis_max(values, q, where=mask)[0] < 1e-6


@each_index(1.0, 1.5, 2.0)
def test_masked_and_minus_infinite_entries_are_left_out(q):
    mask = np.random.default_rng(10).random(TABLE.shape) < 0.5
    mask[:, 0] = True
    poisoned = np.where(mask, TABLE, np.nan)
    p = np.asarray(entmax(poisoned, q, where=mask))
    value = np.asarray(tsallis_max(poisoned, q, where=mask))
    np.testing.assert_array_equal(p, entmax(np.where(mask, TABLE, -np.inf), q))
    np.testing.assert_array_equal(value, tsallis_max(np.where(mask, TABLE, -np.inf), q))
    assert not p[~mask].any()
    for row, present, expected in zip(TABLE, mask, p, strict=True):
        np.testing.assert_allclose(expected[present], exact(row[present], q)[0], atol=1e-6)


@each_index(1.0, 1.5, 2.0)
def test_nan_and_infinity_make_their_row_nan_and_no_other(q):
    z = TABLE.copy()
    z[0, 3], z[2, 0] = np.nan, np.inf
    invalid = np.isin(np.arange(len(z)), [0, 2])
    p = np.asarray(entmax(z, q))
    assert np.isnan(p[invalid]).all()
    np.testing.assert_array_equal(p[~invalid], np.asarray(entmax(TABLE, q))[~invalid])
    np.testing.assert_array_equal(np.isnan(tsallis_max(z, q)), invalid)
    if q == 1.5:
        assert np.isnan(jax.grad(lambda v: tsallis_max(v, q).sum())(z)[0]).all()


def test_any_axis_is_the_last_axis_moved_and_masks_broadcast():
    for axis in (0, -2):
        np.testing.assert_array_equal(np.transpose(sparsemax(TABLE.T, axis)), sparsemax(TABLE))
        np.testing.assert_array_equal(spmax(TABLE.T, axis), spmax(TABLE))
    row = np.arange(WIDTH) % 3 > 0
    whole = np.broadcast_to(row, TABLE.shape)
    np.testing.assert_array_equal(sparsemax(TABLE, where=row), sparsemax(TABLE, where=whole))


@pytest.mark.slow
@pytest.mark.parametrize(("q", "ulps"), [(2.0, 0), (1.5, 32)])
def test_jit_vmap_single_rows_and_blocks_of_rows_agree(q, ulps, monkeypatch):
    """Bit for bit where no exponential is involved: rows are independent."""
    z = np.float32(np.random.default_rng(13).normal(size=(23, 40)))
    expected, value = np.asarray(entmax(z, q)), np.asarray(tsallis_max(z, q))

    def agree(a, b):
        np.testing.assert_allclose(a, b, rtol=ulps * EPS, atol=ulps * EPS / 10)

    agree(jax.vmap(lambda v: entmax(v, q))(z), expected)
    agree(jnp.stack([entmax(row, q) for row in z[:3]]), expected[:3])
    monkeypatch.setattr("tsallax.simplex.BLOCK", 40 * 5)
    agree(jax.jit(lambda v: entmax(v, q))(z), expected)
    agree(jax.jit(lambda v: tsallis_max(v, q))(z.reshape(23, 1, 40)).ravel(), value)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_short_floats_are_computed_in_float32_and_returned_short_and_integers_as_floats(dtype):
    whole = np.round(TABLE).astype(int)
    assert sparsemax(whole).dtype == jnp.float32
    np.testing.assert_array_equal(sparsemax(whole), sparsemax(whole.astype(np.float32)))
    z = jnp.asarray(TABLE, dtype)
    for function in (sparsemax, spmax, threshold, lambda v: entmax(v, 1.5)):
        assert function(z).dtype == dtype
        np.testing.assert_array_equal(function(z), function(z.astype(jnp.float32)).astype(dtype))


def slope(f, z, v, h=1e-6):
    return (f(z + h * v) - f(z - h * v)) / (2 * h)


def table_and_directions():
    """Values and two directions in double precision."""
    z, *directions = np.random.default_rng(15).normal(size=(3, ROWS, WIDTH))
    return map(jnp.asarray, (0.5 * z, *directions))


@partial(jax.jit, static_argnums=0)
def derivatives(q, z, v, u):
    """The gradient of the maximum, and that of the policy along v and back from u."""
    policy = partial(entmax, q=q)
    gradient = jax.grad(lambda y: tsallis_max(y, q).sum())(z)
    return gradient, jax.jvp(policy, (z,), (v,))[1], jax.vjp(policy, z)[1](u)[0]


@each_index(1.5, slow=(0.5, 1.0, 1.2, 2.0, 3.0))
def test_derivatives_agree_with_finite_differences(q):
    with double():
        z, v, u = table_and_directions()
        p = entmax(z, q)
        assert int((p > 0).sum()) > ROWS, "all policies are deterministic"
        gradient, forward, backward = derivatives(q, z, v, u)
        np.testing.assert_allclose(gradient, p, atol=1e-14)
        np.testing.assert_allclose(forward, slope(lambda y: entmax(y, q), z, v), atol=1e-7)
        np.testing.assert_allclose((backward * v).sum(), (forward * u).sum(), atol=1e-12)
        if q != 1.5:
            second = jax.hessian(lambda y: tsallis_max(y, q))(z[0]) @ v[0]
            np.testing.assert_allclose(second, forward[0], atol=1e-13)


def test_the_derivative_of_the_threshold_is_the_mean_over_the_support():
    with double():
        z, v, _ = table_and_directions()
        tau = jax.jit(lambda z, v: jax.jvp(threshold, (z,), (v,))[1])(z, v)
        np.testing.assert_allclose(tau, slope(threshold, z, v), atol=1e-7)
        np.testing.assert_allclose(tau, np.mean(v, -1, where=support(z)), atol=1e-14)


def test_gradients_ignore_masked_entries():
    z = np.float32([1.0, np.nan, 0.5, -np.inf, -9, -9, -9])
    mask = np.arange(WIDTH) != 1
    gradient = jax.jit(jax.grad(lambda v: spmax(v, where=mask)))(z)
    np.testing.assert_array_equal(gradient, [0.75, 0.0, 0.25, 0.0, 0.0, 0.0, 0.0])
    jacobian = jax.jit(jax.jacrev(lambda v: sparsemax(v, where=mask)))(z)
    np.testing.assert_array_equal(np.asarray(jacobian)[[0, 0, 2, 1, 3], [0, 2, 2, 1, 3]],
                                  [0.5, -0.5, 0.5, 0.0, 0.0])  # fmt: skip


def test_a_row_without_actions_is_refused_or_nan_when_traced():
    mask = np.arange(ROWS)[:, None] > 0
    for z, where in ((np.where(mask, TABLE, -np.inf), None), (TABLE, mask)):
        with refused("no actions"):
            entmax(z, 1.5, where=where)
    p = jax.jit(lambda v: entmax(v, 1.5, where=mask))(TABLE)
    np.testing.assert_array_equal(np.isnan(p), np.broadcast_to(~mask, TABLE.shape))


def test_no_rows_at_all_give_empty_arrays():
    z = jnp.zeros((0, 3), jnp.float16)
    for function in (support, lambda z: entmax(z, 1.5)):
        assert function(z).shape == jax.eval_shape(function, z).shape == (0, 3)
    for function in (threshold, lambda z: tsallis_max(z, 1.5)):
        assert function(z).shape == jax.eval_shape(function, z).shape == (0,)
        assert function(z).dtype == jnp.float16
    assert entmax(jnp.zeros((3, 2, 0)), 2, axis=0).shape == (3, 2, 0)
    assert jax.eval_shape(jax.grad(lambda z: tsallis_max(z, 2).sum()), z).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sparsemax(np.zeros((2, 0))), "no actions"),
        (lambda: sparsemax(np.zeros((2, 3)), axis=2), "no axis 2"),
        (lambda: sparsemax(np.zeros((2, 3)), axis=None), "no axis None"),
        (lambda: sparsemax(np.zeros((2, 3)), axis=0.0), "no axis 0.0"),
        (lambda: sparsemax(1.0), "no axis"),
        (lambda: sparsemax(np.zeros(3, complex)), "real"),
        (lambda: spmax(np.zeros(3), where=np.ones(4, bool)), "broadcast"),
        (lambda: entmax(np.zeros(3), -1.5), "positive"),
        (lambda: tsallis_max(np.zeros(3), "2"), "number"),
    ],
)
def test_unusable_input_is_refused_in_one_line(call, message):
    with refused(message):
        call()


def row_of(policy, q, dtype):
    """Values z = p^(q-1)/(q-1) with this policy, its tsallis_max, and two values below all others.

    Rounding z by eps moves the larger p_i by less, and the least is what they leave over.
    """
    with mpmath.workdps(50):
        p, q = [mpmath.mpf(x) for x in policy], mpmath.mpf(q)
        z = [x ** (q - 1) / (q - 1) for x in p]
        omega = mpmath.fsum(x * (1 - x ** (q - 1)) for x in p) / (q * (q - 1))
        value = float(mpmath.fdot(p, z) + omega)
        outside = [-1e-3, float(p[0] ** (q - 1) / (q - 1) - 2 / (q - 1))]
        return np.asarray([*(float(x) for x in z), *outside], dtype), [*policy, 0.0, 0.0], value


@pytest.mark.parametrize(
    ("q", "dtype", "policies"),
    [
        pytest.param(
            20.0,
            np.float64,
            ([0.5, 0.3, 0.2], [0.25] * 4, [0.4, 0.2, 0.2, 0.1, 0.1], [1.0]),
            marks=pytest.mark.slow,
        ),
        (50.0, np.float32, ([0.97, 0.03], [0.3, 0.3, 0.2, 0.2], [0.2] * 5, [1.0])),
        pytest.param(
            1000.0,
            np.float64,
            ([0.97, 0.03], [0.6, 0.4], [0.6, 0.1, 0.1, 0.1, 0.1], [0.25] * 4),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_entmax_with_a_large_index_attains_given_policies(q, dtype, policies):
    """Of which all powers z but that of the least probability are within the range of dtype."""
    with double(dtype == np.float64):
        rows = [row_of(p, q, dtype) for p in policies]
        values, expected = np.full((ROWS, WIDTH), -np.inf, dtype), np.zeros((ROWS, WIDTH))
        for i, (z, p, _) in enumerate(rows):
            values[i, : len(z)], expected[i, : len(p)] = z, p
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(entmax(values, q), expected, rtol=0, atol=4 * eps)
        best = [value for *_, value in rows]
        np.testing.assert_allclose(tsallis_max(values, q), best, rtol=8 * eps, atol=0)


def repeated(row):
    """A row, with its least value as often as there is room for, as every row of a table."""
    table = np.full((ROWS, WIDTH), min(row), np.float32)
    table[:, : len(row)] = row
    return table


def test_two_nearly_equal_values_and_a_large_index():
    """The value 0.00472993 below the best gets 1 - (49 * 0.00472993)^(1/49), but for 1e-75."""
    z = repeated([0.00873729, 0.00400736, -0.0159344])
    first = (49 * (float(z[0, 0]) - float(z[0, 1]))) ** (1 / 49)
    expected = np.zeros(z.shape)
    expected[:, :2] = first, 1 - first
    np.testing.assert_allclose(entmax(z, 50.0), expected, atol=4 * EPS)


def test_derivatives_with_a_large_index():
    """dp_1 = -dp_2 = w_1 w_2 / (w_1 + w_2) (dz_1 - dz_2), w = p^(2-q), of two actions."""
    q = 50.0
    z, p, _ = row_of([0.97, 0.03], q, np.float32)
    direction = repeated([0.5, -1.0, 3.0, 2.0])
    w = [mpmath.mpf(x) ** (2 - mpmath.mpf(q)) for x in p[:2]]
    slope = float(w[0] * w[1] / (w[0] + w[1]))
    expected = np.zeros(direction.shape)
    expected[:, :2] = 1.5 * slope, -1.5 * slope
    _, dp, gradient = derivatives(q, repeated(z), direction, direction)
    np.testing.assert_allclose(dp, expected, rtol=2 * q * EPS)
    np.testing.assert_allclose(gradient, dp, rtol=2 * q * EPS)


SHARDED = """
import jax, numpy as np
from jax.sharding import Mesh, PartitionSpec
from tsallax import simplex

mesh = Mesh(np.array(jax.devices()), ("rows",))
z = np.float32(np.random.default_rng(0).normal(size=(2 * 300, 1000)))
parts = PartitionSpec("rows")
f = jax.shard_map(simplex.sparsemax, mesh=mesh, in_specs=parts, out_specs=parts)
sharded = jax.jit(f)(z)
assert len(sharded.sharding.device_set) == 2
np.testing.assert_array_equal(sharded, simplex.sparsemax(z))
"""


@pytest.mark.slow
def test_shards_of_several_blocks_of_rows_agree_with_the_whole():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    ended = subprocess.run(
        [sys.executable, "-c", SHARDED], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
