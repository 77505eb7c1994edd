"""Bellman sweeps in JAX: on a GPU, for models from functions, and over several devices."""
