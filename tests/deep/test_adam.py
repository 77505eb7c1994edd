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
clip_by_norm = jax.jit(adam.clip_by_norm)


def close(a: Any, b: Any) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6), a, b)


def table(rows: int = 5) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32)


def test_a_step_from_the_rows_of_some_actions_is_the_step_of_the_whole_table():
    """Moments decay and weights go on moving where there is no gradient, too."""
    ours = theirs = table()
    state = adam.init(theirs)
    mean, square = state.mean, state.square
    rng = np.random.default_rng(1)
    for step in range(1, 6):
        index = np.array([(2 + step) % 5, step % 5, (2 + step) % 5])
        entries = rng.normal(size=(3, 3)).astype(np.float32)
        theirs, state = update(state, theirs, scatter_rows(index, entries, 5), 0.01)
        scale = step_scale(step, 0.01)
        summed = sum_rows(index, entries)
        ours, mean, square = update_rows(ours, mean, square, index, summed, scale)
        close((ours, mean, square), (theirs, state.mean, state.square))


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
