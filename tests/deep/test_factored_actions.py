"""The theory of factored actions (docs/theory.md) against brute force over joint actions.

F(Q) = max over product policies of E_pi[Q] + alpha/D sum_d Omega(pi_d). The library computes it by
dimensions, the mean of `regularizer.value` over the rows of `ActionLayout.split`; everything that
it is compared with goes through all joint actions.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import oracle
from precision import double
from tsallax.deep.action_layout import ActionLayout
from tsallax.regularizer import Hard, Soft, Sparse, Tsallis

CHOICES = (2, 3)
LAYOUT = ActionLayout(CHOICES, factored=True)
ALPHA, GAMMA, STATES = 0.5, 0.8, 3
REGULARIZERS = [Hard(), Soft(ALPHA), Sparse(ALPHA), Tsallis(ALPHA, 1.5), Tsallis(ALPHA, 0.5)]
each = pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
small = st.integers(-16, 16).map(lambda k: Fraction(k, 8))
outputs = st.lists(small, min_size=sum(CHOICES), max_size=sum(CHOICES))


@jax.jit
def _by_rows(regularizer, q):
    rows = LAYOUT.split(q)
    return regularizer.value(rows).mean(-1), LAYOUT.join(regularizer.policy(rows))


def value_and_policy(regularizer, q) -> tuple[np.ndarray, np.ndarray]:
    """F and the policies, by dimensions, of network outputs (5,) or (3, 5)."""
    with double():
        found = _by_rows(regularizer, np.broadcast_to(np.asarray(q, float), (STATES, 5)))
    return tuple(np.asarray(x)[0] if np.ndim(q) == 1 else np.asarray(x) for x in found)


def value(regularizer, q) -> np.ndarray:
    return value_and_policy(regularizer, q)[0]


def policies(regularizer, q) -> list[np.ndarray]:
    """The policy of each dimension, of network outputs (5,)."""
    return np.split(value_and_policy(regularizer, q)[1], [CHOICES[0]])


def joint(q):
    """Q(a_1, a_2) = (Q_1(a_1) + Q_2(a_2)) / 2, (..., 2, 3)."""
    first, second = np.asarray(q)[..., : CHOICES[0]], np.asarray(q)[..., CHOICES[0] :]
    return (first[..., :, None] + second[..., None, :]) / 2


def grid(n: int, steps: int) -> list[tuple[Fraction, ...]]:
    """All distributions over n choices whose probabilities are multiples of 1/steps."""
    numbers = itertools.product(range(steps + 1), repeat=n - 1)
    points = [(*k, steps - sum(k)) for k in numbers if sum(k) <= steps]
    return [tuple(Fraction(k, steps) for k in point) for point in points]


def most_entropy(regularizer) -> float:
    """1/D sum_d Omega_max(n_d)."""
    return float(np.mean([regularizer.max_entropy(n) for n in CHOICES]))


@given(q=outputs)
def test_the_optimum_over_products_in_exact_arithmetic(q):
    """Over joint actions, no product of a grid, and no joint policy, exceeds the mean of values."""
    alpha = Fraction(1, 2)
    rows = q[: CHOICES[0]], q[CHOICES[0] :]
    table = [[(x + y) / 2 for y in rows[1]] for x in rows[0]]

    def objective(first, second):
        expected = sum(
            p * r * table[i][j] for i, p in enumerate(first) for j, r in enumerate(second)
        )
        bonus = oracle.tsallis_entropy(first, Fraction(2)) + oracle.tsallis_entropy(
            second, Fraction(2)
        )
        return expected + alpha * bonus / 2

    best = [oracle.greedy(row, alpha, Fraction(2)) for row in rows]
    optimum = (best[0][0] + best[1][0]) / 2
    assert objective(best[0][1], best[1][1]) == optimum
    assert all(objective(*pair) <= optimum for pair in itertools.product(grid(2, 4), grid(3, 4)))
    assert value(Sparse(0.5), q) == pytest.approx(float(optimum), abs=1e-12)
    for mine, (_, exact) in zip(policies(Sparse(0.5), q), best):
        np.testing.assert_allclose(mine, np.array(exact, float), atol=1e-12)


@each
@pytest.mark.parametrize("products", [True, False], ids=["product policies", "joint policies"])
def test_an_optimiser_over_joint_actions_finds_the_mean_of_values(regularizer, products):
    """Joint policies, with the entropies of their marginals, do as well as products, not better."""
    rng = np.random.default_rng(5)
    q = rng.normal(size=5)
    table, alpha, index = joint(q), regularizer.alpha, regularizer.q

    def distribution(x):
        if not products:
            return (np.exp(x - x.max()) / np.exp(x - x.max()).sum()).reshape(CHOICES)
        first, second = (np.exp(y - y.max()) for y in np.split(x, [CHOICES[0]]))
        return np.outer(first / first.sum(), second / second.sum())

    def entropy(p):
        if index == 1:
            return -(p * np.log(p + 1e-300)).sum()
        return (1 - (p**index).sum()) / (index * (index - 1))

    def loss(x):
        p = distribution(x)
        return -(p * table).sum() - alpha * (entropy(p.sum(0)) + entropy(p.sum(1))) / 2

    size = 5 if products else 6
    found = max(-minimize(loss, rng.normal(size=size), tol=1e-12).fun for _ in range(3))
    assert found == pytest.approx(float(value(regularizer, q)), abs=1e-4)
    assert found <= value(regularizer, q) + 1e-9


@given(q=outputs, other=outputs, c=small, which=st.sampled_from(REGULARIZERS))
def test_f_is_monotone_equivariant_and_not_expansive(q, other, c, which):
    x, y = np.array(q, float), np.array(other, float)
    shift = np.array([float(c)] * CHOICES[0] + [-float(c)] * CHOICES[1])
    apart = np.abs(joint(x) - joint(y)).max()
    assert apart <= np.abs(x - y).max() + 1e-12
    assert abs(value(which, x) - value(which, y)) <= apart + 1e-12
    above = np.maximum(x, y) + shift  # its Q is not below that of x, its Q_1 or Q_2 may be
    assert (joint(above) >= joint(x) - 1e-12).all()
    assert value(which, above) >= value(which, x) - 1e-12
    assert value(which, x + float(c)) == pytest.approx(float(value(which, x)) + float(c), abs=1e-12)
    assert value(which, x + shift) == pytest.approx(float(value(which, x)), abs=1e-12)


@given(q=outputs)
def test_f_is_bounded_and_decreases_with_the_index(q):
    top = joint(np.array(q, float)).max()
    values = [float(value(r, q)) for r in REGULARIZERS]
    for found, r in zip(values, REGULARIZERS):
        assert top - 1e-12 <= found <= top + r.alpha * most_entropy(r) + 1e-12
    hard, soft, sparse, between, heavy = values
    assert hard <= sparse + 1e-12
    assert sparse <= between + 1e-12
    assert between <= soft + 1e-12
    assert soft <= heavy + 1e-12


counts = st.lists(st.integers(0, 9), min_size=2, max_size=4).filter(any)


@given(rows=st.lists(counts, min_size=1, max_size=3))
def test_the_joint_entropy_of_a_product(rows):
    """1 - q(q-1) Omega_q(pi) is the product of those of the factors; Omega_1 is a sum."""
    factors = [[Fraction(k, sum(row)) for k in row] for row in rows]
    product = [math.prod(ps) for ps in itertools.product(*factors)]
    two = Fraction(2)
    rest = [1 - 2 * oracle.tsallis_entropy(p, two) for p in factors]
    assert 1 - 2 * oracle.tsallis_entropy(product, two) == math.prod(rest)
    padded = np.zeros((4, 64))
    for row, p in zip(padded, [product, *factors]):
        row[: len(p)] = np.array(p, float)
    with double():
        sparse, cubic, shannon = np.asarray(_entropies(padded))
    used = slice(1, 1 + len(factors))
    assert 1 - 2 * sparse[0] == pytest.approx(float(math.prod(rest)), abs=1e-12)
    assert 1 - 6 * cubic[0] == pytest.approx(np.prod(1 - 6 * cubic[used]), abs=1e-12)
    assert shannon[0] == pytest.approx(shannon[used].sum(), abs=1e-12)


@jax.jit
def _entropies(p):
    return jnp.stack([r.entropy(p) for r in (Sparse(1.0), Tsallis(1.0, 3.0), Soft(1.0))])


def test_the_sparse_entropy_of_a_product_is_neither_sum_nor_mean_and_its_optimum_no_product():
    half = [Fraction(1, 2)] * 2
    assert oracle.tsallis_entropy(half, Fraction(2)) == Fraction(1, 4)
    assert oracle.tsallis_entropy([Fraction(1, 4)] * 4, Fraction(2)) == Fraction(3, 8)
    row = [Fraction(1), Fraction(0)]
    table = [(x + y) / 2 for x in row for y in row]
    together, (a, b, c, d) = oracle.greedy(table, Fraction(2), Fraction(2))
    assert (together, a, b, c, d) == (Fraction(11, 8), *(Fraction(k, 4) for k in (2, 1, 1, 0)))
    assert a * d != b * c
    assert oracle.greedy(row, Fraction(2), Fraction(2))[0] == Fraction(9, 8)


@given(q=outputs)
def test_factored_soft_with_twice_alpha_is_joint_soft(q):
    table = joint(np.array(q, float))
    weights = np.exp(table / ALPHA)
    exact = ALPHA * np.log(weights.sum())
    assert value(Soft(2 * ALPHA), q) == pytest.approx(exact, abs=1e-12)
    product = np.outer(*policies(Soft(2 * ALPHA), q))
    np.testing.assert_allclose(product, weights / weights.sum(), atol=1e-12)


H = 1 / 40
GRID = [np.array(grid(n, 40), float) for n in CHOICES]
GRID_ENTROPY = np.add.outer(*((1 - (p**2).sum(1)) / 2 for p in GRID)) / 2


def slack(q=None):
    """How much F of a Q (S, 2, 3), or of a factored one, can be above the best of the grid.

    The grid has a product with the support of the best one that is up to H away in each dimension.
    Along the support the objective has no slope at the best product, so that it changes by its
    second-order terms: alpha/4 |x_d|^2 in each dimension, and x_1' Q x_2, 0 for factored Q.
    """
    bilinear = 0.0 if q is None else max(np.linalg.norm(row, 2) for row in q)
    return (ALPHA / 2 + bilinear) * H**2


def brute_force(q, alpha=ALPHA):
    """The best product policy of the grid, for Q (2, 3): its objective and the two factors."""
    found = GRID[0] @ q @ GRID[1].T + alpha * GRID_ENTROPY
    i, j = np.unravel_index(found.argmax(), found.shape)
    return found[i, j], GRID[0][i], GRID[1][j]


def iterate(rewards, chances, alpha=ALPHA):
    """V and Q of value iteration over the product policies of the grid."""
    v = np.zeros(STATES)
    for _ in range(90):
        q = rewards + GAMMA * chances @ v
        v = np.array([brute_force(row, alpha)[0] for row in q])
    return v, q


def factored_model():
    """Rewards and transitions by dimension, and as those of joint actions."""
    rng = np.random.default_rng(11)
    rewards = rng.normal(size=(STATES, sum(CHOICES)))
    chances = rng.dirichlet(np.ones(STATES), (STATES, sum(CHOICES)))
    together = np.moveaxis(joint(np.moveaxis(chances, -1, 0)), 0, -1)
    return rewards, chances, joint(rewards), together


def general_model():
    rng = np.random.default_rng(12)
    chances = rng.dirichlet(np.ones(STATES), (STATES, *CHOICES))
    return rng.normal(size=(STATES, *CHOICES)), chances


def by_dimensions(regularizer, rewards, chances):
    """Iteration by dimensions to convergence: V and the Q_d."""
    v = np.zeros(STATES)
    for _ in range(170):
        q = rewards + GAMMA * chances @ v
        v = value(regularizer, q)
    return v, q


def test_iteration_by_dimensions_solves_factored_models():
    """The solution of the joint model over products of a grid differs by what the grid loses."""
    rewards, chances, joint_rewards, joint_chances = factored_model()
    v, q = by_dimensions(Sparse(ALPHA), rewards, chances)
    best, best_q = iterate(joint_rewards, joint_chances)
    assert (best <= v + 1e-7).all()
    assert (v <= best + slack() / (1 - GAMMA) + 1e-7).all()
    np.testing.assert_allclose(joint(q), best_q, rtol=0, atol=slack() / (1 - GAMMA) + 1e-7)
    for row, found in zip(q, best_q):
        for mine, grid_factor in zip(policies(Sparse(ALPHA), row), brute_force(found)[1:]):
            np.testing.assert_allclose(mine, grid_factor, atol=0.06)


def returns(rewards, chances, factors):
    """The value of product policies without a bonus."""
    p = np.stack([np.outer(*pair) for pair in factors])
    r, t = (p * rewards).sum((1, 2)), np.einsum("sij,sijz->sz", p, chances)
    return np.linalg.solve(np.eye(STATES) - GAMMA * t, r)


def assert_within_bound(regularizer, model, v, factors, missed=1e-9):
    """V_hard <= V <= V_hard + bound, and the return of the policy is within the bound."""
    hard = np.zeros(STATES)
    for _ in range(170):
        hard = (model[0] + GAMMA * model[1] @ hard).max((1, 2))
    bound = regularizer.alpha * most_entropy(regularizer) / (1 - GAMMA)
    earned = returns(*model, factors)
    assert (hard <= v + missed).all()
    assert (v <= hard + bound + missed).all()
    assert (hard - bound - missed <= earned).all()
    assert (earned <= hard + missed).all()


@each
def test_the_performance_bound_of_factored_models(regularizer):
    rewards, chances, *model = factored_model()
    v, q = by_dimensions(regularizer, rewards, chances)
    assert_within_bound(regularizer, model, v, [policies(regularizer, row) for row in q])


def test_the_performance_bound_of_any_model():
    model = general_model()
    v, q = iterate(*model)
    factors = [brute_force(row)[1:] for row in q]
    assert_within_bound(Sparse(ALPHA), model, v, factors, slack(q) / (1 - GAMMA) + 1e-7)


def test_the_residual_of_a_factored_q_bounds_its_error_in_any_model():
    """Q^Pi of a model that is not factored, by brute force; Q random or fitted by least squares."""
    rewards, chances = general_model()
    _, best = iterate(rewards, chances)
    missed = slack(best) / (1 - GAMMA) + 1e-7
    rng = np.random.default_rng(13)
    design = joint(np.eye(sum(CHOICES))).reshape(sum(CHOICES), -1).T
    candidates = list(rng.normal(size=(5, STATES, sum(CHOICES))))
    fitted = np.zeros((STATES, sum(CHOICES)))
    for _ in range(60):
        backup = rewards + GAMMA * chances @ value(Sparse(ALPHA), fitted)
        fitted = np.linalg.lstsq(design, backup.reshape(STATES, -1).T, rcond=None)[0].T
    for q in [*candidates, fitted]:
        image = rewards + GAMMA * chances @ value(Sparse(ALPHA), q)
        residual = np.abs(joint(q) - image).max()
        error = np.abs(joint(q) - best).max()
        assert error <= residual / (1 - GAMMA) + missed
    assert residual > 0.1, "the model is not factored"


def test_t_contracts_between_factored_functions_in_any_model():
    rewards, chances = general_model()
    rng = np.random.default_rng(14)
    for regularizer in REGULARIZERS:
        x, y = rng.normal(size=(2, STATES, sum(CHOICES)))
        images = [rewards + GAMMA * chances @ value(regularizer, q) for q in (x, y)]
        apart = np.abs(joint(x) - joint(y)).max()
        assert np.abs(images[0] - images[1]).max() <= GAMMA * apart + 1e-12


def test_the_projection_onto_factored_functions_expands():
    """For two dimensions of two choices its maximum norm is 3/2."""
    design = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]) / 2
    projection = design @ np.linalg.pinv(design)
    assert np.abs(projection).sum(1) == pytest.approx([1.5] * 4)
