"""The four functions of each regulariser, its place in JAX, and what it refuses."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from refusals import refused
from tsallax import simplex
from tsallax.regularizer import Hard, Regularizer, Soft, Sparse, Tsallis, by_name

SHAPE = ROWS, WIDTH = 4, 5
"""The shape of all values here, so that they share compiled functions."""
TABLE = np.float32(np.random.default_rng(0).normal(size=SHAPE))
FIRST = np.float32(np.eye(WIDTH)[[0] * ROWS])
"""Policies with all probability on the first action."""
EPS = float(np.finfo(np.float32).eps)
REGULARIZERS = [Hard(), Soft(0.3), Sparse(0.3), Tsallis(0.3, 1.5)]
each = pytest.mark.parametrize("r", REGULARIZERS, ids=repr)
smooth = pytest.mark.parametrize("r", REGULARIZERS[1:], ids=repr)
numbers = st.lists(st.floats(-3, 3, width=32), min_size=ROWS * WIDTH, max_size=ROWS * WIDTH)
tables = numbers.map(lambda values: np.float32(values).reshape(SHAPE))
gradients = jax.jit(jax.grad(lambda r, z: r.value(z).sum(), (0, 1)))


def with_alpha(r, alpha):
    """The same regulariser with another coefficient, unchecked."""
    return jax.tree.map(lambda _: alpha, r)


@given(r=st.sampled_from(REGULARIZERS), z=tables, other=tables)
def test_the_policy_attains_the_value_which_no_other_exceeds_and_which_is_bounded(r, z, other):
    value, p = (np.asarray(x, float) for x in (r.value(z), r.policy(z)))
    assert (np.abs(p.sum(-1) - 1) < 8 * EPS).all()
    attained = (p * z).sum(-1) + r.alpha * np.asarray(r.entropy(np.float32(p)))
    assert (np.abs(attained - value) < 1e-5).all()
    mixed = np.float32(special.softmax(other, -1))
    assert ((mixed * z).sum(-1) + r.alpha * np.asarray(r.entropy(mixed)) <= value + 1e-5).all()
    top = z.max(-1)
    slack = 8 * EPS * (1 + np.abs(top))
    assert (top <= value).all()
    assert (value <= top + r.alpha * r.max_entropy(WIDTH) + slack).all()


@each
def test_the_largest_entropy_is_that_of_the_uniform_policy(r):
    uniform = r.entropy(np.full(SHAPE, 1 / WIDTH, np.float32))
    np.testing.assert_allclose(uniform, r.max_entropy(WIDTH), rtol=1e-5, atol=1e-6)
    assert r.max_entropy(1) == 0
    counts = np.array([1, 2, WIDTH, 1000])
    np.testing.assert_array_equal(r.max_entropy(counts), [r.max_entropy(int(n)) for n in counts])
    assert r.max_entropy(counts).dtype == np.float64
    assert isinstance(r.max_entropy(np.int64(7)), float)


def test_the_largest_entropies_have_their_closed_forms():
    assert Hard().max_entropy(9) == 0
    assert Soft(1).max_entropy(9) == math.log(9)
    assert Sparse(1).max_entropy(9) == 8 / 18
    np.testing.assert_allclose(Tsallis(1, 3).max_entropy(9), (1 - 9**-2) / 6, rtol=1e-15)
    np.testing.assert_allclose(Tsallis(1, 1 + 1e-12).max_entropy(9), math.log(9), rtol=1e-11)


def test_values_and_policies_are_the_functions_of_the_scaled_values():
    z, a = TABLE, 0.25
    np.testing.assert_allclose(Sparse(a).value(z), a * simplex.spmax(z / a), rtol=1e-6)
    np.testing.assert_array_equal(Sparse(a).policy(z), simplex.sparsemax(z / a))
    np.testing.assert_allclose(Soft(a).value(z), a * special.logsumexp(z / a, -1), rtol=1e-6)
    np.testing.assert_allclose(Soft(a).policy(z), special.softmax(z / a, -1), rtol=1e-5)
    np.testing.assert_array_equal(Hard().value(z), z.max(-1))
    np.testing.assert_array_equal(np.asarray(Hard().policy(z)).argmax(-1), z.argmax(-1))


@pytest.mark.parametrize(("kind", "q"), [(Sparse, 2), (Soft, 1)])
def test_sparse_and_soft_are_members_of_the_family_bit_for_bit(kind, q):
    one, other = kind(0.3), Tsallis(0.3, q)
    np.testing.assert_array_equal(one.value(TABLE), other.value(TABLE))
    np.testing.assert_array_equal(one.policy(TABLE), other.policy(TABLE))
    np.testing.assert_array_equal(one.entropy(FIRST), other.entropy(FIRST))
    assert one.max_entropy(7) == other.max_entropy(7)
    assert one == other
    assert hash(one) == hash(other)
    assert one != kind(0.4)
    assert one != Tsallis(0.3, 1.5)


def test_equality_of_coefficients_that_are_arrays():
    assert Sparse(jnp.array([0.1, 0.2])) == Sparse(np.float32([0.1, 0.2]))
    assert Sparse(jnp.array([0.1, 0.2])) != Sparse(0.1)
    assert Hard() == Hard()
    assert Hard() != Sparse(0.1)
    assert Sparse(0.1) != "sparse"


@smooth
def test_derivatives_of_the_value_are_the_policy_and_the_entropy_also_without_some_actions(r):
    z = np.where(np.arange(WIDTH) == 3, np.float32(-np.inf), TABLE)
    by_r, by_z = gradients(r, z)
    np.testing.assert_allclose(by_z, r.policy(z), atol=1e-6)
    assert type(by_r) is type(r)
    np.testing.assert_allclose(by_r.alpha, r.entropy(r.policy(z)).sum(), rtol=1e-6)
    h = 1e-2
    low, high = (with_alpha(r, r.alpha + s).value(z).sum() for s in (-h, h))
    np.testing.assert_allclose((high - low) / (2 * h), by_r.alpha, rtol=5e-3, atol=1e-4)


@smooth
def test_derivative_of_the_policy_by_alpha(r):
    def policy(alpha):
        return with_alpha(r, alpha).policy(TABLE)

    h = 1e-2
    expected = (policy(r.alpha + h) - policy(r.alpha - h)) / (2 * h)
    forward = jax.jit(jax.jacfwd(policy))(r.alpha)
    np.testing.assert_allclose(forward, expected, atol=2e-2)
    backward = jax.jit(jax.grad(lambda alpha: (policy(alpha) * TABLE).sum()))(r.alpha)
    np.testing.assert_allclose(backward, (forward * TABLE).sum(), rtol=1e-4)


@pytest.mark.parametrize("q", [1.5, 2.0])
def test_alpha_can_be_mapped(q):
    alphas = np.float32([0.1, 1.0, 10.0])
    mapped = jax.vmap(lambda r: r.value(TABLE))(Tsallis(alphas, q))
    single = [Tsallis(float(a), q).value(TABLE) for a in alphas]
    np.testing.assert_allclose(mapped, single, rtol=1e-6)
    with refused("vmap"):
        Tsallis(alphas, q).value(TABLE)


@smooth
def test_a_tiny_coefficient_is_the_hard_maximum(r):
    z = np.float32([[1e3, 999.0, -1e3, 0, 0]] * ROWS)
    for alpha in (1e-8, 1e-30):
        tiny = with_alpha(r, alpha)
        np.testing.assert_allclose(tiny.value(z), 1e3)
        np.testing.assert_allclose(tiny.policy(z), FIRST, atol=1e-6)
    np.testing.assert_allclose(gradients(tiny, z)[1], FIRST, atol=1e-6)


@pytest.mark.parametrize("tiny", [Sparse(np.array(1e-300)), Tsallis(1e-300, 1.5)], ids=repr)
def test_a_coefficient_below_float32_is_the_hard_maximum(tiny):
    z = 2 * FIRST
    closed = jax.jit(lambda z: (tiny.value(z), tiny.policy(z)))(z)
    passed = jax.jit(lambda r: (r.value(z), r.policy(z)))(tiny)
    for value, policy in ((tiny.value(z), tiny.policy(z)), closed, passed):
        assert (value == 2.0).all()
        np.testing.assert_allclose(policy, FIRST, atol=1e-6)


@each
def test_no_rows_at_all_give_empty_arrays(r):
    z = jnp.zeros((0, 3))
    assert r.value(z).shape == jax.eval_shape(r.value, z).shape == r.entropy(z).shape == (0,)
    assert r.policy(z).shape == jax.eval_shape(r.policy, z).shape == (0, 3)


@each
def test_pytrees_carry_any_leaf_and_keep_the_index(r):
    leaves, structure = jax.tree.flatten(r)
    assert len(leaves) == (0 if r == Hard() else 1)
    for leaf in (object(), None, -1.0, "leaf"):
        rebuilt = jax.tree.unflatten(structure, [leaf] * len(leaves))
        assert type(rebuilt) is type(r)
        assert rebuilt.q == r.q
    assert jax.tree.unflatten(structure, leaves) == r


@each
def test_masks_and_axes_reach_the_operators(r):
    mask = np.arange(WIDTH) != np.arange(ROWS)[:, None]
    missing = np.where(mask, TABLE, -np.inf)
    np.testing.assert_array_equal(r.value(TABLE, where=mask), r.value(missing))
    np.testing.assert_array_equal(r.policy(TABLE, where=mask), r.policy(missing))
    np.testing.assert_array_equal(r.value(TABLE.T, axis=0), r.value(TABLE))
    np.testing.assert_array_equal(np.transpose(r.policy(TABLE.T, axis=0)), r.policy(TABLE))
    p = r.policy(TABLE, where=mask)
    np.testing.assert_array_equal(r.entropy(np.where(mask, p, np.nan), where=mask), r.entropy(p))
    np.testing.assert_array_equal(r.entropy(np.transpose(p), axis=0), r.entropy(p))


@each
def test_short_floats_come_back_short(r):
    z = jnp.asarray(TABLE, jnp.bfloat16)
    assert r.value(z).dtype == r.policy(z).dtype == r.entropy(r.policy(z)).dtype == jnp.bfloat16
    np.testing.assert_array_equal(r.value(z), r.value(z.astype(jnp.float32)).astype(jnp.bfloat16))


@each
def test_nan_and_infinity_never_give_a_plausible_answer(r):
    z = TABLE.copy()
    z[0, 1], z[1, 2], z[2] = np.nan, np.inf, -np.inf
    traced = [np.asarray(x) for x in jax.jit(lambda z: (r.value(z), r.policy(z)))(z)]
    with refused("no actions"):
        r.value(z)
    z[2] = 0.0
    for value, policy in ((r.value(z), r.policy(z)), traced):
        assert np.isnan(value[:2]).all()
        assert np.isnan(policy[:2]).all()
        assert np.isfinite(policy[3]).all()
    assert np.isnan(traced[1][2]).all()
    assert np.isnan(r.entropy(np.where(np.isfinite(z), FIRST, np.nan))[:2]).all()


@smooth
def test_a_traced_coefficient_that_is_not_positive_gives_nan(r):
    value = jax.jit(lambda r: r.value(TABLE))
    assert all(np.isnan(value(with_alpha(r, alpha))).all() for alpha in (0.0, -1.0, np.nan))


def test_hard_takes_the_first_maximum_and_its_gradient_follows():
    z = np.float32([1.0, 3.0, 3.0])
    np.testing.assert_array_equal(Hard().policy(z), [0, 1, 0])
    np.testing.assert_array_equal(jax.grad(Hard().value)(z), [0, 1, 0])
    assert (Hard().alpha, Hard().q) == (0.0, 2.0)


@pytest.mark.parametrize("make", [Sparse, lambda a: Tsallis(a, 1.5)], ids=["sparse", "tsallis"])
@pytest.mark.parametrize(
    "alpha",
    [0, 0.0, -1, math.nan, math.inf, np.array([0.1, -1.0]), jnp.array(0.0), "0.1", None, True],
    ids=str,
)
def test_a_coefficient_that_is_not_positive_is_refused(make, alpha):
    with refused("alpha must be"):
        make(alpha)


@pytest.mark.parametrize("q", [0, -1, math.nan, math.inf, "2", None])
def test_an_index_that_is_not_positive_is_refused(q):
    with refused("q must be"):
        Tsallis(0.1, q)


@pytest.mark.parametrize("n", [0, -1, 2.5, np.array([1, 0])])
@each
def test_a_number_of_actions_below_one_is_refused(r, n):
    with refused("number of actions"):
        r.max_entropy(n)


def test_names_become_regularizers_and_back():
    made = [by_name("hard"), by_name("soft", 0.1), by_name("sparse", 0.1), by_name("tsallis", 1, 3)]
    assert made == [Hard(), Soft(0.1), Sparse(0.1), Tsallis(1.0, 3.0)]
    assert [r.name for r in made] == ["hard", "soft", "sparse", "tsallis"]
    assert all(isinstance(r, Regularizer) for r in made)
    assert repr(made) == "[Hard(), Soft(alpha=0.1), Sparse(alpha=0.1), Tsallis(alpha=1.0, q=3.0)]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shannon", 0.1), "choose from hard, soft, sparse, tsallis"),
        (("sparse",), "needs alpha"),
        (("tsallis", 0.1), "needs q"),
        (("hard", 0.1), "takes no alpha"),
        (("soft", 0.1, 2.0), "takes no q"),
    ],
)
def test_names_with_wrong_arguments_are_refused(arguments, message):
    with refused(message):
        by_name(*arguments)
