"""BiCGSTAB in JAX, for linear systems given by a function that applies the matrix."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

MAX_ITERATIONS = 400
"""Steps of BiCGSTAB before it is given up."""


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
def _axpy(a: float, x: Array, y: Array) -> Array:
    return a * x + y


@jax.jit
def _direction(r: Array, p: Array, v: Array, beta: float, omega: float) -> Array:
    return r + beta * (p - omega * v)
