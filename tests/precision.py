"""Double precision for parts of a test."""

from contextlib import AbstractContextManager
from typing import Any

import jax


def double(enabled: bool = True) -> AbstractContextManager[Any]:
    """float64 for the length of a `with`, whatever the version of JAX calls it."""
    context = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    return context(enabled)
