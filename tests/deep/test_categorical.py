"""Draws follow the probabilities, and never give an index of probability zero."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from tsallax.deep import categorical


def test_draws_follow_the_probabilities():
    p = np.random.default_rng(0).dirichlet(np.full(50, 2.0)) * (np.arange(50) % 3 > 0)
    p /= p.sum()
    rows = np.broadcast_to(p.astype(np.float32), (100_000, 50))
    drawn = jax.jit(categorical.sample)(jax.random.PRNGKey(0), rows)
    count = np.bincount(np.asarray(drawn), minlength=len(p))
    assert count[p == 0].sum() == 0
    assert chisquare(count[p > 0], count.sum() * p[p > 0]).pvalue > 1e-3


@pytest.mark.parametrize("n", [9, 961])
def test_an_action_of_probability_zero_is_never_drawn_whatever_the_rounding(n, monkeypatch):
    """Also by the smallest and largest numbers that a uniform draw can give."""
    rng = np.random.default_rng(n)
    p = rng.exponential(size=(500, n)) * (rng.random((500, n)) < 0.2)
    p[:, 0] = p[:, n // 2 :] = 0
    p[:, 1] = 1
    p = (p / p.sum(-1, keepdims=True)).astype(np.float32)
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape: jnp.full(shape, key))
    draw = jax.jit(lambda corner, p: categorical.sample(corner, p))
    for corner in (0.0, 2**-23, 1 - 2**-22, 1 - 2**-23):
        assert np.all(p[np.arange(500), draw(corner, p)] > 0)
