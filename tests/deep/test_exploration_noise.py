"""Exploration noise has the distribution that its docstrings promise."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tsallax.deep import exploration_noise, network

ou_step, perturb, adapt = map(
    jax.jit, (exploration_noise.ou_step, exploration_noise.perturb, exploration_noise.adapt)
)
init_network = jax.jit(network.init, static_argnums=(1, 2, 3, 4))


def test_ou_noise_is_stationary_decorrelates_at_its_rate_and_restarts() -> None:
    rate, n = 0.15, 4000
    half = n // 2
    later = x = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    for i in range(3):
        ended = np.full(n, i == 2) & (np.arange(n) < half)
        later = ou_step(later, rate, ended, jax.random.PRNGKey(i + 1))
    later = np.asarray(later)
    np.testing.assert_allclose(later.std(), 1, atol=0.03)
    kept = np.mean(x * later, 1)
    np.testing.assert_allclose(kept[half:].mean(), np.exp(-3 * rate), atol=0.05)
    np.testing.assert_allclose(kept[:half].mean(), 0, atol=0.05)


def test_parameters_are_perturbed_by_normal_noise_of_the_given_size():
    actor = init_network(jax.random.PRNGKey(0), 20, (50,), 20, 1.0)
    moved = perturb(actor, 0.3, jax.random.PRNGKey(1))
    both = (np.concatenate([np.ravel(x) for x in jax.tree.leaves(net)]) for net in (moved, actor))
    difference = np.subtract(*both)
    assert difference.std() == pytest.approx(0.3, rel=0.05)
    assert abs(difference.mean()) < 0.02


@pytest.mark.parametrize(("moved", "factor"), [(0.05, 1.01), (0.2, 1 / 1.01)])
def test_the_size_of_parameter_noise_follows_how_far_actions_moved(moved, factor):
    size = adapt(np.float32(0.7), np.full((5, 2), moved, np.float32), 0.1)
    assert float(size) == pytest.approx(0.7 * factor)


@pytest.mark.parametrize(
    ("kind", "fields"), [("gaussian", []), ("ou", ["process"]), ("parameter", ["actor", "size"])]
)
def test_each_kind_of_noise_has_its_own_state(kind, fields):
    key = jax.random.PRNGKey(0)
    actor = jax.eval_shape(lambda: network.init(key, 2, (4,), 3, 1.0))
    noise = jax.eval_shape(lambda a: exploration_noise.init(kind, key, (5, 3), a, 0.1), actor)
    assert [name for name, value in noise._asdict().items() if value is not None] == fields
