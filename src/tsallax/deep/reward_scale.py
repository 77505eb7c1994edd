"""The running deviation of the discounted return, by which rewards are divided.

Rewards are stored as they came, and divided when they are drawn, so that old and new ones have the
same unit.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from tsallax.deep import running_moments
from tsallax.deep.replay import Transition
from tsallax.deep.running_moments import VARIANCE_FLOOR, Moments


class RewardScale(NamedTuple):
    """The discounted sum of the rewards so far in each episode, and the moments of all sums."""

    sums: Array
    moments: Moments


def init(n_envs: int) -> RewardScale:
    """No reward yet, and a deviation of 1."""
    return RewardScale(jnp.zeros(n_envs), running_moments.init(1))


def update(scale: RewardScale, transition: Transition, gamma: float) -> RewardScale:
    """Update the scale with the rewards of one transition of each environment."""
    sums = gamma * scale.sums + transition.reward
    moments = running_moments.update(scale.moments, sums[:, None], transition.valid)
    ended = transition.terminated | transition.truncated
    return RewardScale(jnp.where(ended, 0.0, sums), moments)


def end_episodes(scale: RewardScale) -> RewardScale:
    """Begin new episodes in all environments."""
    return scale._replace(sums=jnp.zeros_like(scale.sums))


def deviation(scale: RewardScale) -> Array:
    """The standard deviation of the discounted sums of rewards."""
    return jnp.sqrt(scale.moments.variance[0] + VARIANCE_FLOOR)
