"""Environments in pure JAX, even grids over actions, and the adapter to Gymnasium.

`InvertedPendulum`, `Reacher` and `MultiGoal` are `Environment`s: data and pure functions, for
`jax.vmap` and `jax.lax.scan`. The first two equal Gymnasium's InvertedPendulum-v5 and Reacher-v5.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsallax.envs.discretize import Discretize
    from tsallax.envs.gymnasium.adapter import GymnasiumAdapter
    from tsallax.envs.gymnasium.registration import register
    from tsallax.envs.jax.catalogue import jax_environment
    from tsallax.envs.jax.environment import Environment
    from tsallax.envs.jax.inverted_pendulum import InvertedPendulum
    from tsallax.envs.jax.multigoal_env import MultiGoal
    from tsallax.envs.jax.reacher import Reacher

_MODULE_OF = {
    "Discretize": "discretize",
    "Environment": "jax.environment",
    "GymnasiumAdapter": "gymnasium.adapter",
    "InvertedPendulum": "jax.inverted_pendulum",
    "MultiGoal": "jax.multigoal_env",
    "Reacher": "jax.reacher",
    "jax_environment": "jax.catalogue",
    "register": "gymnasium.registration",
}

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: Gymnasium is not loaded before it is needed."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'tsallax.envs' has no attribute {name!r}")
    value = getattr(import_module(f"tsallax.envs.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
