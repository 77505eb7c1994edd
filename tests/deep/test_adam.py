"""Adam equals optax's and the paper's; a step from some rows of a table equals one of the table."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.deep import adam

update, update_rows = jax.jit(adam.update), jax.jit(adam.update_rows)
sum_rows = jax.jit(adam.sum_rows, static_argnums=2)
scatter_rows = jax.jit(adam.scatter_rows, static_argnums=2)
step_scale = jax.jit(adam.step_scale)
clip_by_norm = jax.jit(adam.clip_by_norm)


def close(a: Any, b: Any) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6), a, b)


def table(rows: int = 5) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32)


def test_steps_from_the_rows_of_some_actions_are_those_of_the_whole_table():
    """Where there is no gradient moments decay and weights move, too, until they are settled."""
    rows = 9
    ours = theirs = table(rows)
    state = adam.init(theirs)
    mean, square, written = state.mean, state.square, np.zeros(rows, np.int32)
    rng = np.random.default_rng(1)
    for step in range(1, adam.SETTLED + 60):
        recent = rng.integers(0, 3) if step > 20 else step % (rows - 1)
        index = np.array([recent, step % 4, recent])
        entries = rng.normal(size=(3, 3)).astype(np.float32)
        theirs, state = update(state, theirs, scatter_rows(index, entries, rows), 0.01)
        given = step - written, index, sum_rows(index, entries, rows), step_scale(step, 0.01)
        before = ours
        ours, mean, square = update_rows(ours, mean, square, *given)
        written[index] = step
        close(ours, theirs)
    close(adam.decayed(mean, square, step - written[:, None]), (state.mean, state.square))
    settled = step - written >= adam.SETTLED
    assert settled.sum() == rows - 4
    np.testing.assert_array_equal(ours[settled], before[settled])
    assert np.array_equal(ours[-1], table(rows)[-1]), "a row that never had a gradient"


@pytest.mark.parametrize(("entries", "rows"), [(40, 50), (40, 8)])
def test_rows_are_summed_by_a_matrix_that_is_no_larger_than_the_table_needs(entries, rows):
    """Of a batch that is larger than the table, only a matrix of the table's rows is made."""
    rng = np.random.default_rng(2)
    index, gradient = rng.integers(0, rows, entries), rng.normal(size=(entries, 3))
    expected = np.zeros((rows, 3))
    np.add.at(expected, index, gradient)
    given = index, gradient.astype(np.float32)
    close(sum_rows(*given, rows), expected[index])
    shapes = jax.make_jaxpr(adam.sum_rows, static_argnums=2)(*given, rows).eqns
    largest = max(v.aval.size for equation in shapes for v in equation.outvars)
    assert largest == entries * min(rows, entries)


def test_a_row_that_is_settled_would_not_move_further():
    """Of all gradients, moments that grow like these have the largest steps afterwards."""
    n = 400.0
    m = v = 0.0
    for t in np.arange(n):
        g = (adam.BETA1 / adam.BETA2) ** -(t - n)
        m = adam.BETA1 * m + (1 - adam.BETA1) * g
        v = adam.BETA2 * v + (1 - adam.BETA2) * g * g
    age = adam.SETTLED + np.arange(1000.0)
    steps = adam.BETA1**age * m / np.sqrt(adam.BETA2**age * v)
    assert 1e-8 < steps.sum() < 1e-7


def test_adam_is_that_of_optax():
    optax = pytest.importorskip("optax")
    ours: Any = {"weight": table(), "bias": table(1)[0]}
    state = adam.init(ours)
    theirs, tx = ours, optax.adam(3e-3)
    optimiser, update_theirs = tx.init(theirs), jax.jit(tx.update)
    rng = np.random.default_rng(0)
    for _ in range(50):
        g = jax.tree.map(lambda p: rng.normal(size=p.shape).astype("f4") * np.asarray(p), ours)
        ours, state = update(state, ours, g, 3e-3)
        updates, optimiser = update_theirs(g, optimiser)
        theirs = jax.tree.map(lambda p, u: p + np.asarray(u), theirs, updates)
    close(ours, theirs)
    assert int(state.count) == 50


def test_adam_is_that_of_the_paper():
    """Kingma and Ba's Algorithm 1, in double precision, with a rate that changes."""
    x = np.array([1.0, -2.0, 0.5])
    ours, state = x.astype(np.float32), adam.init(jnp.zeros(3))
    m = v = np.zeros(3)
    for t in range(1, 31):
        rate, g = 0.1 / t, np.array([x[0], 10 * x[1], 1e-6 * x[2]])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x = x - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        ours, state = update(state, ours, g.astype(np.float32), rate)
    assert np.asarray(ours) == pytest.approx(x, abs=2e-5)


def test_a_gradient_is_scaled_down_to_the_norm_of_all_its_arrays_and_never_up():
    norm = np.array([0.0, 1e-20, 0.3, 1.0, 2.0, 1e10])
    factor = np.asarray(adam.clip_factor(1.0, norm**2))
    assert np.all(factor <= 1)
    np.testing.assert_allclose(factor * norm, np.minimum(norm, 1.0), rtol=1e-5)
    gradient = {"weight": np.full((2, 2), 3.0), "bias": np.full(1, 8.0)}
    close(clip_by_norm(gradient, 1.0), jax.tree.map(lambda g: g / 10, gradient))
    assert adam.clip_by_norm(gradient, None) is gradient
