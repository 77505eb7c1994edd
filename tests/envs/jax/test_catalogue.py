"""Environments are found by their ids."""

from tsallax.envs import InvertedPendulum, MultiGoal, Reacher, jax_environment
from tsallax.envs.jax.catalogue import BY_ID


def test_environments_are_found_by_their_ids() -> None:
    assert jax_environment("InvertedPendulum-v5") is InvertedPendulum
    assert jax_environment("tsallax/Reacher-v5") is jax_environment("Reacher") is Reacher
    assert jax_environment("MultiGoal") is MultiGoal
    assert jax_environment("InvertedPendulum-v4") is None
    assert jax_environment("InvertedDoublePendulum-v5") is None
    assert {name: environment.name for name, environment in BY_ID.items()} == {n: n for n in BY_ID}
