"""The functions of a regulariser in JAX, and the regularisers as pytrees.

`tsallax.regularizer` calls these, and sees to it that this module is imported along with JAX.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from tsallax import simplex
from tsallax.errors import InvalidInput
from tsallax.regularizer import Hard, Regularizer, Soft, Sparse, Tsallis


def value(r: Regularizer, values: ArrayLike, axis: int, where: ArrayLike | None) -> Array:
    """max_p <p, values> + alpha Omega(p)."""
    z, dtype = simplex.rows(values, axis, where)
    if isinstance(r, Hard):
        first = jnp.argmax(z, -1, keepdims=True)
        top = jnp.take_along_axis(z, first, -1)[..., 0]
        return (top + 0 * top).astype(dtype)
    most: Array = simplex.maximum(r.q, z, _coefficient(r.alpha, z.dtype))
    return most.astype(dtype)


def policy(r: Regularizer, values: ArrayLike, axis: int, where: ArrayLike | None) -> Array:
    """argmax_p <p, values> + alpha Omega(p)."""
    z, dtype = simplex.rows(values, axis, where)
    if isinstance(r, Hard):
        p = jax.nn.one_hot(jnp.argmax(z, -1), z.shape[-1], dtype=z.dtype)
        p = p + lax.stop_gradient(0 * jnp.max(z, -1, keepdims=True))
    else:
        p = simplex.maximizer(r.q, z, _coefficient(r.alpha, z.dtype))
    return jnp.moveaxis(p, -1, axis).astype(dtype)


def entropy(r: Regularizer, policy: ArrayLike, axis: int, where: ArrayLike | None) -> Array:
    """Omega(policy)."""
    p, dtype = simplex.rows(policy, axis, where, fill=0.0)
    omega: Array = jnp.sum(0 * p, -1) if isinstance(r, Hard) else simplex.entropy(r.q, p)
    return omega.astype(dtype)


def _coefficient(alpha: Any, dtype: Any) -> Array:
    if jnp.ndim(alpha):
        raise InvalidInput(
            f"alpha of shape {jnp.shape(alpha)} must be one number per call: use jax.vmap"
        )
    number = jnp.asarray(_not_underflowing(alpha, dtype), dtype)
    return jnp.where(number > 0, number, jnp.nan)


def _not_underflowing(alpha: Any, dtype: Any) -> Any:
    """alpha, or the smallest normal number where it is known, positive and would become 0."""
    if not isinstance(alpha, float | np.ndarray):
        return alpha
    least = float(jnp.finfo(dtype).tiny)
    small = (alpha > 0) & (alpha < least)
    return np.where(small, least, alpha)[()] if np.any(small) else alpha


def _register(cls: type[Regularizer]) -> None:
    """Make a pytree with the leaf alpha; leaves that JAX puts back are not checked again."""

    def flatten(r: Any) -> tuple[tuple[Any], float]:
        return (_not_underflowing(r.alpha, jnp.result_type(float)),), r.q

    def flatten_with_keys(r: Any) -> tuple[tuple[tuple[Any, Any]], float]:
        leaves, q = flatten(r)
        return ((jax.tree_util.GetAttrKey("alpha"), leaves[0]),), q

    def unflatten(q: float, leaves: Any) -> Regularizer:
        r = object.__new__(cls)
        object.__setattr__(r, "alpha", leaves[0])
        if not hasattr(cls, "q"):
            object.__setattr__(r, "q", q)
        return r

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)


jax.tree_util.register_static(Hard)
for _cls in (Soft, Sparse, Tsallis):
    _register(_cls)
