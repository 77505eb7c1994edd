"""Shared test settings: reproducible property tests; programs are compiled once for all."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("tsallax", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("tsallax")

CACHE = Path(__file__).parent.parent / ".pytest_cache" / "compiled"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

ROUGHLY = {
    "test_agent", "test_cli_learn", "test_checkpoint", "test_ddpg", "test_fleet", "test_killed",
    "test_ray", "test_replay", "test_rollout", "test_sweep",
}  # fmt: skip
"""Tests of what happens to agents, not of how well they are compiled: without XLA's optimisations
they take two thirds of the time. JAX_DISABLE_MOST_OPTIMIZATIONS=0 runs them with."""


@pytest.fixture(autouse=True, scope="module")
def _optimisations(request: pytest.FixtureRequest):
    name = request.module.__name__ if request.module else ""
    if name not in ROUGHLY or "JAX_DISABLE_MOST_OPTIMIZATIONS" in os.environ:
        yield
        return
    import jax

    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # for processes that a test starts
    jax.config.update("jax_disable_most_optimizations", True)
    jax.clear_caches()
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()
    del os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"]
