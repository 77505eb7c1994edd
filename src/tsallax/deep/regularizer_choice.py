"""`Choice`: a regulariser selected at run time, so that agents can share one compiled program."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from tsallax import simplex_pallas
from tsallax.regularizer import PARAMETERS, Regularizer, by_name

Method = Callable[[Regularizer, Any], Array]


@dataclass(frozen=True)
class Choice:
    """Regularisers by name and entropic index; the index `which` selects one.

    >>> rule = Choice((("hard", None), ("soft", None)))
    >>> print(jnp.round(rule.value(jnp.zeros((1, 2)), 1, 1.0), 2))
    [0.69]
    """

    names: tuple[tuple[str, float | None], ...]

    def value(self, q: Array, which: ArrayLike, alpha: ArrayLike) -> Array:
        """value(q) of the selected regulariser, for rows q (rows, n)."""
        return self._rows(simplex_pallas.row_values, lambda r, q: r.value(q), q, which, alpha)

    def policy(self, q: Array, which: ArrayLike, alpha: ArrayLike) -> Array:
        """policy(q) of the selected regulariser, for rows q (rows, n)."""
        return self._rows(simplex_pallas.row_policies, lambda r, q: r.policy(q), q, which, alpha)

    def entropy(self, p: Array, which: ArrayLike) -> Array:
        """entropy(p) of the selected regulariser."""
        return self._selected(which, lambda r, p: r.entropy(p), p, 1.0)

    def max_entropy(self, n: int, which: ArrayLike) -> Array:
        """max_entropy(0 ... n) of the selected regulariser, with 0 for no action."""

        def all_sizes(r: Regularizer, _: Any) -> Array:
            return jnp.asarray([0.0, *(r.max_entropy(k) for k in range(1, n + 1))], jnp.float32)

        return self._selected(which, all_sizes, n, 1.0)

    def _rows(
        self, kernel: Callable[..., Array], method: Method, q: Array, which: ArrayLike, alpha: Any
    ) -> Array:
        """One fused kernel on a GPU, if it has all the regularisers; `_selected` elsewhere."""

        def plain(q: Array, which: Array, alpha: Array) -> Array:
            return self._selected(which, method, q, alpha)

        def fused(q: Array, which: Array, alpha: Array) -> Array:
            code = jnp.asarray([simplex_pallas.NAMES.index(name) for name, _ in self.names])
            return kernel(q, code[which], alpha)

        which, alpha = jnp.asarray(which, jnp.int32), jnp.asarray(alpha, q.dtype)
        known = all(name in simplex_pallas.NAMES for name, _ in self.names)
        if not known or q.shape[-1] > simplex_pallas.MAX_ROW_LENGTH:
            return plain(q, which, alpha)
        result: Array = lax.platform_dependent(q, which, alpha, cuda=fused, default=plain)
        return result

    def _selected(self, which: ArrayLike, method: Method, x: Any, alpha: Any) -> Array:
        """method(regulariser, x) of the selected regulariser; under `vmap` all are computed."""

        def branch(name: str, index: float | None) -> Callable[[Any, Any], Array]:
            given = "alpha" in PARAMETERS[name]
            return lambda x, alpha: method(by_name(name, alpha if given else None, index), x)

        branches = [branch(*name) for name in self.names]
        if len(branches) == 1:
            return branches[0](x, alpha)
        result: Array = lax.switch(jnp.asarray(which, jnp.int32), branches, x, alpha)
        return result
