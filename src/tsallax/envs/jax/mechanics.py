"""The mechanics two joints need: capsules, Runge-Kutta steps and joint limits, as MuJoCo has them.

A joint beyond its limit is pushed back by a soft constraint (MuJoCo's defaults): with d < 0 the
distance to the limit, v and a0 the speed and free acceleration away from it, and A = (M⁻¹)ⱼⱼ,

    f = max(0, (aref - a0)/(A + R)),      aref = -b v - k imp d,      R = (1 - imp)/imp · A(q=0),

where imp rises from 0.9 to 0.95 over the first millimetre (or milliradian), along two parabolas,
b = 2/(0.95 t) and k = 1/(0.95 t)², t = max(0.02, 2h). With one limit active this is the exact
solution of MuJoCo's optimisation.

A motion is one array (q₁, q₂, q̇₁, q̇₂): stacked at every stage, it is compiled into few kernels,
where separate scalars are computed again for everything that uses them.
"""

import math
from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

DENSITY = 1000.0
GRAVITY = 9.81
SOFTEST, STIFFEST = 0.9, 0.95
RISE = 0.001
"""The violation over which the impedance rises from `SOFTEST` to `STIFFEST`."""
TIME_CONSTANT = 0.02


def capsule(radius: float, half_length: float) -> tuple[float, float]:
    """Return a capsule's mass and its moment of inertia about an axis across it, at its centre.

    >>> "{:.8f} {:.6e}".format(*capsule(0.01, 0.05))
    '0.03560472 3.917566e-05'
    """
    length = 2 * half_length
    ends = DENSITY * 4 / 3 * math.pi * radius**3
    middle = DENSITY * math.pi * radius**2 * length
    across = middle * (3 * radius**2 + length**2) / 12
    across += ends * (2 * radius**2 / 5 + length**2 / 4 + 3 * length * radius / 8)
    return ends + middle, across


def sphere(radius: float) -> tuple[float, float]:
    """Return a ball's mass and moment of inertia.

    >>> "{:.8f} {:.6e}".format(*sphere(0.01))
    '0.00418879 1.675516e-07'
    """
    mass = DENSITY * 4 / 3 * math.pi * radius**3
    return mass, 2 / 5 * mass * radius**2


def rk4(derivative: Callable[[Array], Array], start: Array, h: float) -> tuple[Array, Array]:
    """Take a Runge-Kutta step of length h; give its end and the last stage's argument.

    >>> end, last = rk4(lambda x: -x, jnp.ones(1), 0.1)
    >>> f"{end[0]:.5f} {last[0]:.5f}"
    '0.90484 0.90475'
    """
    k1 = derivative(start)
    k2 = derivative(start + h / 2 * k1)
    k3 = derivative(start + h / 2 * k2)
    last = start + h * k3
    k4 = derivative(last)
    return start + h / 6 * (k1 + 2 * (k2 + k3) + k4), last


def limit_force(
    position: Array,
    velocity: Array,
    free_acceleration: Array,
    mobility: Array,
    *,
    limit: float,
    rest_mobility: float,
    h: float,
) -> Array:
    """Return the force on a joint with the range [-limit, limit]; 0 inside it.

    `mobility` is the joint's diagonal entry of M⁻¹, and `rest_mobility` that at position 0.
    """
    t = STIFFEST * max(TIME_CONSTANT, 2 * h)
    inwards = -jnp.sign(position)
    distance = limit - jnp.abs(position)
    x = jnp.minimum(-distance / RISE, 1.0)
    rise = jnp.where(x < 0.5, 2 * x**2, 1 - 2 * (1 - x) ** 2)
    impedance = SOFTEST + (STIFFEST - SOFTEST) * rise
    wanted = -2 / t * inwards * velocity - impedance / t**2 * distance
    softness = (1 - impedance) / impedance * rest_mobility
    push = (wanted - inwards * free_acceleration) / (mobility + softness)
    return jnp.where(distance < 0, inwards * jnp.maximum(push, 0.0), 0.0)
