"""The JAX environments by their Gymnasium ids."""

from tsallax.envs.jax.environment import Environment
from tsallax.envs.jax.inverted_pendulum import InvertedPendulum
from tsallax.envs.jax.multigoal_env import MultiGoal
from tsallax.envs.jax.reacher import Reacher

BY_ID = {e.name: e for e in (InvertedPendulum, MultiGoal, Reacher)}


def jax_environment(name: str) -> Environment | None:
    """Return the JAX environment of an id, with or without version and namespace, or None.

    >>> jax_environment("Reacher-v5") is jax_environment("tsallax/Reacher")
    True
    >>> jax_environment("Reacher-v4") is jax_environment("CartPole-v1") is None
    True
    """
    plain = name.removeprefix("tsallax/")
    for identity, environment in BY_ID.items():
        if plain in (identity, identity.rsplit("-v", 1)[0]):
            return environment
    return None
