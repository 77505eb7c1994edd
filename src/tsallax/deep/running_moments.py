"""The running mean and variance of observations, and observations in units of them."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

VARIANCE_FLOOR = 1e-8
"""Added to the variance, for a coordinate that is constant."""
CLIP = 10.0
"""The largest absolute value of a standardised number."""


class Moments(NamedTuple):
    """The mean and variance (d,) of `number` vectors."""

    mean: Array
    variance: Array
    number: Array


def init(size: int) -> Moments:
    """Mean 0 and variance 1, from no vectors."""
    return Moments(jnp.zeros(size), jnp.ones(size), jnp.zeros((), jnp.int32))


def update(moments: Moments, x: Array, valid: ArrayLike = True) -> Moments:
    """The moments with the vectors x (n, d) included, but for those that are not `valid` (n,).

    With s the share of the new ones and δ the difference of the means, the new mean is m + s δ and
    the new variance (1-s) v + s v' + s (1-s) δ².

    >>> x = jnp.asarray([[0.0], [1.0], [5.0]])
    >>> moments = update(init(1), x)
    >>> print(moments.mean.round(4), moments.variance.round(4), moments.number)
    [2.] [4.6667] 3
    """
    weight = jnp.broadcast_to(valid, x.shape[:1]).astype(x.dtype)[:, None]
    n = jnp.sum(weight)
    number = moments.number + n.astype(jnp.int32)
    share = n / jnp.maximum(number, 1)
    mean = jnp.sum(weight * x, 0) / jnp.maximum(n, 1)
    variance = jnp.sum(weight * (x - mean) ** 2, 0) / jnp.maximum(n, 1)
    apart = mean - moments.mean
    spread = variance - moments.variance + (1 - share) * apart**2
    return Moments(moments.mean + share * apart, moments.variance + share * spread, number)


def standardize(moments: Moments | None, x: Array) -> Array:
    """(x - mean) / standard deviation, clipped; x as it is without moments."""
    if moments is None:
        return x
    z = (x - moments.mean) / jnp.sqrt(moments.variance + VARIANCE_FLOOR)
    return jnp.clip(z, -CLIP, CLIP)
