"""Environments in pure JAX, even grids over actions, and the bridge to Gymnasium.

`InvertedPendulum`, `Reacher` and `MultiGoal` are `Environment`s: data and pure functions, for
`jax.vmap` and `jax.lax.scan`. The first two equal Gymnasium's InvertedPendulum-v5 and Reacher-v5.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsallax.envs.discretize import Discretize
    from tsallax.envs.environment import Environment
    from tsallax.envs.gymnasium import HostEnvironment
    from tsallax.envs.inverted_pendulum import InvertedPendulum
    from tsallax.envs.multigoal import MultiGoal
    from tsallax.envs.reacher import Reacher

_HOME = {
    "Discretize": "discretize",
    "Environment": "environment",
    "HostEnvironment": "gymnasium",
    "InvertedPendulum": "inverted_pendulum",
    "MultiGoal": "multigoal",
    "Reacher": "reacher",
}
_BY_ID = {
    "InvertedPendulum-v5": "InvertedPendulum",
    "MultiGoal-v0": "MultiGoal",
    "Reacher-v5": "Reacher",
}

__all__ = [
    "Discretize",
    "Environment",
    "HostEnvironment",
    "InvertedPendulum",
    "MultiGoal",
    "Reacher",
    "jax_environment",
    "register",
]


def jax_environment(name: str) -> Environment | None:
    """Give the JAX environment of an id, with or without version and namespace, or None.

    >>> from tsallax import envs
    >>> envs.jax_environment("Reacher-v5") is envs.jax_environment("tsallax/Reacher")
    True
    >>> envs.jax_environment("Reacher-v4") is envs.jax_environment("CartPole-v1") is None
    True
    """
    plain = name.removeprefix("tsallax/")
    for identity, constant in _BY_ID.items():
        if plain in (identity, identity.rsplit("-v", 1)[0]):
            environment: Environment = __getattr__(constant)
            return environment
    return None


def register() -> None:
    """Make "tsallax/InvertedPendulum-v5", "tsallax/Reacher-v5" and "tsallax/MultiGoal-v0" known.

    >>> import gymnasium
    >>> from tsallax import envs
    >>> envs.register()
    >>> gymnasium.make("tsallax/MultiGoal-v0").spec.max_episode_steps
    50
    """
    import_module("tsallax.envs.registered")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'tsallax.envs' has no attribute {name!r}")
    value = getattr(import_module(f"tsallax.envs.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
