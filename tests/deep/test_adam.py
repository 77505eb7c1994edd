"""Adam equals optax's and the paper's; a step from some rows of a table equals one of the table."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.deep import adam

update, update_rows = jax.jit(adam.update), jax.jit(adam.update_rows)
sum_rows = jax.jit(adam.sum_rows)
scatter_rows = jax.jit(adam.scatter_rows, static_argnums=2)
step_scale = jax.jit(adam.step_scale)


def close(a: Any, b: Any) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6), a, b)


def table(rows: int = 5) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).normal(size=(rows, 3)), jnp.float32)


def test_sums_and_scatters_add_up_the_entries_of_each_row():
    index, gradient = jnp.asarray([2, 0, 2, 4]), table(4)
    whole = np.zeros((5, 3))
    np.add.at(whole, np.asarray(index), np.asarray(gradient))
    close(scatter_rows(index, gradient, 5), whole)
    close(sum_rows(index, gradient), whole[np.asarray(index)])


def test_a_step_from_the_rows_of_some_actions_is_the_step_of_the_whole_table():
    """Moments decay and weights go on moving where there is no gradient, too."""
    ours = theirs = table()
    state = adam.init(theirs)
    mean, square = state.mean, state.square
    rng = np.random.default_rng(1)
    for step in range(1, 6):
        index = jnp.asarray([(2 + step) % 5, step % 5, (2 + step) % 5])
        entries = jnp.asarray(rng.normal(size=(3, 3)), jnp.float32)
        theirs, state = update(state, theirs, scatter_rows(index, entries, 5), 0.01)
        scale = step_scale(jnp.asarray(step), 0.01)
        summed = sum_rows(index, entries)
        ours, mean, square = update_rows(ours, mean, square, index, summed, scale)
        close((ours, mean, square), (theirs, state.mean, state.square))


def test_adam_is_that_of_optax():
    optax = pytest.importorskip("optax")
    ours = {"weight": table(), "bias": table(1)[0]}
    state = adam.init(ours)
    theirs, tx = ours, optax.adam(3e-3)
    optimiser = tx.init(theirs)
    rng = np.random.default_rng(0)
    for _ in range(50):
        g = jax.tree.map(lambda p: rng.normal(size=p.shape).astype(np.float32) * p, ours)
        ours, state = update(state, ours, g, 3e-3)
        updates, optimiser = tx.update(g, optimiser, theirs)
        theirs = optax.apply_updates(theirs, updates)
    close(ours, theirs)
    assert int(state.count) == 50


def test_adam_is_that_of_the_paper():
    """Kingma and Ba's Algorithm 1, in double precision, with a rate that changes."""
    x = np.array([1.0, -2.0, 0.5])
    ours, state = jnp.asarray(x, jnp.float32), adam.init(jnp.zeros(3))
    m = v = np.zeros(3)
    for t in range(1, 31):
        rate, g = 0.1 / t, np.array([x[0], 10 * x[1], 1e-6 * x[2]])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x = x - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        ours, state = update(state, ours, jnp.asarray(g, jnp.float32), rate)
    assert np.asarray(ours) == pytest.approx(x, abs=2e-5)


@pytest.mark.parametrize("norm", [0.0, 1e-20, 0.3, 1.0, 2.0, 1e10])
def test_a_gradient_is_scaled_down_to_the_norm_and_never_up(norm):
    factor = float(adam.clip_factor(1.0, norm**2))
    assert factor <= 1
    assert factor * norm == pytest.approx(min(norm, 1.0), rel=1e-5)


def test_a_gradient_is_clipped_by_the_norm_of_all_its_arrays():
    gradient = {"weight": jnp.full((2, 2), 3.0), "bias": jnp.full(1, 8.0)}
    close(adam.clip_by_norm(gradient, 1.0), jax.tree.map(lambda g: g / 10, gradient))
    assert adam.clip_by_norm(gradient, None) is gradient
