"""Exploration noise has the distribution that its docstrings promise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.deep import exploration_noise, network


def test_ou_noise_is_stationary_decorrelates_at_its_rate_and_restarts() -> None:
    rate, n = 0.15, 4000
    x = jax.random.normal(jax.random.PRNGKey(0), (n, 2))
    later, again = x, jnp.zeros(n, bool).at[: n // 2].set(True)
    for i in range(3):
        ended = again if i == 2 else jnp.zeros(n, bool)
        later = exploration_noise.ou_step(later, rate, ended, jax.random.PRNGKey(i + 1))
    np.testing.assert_allclose(later.std(), 1, atol=0.03)
    half = n // 2
    kept = np.mean(np.asarray(x * later), 1)
    np.testing.assert_allclose(kept[half:].mean(), np.exp(-3 * rate), atol=0.05)
    np.testing.assert_allclose(kept[:half].mean(), 0, atol=0.05)


def test_parameters_are_perturbed_by_normal_noise_of_the_given_size():
    actor = network.init(jax.random.PRNGKey(0), 20, (50,), 20, 1.0)
    moved = exploration_noise.perturb(actor, 0.3, jax.random.PRNGKey(1))
    difference = np.concatenate(
        [np.ravel(a - b) for a, b in zip(jax.tree.leaves(moved), jax.tree.leaves(actor))]
    )
    assert difference.std() == pytest.approx(0.3, rel=0.05)
    assert abs(difference.mean()) < 0.02


@pytest.mark.parametrize(("moved", "factor"), [(0.05, 1.01), (0.2, 1 / 1.01)])
def test_the_size_of_parameter_noise_follows_how_far_actions_moved(moved, factor):
    size = exploration_noise.adapt(jnp.asarray(0.7), jnp.full((5, 2), moved), 0.1)
    assert float(size) == pytest.approx(0.7 * factor)


@pytest.mark.parametrize(
    ("kind", "fields"), [("gaussian", []), ("ou", ["process"]), ("parameter", ["actor", "size"])]
)
def test_each_kind_of_noise_has_its_own_state(kind, fields):
    actor = network.init(jax.random.PRNGKey(0), 2, (4,), 3, 1.0)
    noise = exploration_noise.init(kind, jax.random.PRNGKey(0), (5, 3), actor, 0.1)
    assert [name for name, value in noise._asdict().items() if value is not None] == fields
