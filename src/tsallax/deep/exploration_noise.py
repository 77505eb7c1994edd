"""Exploration noise of a deterministic policy, in its actions or in its parameters.

    gaussian    a = mu(s) + sigma N(0, 1), independent from step to step
    ou          a = mu(s) + sigma x, x an Ornstein-Uhlenbeck process of variance 1
    parameter   a = mu~(s), mu~ = mu with N(0, rho^2) added to every parameter, drawn anew when an
                episode ends (of several environments, one of the first); rho grows while actions
                move less than sigma, and shrinks otherwise

sigma is in units of half the range of the actions.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike

from tsallax.deep.network import Network

KINDS = ("gaussian", "ou", "parameter")
ADAPTATION = 1.01
"""The factor by which rho grows or shrinks after an update."""


class Noise(NamedTuple):
    """The state of the noise; fields of other kinds of noise are None."""

    process: Array | None = None
    """x, (environments, d)."""
    actor: Network | None = None
    """mu~."""
    size: Array | None = None
    """rho."""


def init(kind: str, key: Array, shape: tuple[int, int], actor: Network, sigma: ArrayLike) -> Noise:
    """The noise before the first step, of actions of the given shape."""
    if kind == "ou":
        return Noise(process=jax.random.normal(key, shape))
    if kind == "parameter":
        size = jnp.asarray(sigma, jnp.result_type(float))
        return Noise(actor=perturb(actor, size, key), size=size)
    return Noise()


def ou_step(process: Array, rate: float, ended: Array, key: Array) -> Array:
    """x one step later, drawn anew from N(0, 1) where an episode ended.

    The process dx = -rate x dt + sqrt(2 rate) dW, over dt = 1.
    """
    keep = jnp.where(ended, 0, jnp.exp(-rate))[:, None]
    return keep * process + jnp.sqrt(1 - keep**2) * jax.random.normal(key, process.shape)


def perturb(actor: Network, size: ArrayLike, key: Array) -> Network:
    """The network with N(0, size^2) added to every parameter."""
    flat, shaped = ravel_pytree(actor)
    moved: Network = shaped(flat + size * jax.random.normal(key, flat.shape, flat.dtype))
    return moved


def adapt(size: Array, apart: Array, sigma: ArrayLike) -> Array:
    """rho after an update in which it moved actions by `apart`, (batch, d), with the goal sigma.

    >>> print(adapt(jnp.asarray(1.0), jnp.full((5, 2), 0.05), 0.1))
    1.01
    """
    moved = jnp.sqrt(jnp.mean(apart**2))
    return jnp.where(moved < sigma, size * ADAPTATION, size / ADAPTATION)
