"""Regularisers on the simplex: `Hard`, `Soft`, `Sparse` and their common family `Tsallis`.

A regulariser Omega with coefficient alpha defines four functions:

    policy(z)      = argmax_p <p, z> + alpha Omega(p)     the greedy step
    value(z)       = max_p    <p, z> + alpha Omega(p)     the Bellman maximum
    entropy(p)     = Omega(p)
    max_entropy(n) = Omega of the uniform distribution over n actions

    max z <= value(z) <= max z + alpha max_entropy(n)     (eq. spmax_bnd, for every index)

========================  =====================  =====================  ============================
                          value(z)               policy(z)              entropy(p)
========================  =====================  =====================  ============================
`Hard()`                  max z                  one-hot argmax z       0
`Soft(alpha)`             a logsumexp(z/a)       softmax(z/a)           -sum p log p
`Sparse(alpha)`           a spmax(z/a)           sparsemax(z/a)         (1 - sum p^2)/2
`Tsallis(alpha, q)`       a tsallis_max(z/a, q)  entmax(z/a, q)         (1 - sum p^q)/(q (q - 1))
========================  =====================  =====================  ============================

`Tsallis(alpha, 2)` is `Sparse(alpha)` and `Tsallis(alpha, 1)` is `Soft(alpha)`, bit for bit. All
are JAX pytrees: alpha is a leaf, to be mapped with `jax.vmap` or differentiated, and the index is
static. Alpha is one number per call; an array of them is mapped.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, final, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from tsallax import checks, simplex
from tsallax.errors import InvalidInput

__all__ = ["Hard", "Regularizer", "Soft", "Sparse", "Tsallis", "by_name"]


class Regularizer(ABC):
    """The interface of a regulariser, for action values along one axis.

    `where` and entries of -inf leave actions out; the conventions are those of `tsallax.simplex`.

    Without `jax_enable_x64`, `value` and `policy` compute in float32, whatever they are given:
    subtract the largest value first, or set it. `solve` has float64 kernels of its own.
    """

    name: ClassVar[str]
    alpha: Any
    q: float

    @abstractmethod
    def value(self, values: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
        """max_p <p, values> + alpha Omega(p)."""

    @abstractmethod
    def policy(self, values: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
        """argmax_p <p, values> + alpha Omega(p); the first maximiser where alpha is 0."""

    @abstractmethod
    def entropy(self, policy: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
        """Omega(policy), without alpha; the policy is taken to be a distribution."""

    @overload
    def max_entropy(self, n: int) -> float: ...
    @overload
    def max_entropy(self, n: np.ndarray) -> np.ndarray: ...
    @abstractmethod
    def max_entropy(self, n: Any) -> Any:
        """The largest Omega over n actions (or each of an array of n), in double precision."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Regularizer):
            return NotImplemented
        return self.q == other.q and bool(np.array_equal(self.alpha, other.alpha))

    def __hash__(self) -> int:
        return hash((self.alpha, self.q))


@final
@dataclass(frozen=True, eq=False)
class Hard(Regularizer):
    """No regulariser: the maximum, and all probability on the first maximiser.

    >>> Hard().value([1.0, 3.0, 3.0]), Hard().policy([1.0, 3.0, 3.0])
    (Array(3., dtype=float32), Array([0., 1., 0.], dtype=float32))
    """

    name: ClassVar[str] = "hard"
    alpha: float = field(default=0.0, init=False, repr=False)
    q: float = field(default=2.0, init=False, repr=False)

    def value(self, values: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
        """max values."""
        z, dtype = simplex.rows(values, axis, where)
        first = jnp.argmax(z, -1, keepdims=True)
        top = jnp.take_along_axis(z, first, -1)[..., 0]
        return (top + 0 * top).astype(dtype)

    def policy(self, values: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
        """All probability on the first maximiser."""
        z, dtype = simplex.rows(values, axis, where)
        p = jax.nn.one_hot(jnp.argmax(z, -1), z.shape[-1], dtype=z.dtype)
        p = p + lax.stop_gradient(0 * jnp.max(z, -1, keepdims=True))
        return jnp.moveaxis(p, -1, axis).astype(dtype)

    def entropy(self, policy: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
        """0 for every policy."""
        p, dtype = simplex.rows(policy, axis, where, fill=0.0)
        return jnp.sum(0 * p, -1).astype(dtype)

    def max_entropy(self, n: Any) -> Any:
        """0 for every n."""
        return 0.0 * _count(n)


class _Family(Regularizer):
    """The four functions of the Tsallis entropy with index q, for a coefficient alpha > 0."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", _positive(self.alpha))
        object.__setattr__(self, "q", checks.entropic_index(self.q))

    def value(self, values: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
        """max_p <p, values> + alpha Omega_q(p)."""
        z, dtype = simplex.rows(values, axis, where)
        maximum: Array = simplex.maximum(self.q, z, _coefficient(self.alpha, z.dtype))
        return maximum.astype(dtype)

    def policy(self, values: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
        """argmax_p <p, values> + alpha Omega_q(p)."""
        z, dtype = simplex.rows(values, axis, where)
        p = simplex.maximizer(self.q, z, _coefficient(self.alpha, z.dtype))
        return jnp.moveaxis(p, -1, axis).astype(dtype)

    def entropy(self, policy: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
        """Omega_q(policy)."""
        p, dtype = simplex.rows(policy, axis, where, fill=0.0)
        omega: Array = simplex.entropy(self.q, p)
        return omega.astype(dtype)

    def max_entropy(self, n: Any) -> Any:
        """(1 - n^(1-q)) / (q (q - 1)), log n for q = 1."""
        n = _count(n)
        if self.q == 1:
            most = np.log(n)
        elif self.q == 2:
            most = (n - 1) / (2 * n)
        else:
            most = np.expm1((1 - self.q) * np.log(n)) / (self.q * (1 - self.q))
        return most if np.ndim(most) else float(most)


@final
@dataclass(frozen=True, eq=False)
class Soft(_Family):
    """The Boltzmann-Gibbs-Shannon entropy: log-sum-exp and softmax.

    >>> Soft(alpha=1.0).value([0.0, 0.0])
    Array(0.6931472, dtype=float32)
    """

    name: ClassVar[str] = "soft"
    alpha: Any
    q: float = field(default=1.0, init=False, repr=False)


@final
@dataclass(frozen=True, eq=False)
class Sparse(_Family):
    """The paper's sparse Tsallis entropy (1 - sum p^2)/2: spmax and sparsemax.

    >>> Sparse(alpha=0.5).policy([1.0, 0.75, 0.0])
    Array([0.75, 0.25, 0.  ], dtype=float32)
    """

    name: ClassVar[str] = "sparse"
    alpha: Any
    q: float = field(default=2.0, init=False, repr=False)


@final
@dataclass(frozen=True, eq=False)
class Tsallis(_Family):
    """The Tsallis entropy with any index q > 0: sparse for q > 1, heavy-tailed for q < 1.

    >>> Tsallis(alpha=0.5, q=2.0) == Sparse(alpha=0.5)
    True
    """

    name: ClassVar[str] = "tsallis"
    alpha: Any
    q: float


_CLASSES: dict[str, Any] = {cls.name: cls for cls in (Hard, Soft, Sparse, Tsallis)}
PARAMETERS = {
    name: tuple(parameter.name for parameter in fields(cls) if parameter.init)
    for name, cls in _CLASSES.items()
}
"""The parameters of each regulariser, by its name."""


def by_name(name: str, alpha: Any = None, q: float | None = None) -> Regularizer:
    """The regulariser of the name `hard`, `soft`, `sparse` or `tsallis`.

    >>> by_name("sparse", alpha=0.1)
    Sparse(alpha=0.1)
    """
    checks.one_of("regularizer", name, PARAMETERS)
    given = {key: value for key, value in (("alpha", alpha), ("q", q)) if value is not None}
    for key in PARAMETERS[name]:
        if key not in given:
            example = {"alpha": 0.1, "q": 1.5}[key]
            raise InvalidInput(f"regularizer {name!r} needs {key}", add=(key, example))
    for key in given:
        if key not in PARAMETERS[name]:
            raise InvalidInput(f"regularizer {name!r} takes no {key}", omit=key)
    regularizer: Regularizer = _CLASSES[name](**given)
    return regularizer


def _positive(alpha: Any) -> Any:
    """A coefficient alpha > 0; a traced one is not checked and gives NaN if it is not positive."""
    if isinstance(alpha, jax.core.Tracer):
        return alpha
    if not (checks.is_number(alpha) or isinstance(alpha, np.ndarray | Array)):
        raise InvalidInput(f"alpha must be a positive number, not {type(alpha).__name__}")
    numeric = np.asarray(alpha, np.float64)
    least = float(np.finfo(np.float64).tiny)  # one over it is finite
    refused = numeric[~((numeric >= least) & (numeric < np.inf))]
    if refused.size:
        size = f" and at least {least:.2g}" if 0 < refused.flat[0] < least else ""
        raise InvalidInput(f"alpha must be positive{size} and finite, got {refused.flat[0]}")
    return float(alpha) if checks.is_number(alpha) else alpha


def _count(n: Any) -> Any:
    """A number of actions, or an array of them, as float64."""
    if type(n) is int and n >= 1:
        return float(n)
    count = np.asarray(n)
    if count.dtype.kind not in "iu" or np.any(count < 1):
        raise InvalidInput(f"the number of actions must be an integer of at least 1, got {n}")
    return count.astype(np.float64) if count.ndim else float(count)


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
    """Register a class as a pytree with the leaf alpha; unflattened leaves are not checked."""

    def flatten(r: Any) -> tuple[tuple[Any], float]:
        return (_not_underflowing(r.alpha, jnp.result_type(float)),), r.q

    def flatten_with_keys(r: Any) -> tuple[tuple[tuple[Any, Any]], float]:
        leaves, q = flatten(r)
        return ((jax.tree_util.GetAttrKey("alpha"), leaves[0]),), q

    def unflatten(q: float, leaves: Any) -> Regularizer:
        r = object.__new__(cls)
        object.__setattr__(r, "alpha", leaves[0])
        object.__setattr__(r, "q", q)
        return r

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)


jax.tree_util.register_static(Hard)
for _cls in (Soft, Sparse, Tsallis):
    _register(_cls)
