"""Environments written in JAX: data and pure functions, for `jax.vmap` and `jax.lax.scan`."""
