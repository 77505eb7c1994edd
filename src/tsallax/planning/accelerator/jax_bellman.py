"""The Bellman operator in JAX: the same certificates as `planning.bellman`, on any device.

The rounding of a sweep is bounded as on the CPU: a sum of n terms in any order is off by at most
n u sum|terms|, where u is 2^-53 in float64 and 2^-24 in float32.  In float32 the model's own
numbers are rounded, too, which the bound includes.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tsallax.errors import InvalidInput
from tsallax.planning.accelerator.device_sweep import SweepModel
from tsallax.planning.bellman import Certificate, Iterate
from tsallax.regularizer import Regularizer

MAX_FIXED_ACTIONS = 64
"""Actions of a state up to which a policy is kept as a list of actions to be evaluated."""

MAX_ITERATIONS = 400
"""Steps of BiCGSTAB before it is given up."""


def float64(enabled: bool = True) -> AbstractContextManager[Any]:
    """A context in which JAX computes in double precision, or in single precision."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(enabled)
    from jax.experimental import enable_x64

    return enable_x64(enabled)


class SweptPolicy(NamedTuple):
    """The greedy policy of a sweep, with the largest number of actions in use in a state."""

    greedy: Any
    max_support: int
    thresholds: None = None  # searches start afresh


class JaxBellman:
    """The operator U of a model whose sweeps run in JAX, and a regulariser."""

    def __init__(
        self, model: SweepModel, regularizer: Regularizer, discount: float, single: bool = False
    ) -> None:
        self.model, self.regularizer, self.discount = model, regularizer, discount
        self.alpha, self.q = float(regularizer.alpha), float(regularizer.q)
        self.n_states = model.n_states
        self._unit = 2.0**-24 if single else 2.0**-53
        self._dtype = jnp.float32 if single else jnp.float64
        self._double = not single
        self._bonus = self.alpha * (1.0 + float(regularizer.max_entropy(model.width)))
        row_error = (model.terms + 8) * self._unit
        self._shift_high = discount * (1.0 + row_error)
        self._shift_low = max(discount * (1.0 - row_error), 0.0)
        if self._shift_high >= 1.0:
            name = "float32" if single else "float64"
            raise InvalidInput(f"discount {discount!r} is too close to 1 for {name}")
        with self.scope():
            first = self.model.sweep(regularizer, jnp.zeros(self.n_states, self._dtype))
            valid, ends, reward = jax.device_get((first.valid, first.ends, first.reward))
        if not valid:
            raise InvalidInput("the model is not valid")
        self.ends = bool(ends)
        if self.ends:
            self._shift_low = 0.0
        self._reward = float(reward)

    def scope(self) -> AbstractContextManager[Any]:
        """The precision in which the operator computes."""
        return float64(self._double)

    @property
    def scale(self) -> float:
        """A bound on |V*| (1 - gamma): the largest reward and entropy bonus of one step."""
        return self._reward + self._bonus

    @property
    def sweep_cost(self) -> float:
        """The time of a sweep, in passes over the transitions."""
        return 1.0

    def start(self, v: Any) -> Iterate:
        """v on the device."""
        return Iterate(jnp.asarray(v, self._dtype), None)

    def certify(self, iterate: Iterate) -> Certificate:
        """Uv, the policy that is greedy in v, and the enclosure of V* that they prove."""
        found = self.model.sweep(self.regularizer, iterate.value)
        low, high, size, valid, used, support = (
            x.item()
            for x in jax.device_get(
                (found.low, found.high, found.size, found.valid, found.pairs_used,
                 found.max_support)
            )
        )  # fmt: skip
        if not valid:
            low, high, size = -math.inf, math.inf, math.inf
        rounding = self._rounding(size)
        down = _gain(self._shift_high if low < 0 else self._shift_low) * low
        up = _gain(self._shift_high if high > 0 else self._shift_low) * high
        rounding += 4 * self._unit * max(-down, up, 0.0)
        return Certificate(
            updated=found.updated,
            policy=SweptPolicy(found.policy, support),
            pairs_used=int(used),
            change=(low, high),
            low=down - rounding,
            high=up + rounding,
            rounding=rounding,
            size=size,
            terminal=None,
        )

    def policy_sweeps(
        self, certificate: Certificate, v: Array, max_sweeps: int, max_span: float
    ) -> tuple[Array, int, float]:
        """v <- r_pi + alpha Omega(pi) + gamma T_pi v for the certificate's policy, repeated."""
        if max_sweeps < 2 or certificate.policy.max_support > MAX_FIXED_ACTIONS:
            return v, 0, math.inf
        fixed = self._fixed(certificate)
        sweeps, span = 0, math.inf
        while sweeps < max_sweeps and span > max_span:
            new = self.model.follow(fixed, v)
            span = float(_span(new, v))
            v, sweeps = new, sweeps + 1
        return v, sweeps, span

    def policy_value(
        self, certificate: Certificate, guess: Array, tolerance: float
    ) -> tuple[Array, float]:
        """The value of the certificate's policy to a residual of `tolerance`, by BiCGSTAB."""
        fixed = self._fixed(certificate)
        base = self.model.follow(fixed, jnp.zeros_like(guess))

        def matrix(x: Array) -> Array:
            return _minus(_plus(x, base), self.model.follow(fixed, x))

        b = self.model.follow(fixed, guess) - guess
        x, residual = bicgstab(matrix, b, tolerance)
        return guess + x, residual

    def _fixed(self, certificate: Certificate) -> Any:
        support = certificate.policy.max_support
        size = min(1 << max(support - 1, 0).bit_length(), self.model.width)
        return self.model.fixed(self.regularizer, certificate.policy.greedy, size)

    def _rounding(self, size: float) -> float:
        """How far the enclosure moves by the rounding of one sweep (running error analysis)."""
        dot = (self.model.terms + 16) * (self._reward + size)
        maximum = 8 * (self.model.width + 8) * self._bonus
        return self._unit * (dot + maximum) / (1.0 - self._shift_high)


def bicgstab(matrix: Any, b: Array, tolerance: float) -> tuple[Array, float]:
    """x with max|b - Ax| <= tolerance, or the best that was found, and max|b - Ax|."""
    x = best = jnp.zeros_like(b)
    r = shadow = b
    p = v = jnp.zeros_like(b)
    rho = alpha = omega = 1.0
    smallest = float(_norm(r))
    for _ in range(MAX_ITERATIONS):
        if not smallest > tolerance:
            break
        rho, previous = float(jnp.vdot(shadow, r)), rho
        p = _direction(r, p, v, (rho / previous) * (alpha / omega), omega)
        v = matrix(p)
        alpha = rho / (float(jnp.vdot(shadow, v)) or 1e-300)
        s = _axpy(-alpha, v, r)
        t = matrix(s)
        omega = float(jnp.vdot(t, s)) / (float(jnp.vdot(t, t)) or 1e-300) or 1e-300
        x = _axpy(omega, s, _axpy(alpha, p, x))
        r = _axpy(-omega, t, s)
        norm = float(_norm(r))
        if norm < smallest:
            best, smallest = x, norm
        if not norm < 1e8 * smallest or abs(rho) < 1e-280:
            break
    return best, smallest


@jax.jit
def _norm(x: Array) -> Array:
    return jnp.max(jnp.abs(x))


@jax.jit
def _span(new: Array, old: Array) -> Array:
    change = new - old
    return jnp.max(change) - jnp.min(change)


@jax.jit
def _axpy(a: float, x: Array, y: Array) -> Array:
    return a * x + y


@jax.jit
def _direction(r: Array, p: Array, v: Array, beta: float, omega: float) -> Array:
    return r + beta * (p - omega * v)


@jax.jit
def _plus(x: Array, y: Array) -> Array:
    return x + y


@jax.jit
def _minus(x: Array, y: Array) -> Array:
    return x - y


def _gain(shift: float) -> float:
    return shift / (1.0 - shift)


def as_numpy(x: Any) -> np.ndarray[Any, Any]:
    """An array on the host."""
    return np.asarray(jax.device_get(x))
