"""A regulariser chosen among several while a program runs, so that agents can share it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from tsallax.kernels import accelerator
from tsallax.regularizer import Regularizer, by_name


@dataclass(frozen=True)
class Choice:
    """Regularisers by name and entropic index; `which` says whose turn it is.

    >>> rule = Choice((("hard", None), ("soft", None)))
    >>> print(jnp.round(rule.value(jnp.zeros((1, 2)), 1, 1.0), 2))
    [0.69]
    """

    names: tuple[tuple[str, float | None], ...]

    def value(self, q: Array, which: ArrayLike, alpha: ArrayLike) -> Array:
        """value(q) of the one whose turn it is, for rows q (rows, n)."""
        return self._rows(accelerator.row_values, lambda r, q: r.value(q), q, which, alpha)

    def policy(self, q: Array, which: ArrayLike, alpha: ArrayLike) -> Array:
        """policy(q) of the one whose turn it is, for rows q (rows, n)."""
        return self._rows(accelerator.row_policies, lambda r, q: r.policy(q), q, which, alpha)

    def entropy(self, p: Array, which: ArrayLike) -> Array:
        """entropy(p) of the one whose turn it is."""
        return self._select(which, [r.entropy(p) for r in self._all(1.0)])

    def max_entropy(self, n: int, which: ArrayLike) -> Array:
        """max_entropy(n) of the one whose turn it is."""
        return self._select(which, [jnp.asarray(r.max_entropy(n)) for r in self._all(1.0)])

    def _rows(
        self,
        kernel: Callable[..., Array],
        method: Callable[[Regularizer, Array], Array],
        q: Array,
        which: ArrayLike,
        alpha: ArrayLike,
    ) -> Array:
        """One kernel on a GPU, where it knows all the names; each regulariser's own elsewhere."""

        def plain(q: Array, which: Array, alpha: Array) -> Array:
            return self._select(which, [method(r, q) for r in self._all(alpha)])

        def fused(q: Array, which: Array, alpha: Array) -> Array:
            code = jnp.asarray([accelerator.WORDS.index(name) for name, _ in self.names])
            return kernel(q, code[which], alpha)

        which, alpha = jnp.asarray(which, jnp.int32), jnp.asarray(alpha, q.dtype)
        known = all(name in accelerator.WORDS for name, _ in self.names)
        if not known or q.shape[-1] > accelerator.LONGEST:
            return plain(q, which, alpha)
        result: Array = lax.platform_dependent(q, which, alpha, cuda=fused, default=plain)
        return result

    def _all(self, alpha: Any) -> list[Regularizer]:
        return [by_name(n, None if n == "hard" else alpha, index) for n, index in self.names]

    @staticmethod
    def _select(which: ArrayLike, results: list[Array]) -> Array:
        if len(results) == 1:
            return results[0]
        return jax.lax.select_n(jnp.broadcast_to(which, results[0].shape), *results)
