"""The floating-point precision in which JAX computes."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
from jax import experimental


def double_precision(enabled: bool = True) -> AbstractContextManager[Any]:
    """A context in which JAX computes in float64, or in float32 where `enabled` is false."""
    # jax.experimental.enable_x64 before jax 0.8
    enable_x64: Callable[[bool], AbstractContextManager[Any]] = (
        jax.enable_x64 if hasattr(jax, "enable_x64") else getattr(experimental, "enable_x64")  # noqa: B009
    )
    return enable_x64(enabled)
