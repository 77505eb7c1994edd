"""JAX's precision within a context."""

import jax.numpy as jnp

from tsallax.planning.precision import double_precision


def test_precision_holds_within_the_context_only():
    before = jnp.zeros(1).dtype
    with double_precision():
        assert jnp.zeros(1).dtype == jnp.float64
        with double_precision(False):
            assert jnp.zeros(1).dtype == jnp.float32
    assert jnp.zeros(1).dtype == before
