"""The floating-point precision in which JAX computes."""

from contextlib import AbstractContextManager
from typing import Any

import jax


def double_precision(enabled: bool = True) -> AbstractContextManager[Any]:
    """A context in which JAX computes in float64, or in float32 where `enabled` is false."""
    if hasattr(jax, "enable_x64"):
        context: AbstractContextManager[Any] = jax.enable_x64(enabled)
        return context
    from jax.experimental import enable_x64  # before jax 0.8

    return enable_x64(enabled)
