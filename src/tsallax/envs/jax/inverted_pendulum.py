"""Inverted pendulum: a cart on a rail balances a pole, as Gymnasium's InvertedPendulum-v5.

With x the cart's place, θ the pole's angle, (u, w) the pole's centre relative to the hinge, and
F = 100 a the motor's force,

    (M + m) ẍ + m w θ̈ = F - ẋ + m u θ̇²,      m w ẍ + J θ̈ = m g u - θ̇,

integrated by two Runge-Kutta steps of 0.02. The rail ends at x = ±1. An observation is
(x, θ, ẋ, θ̇), a step is worth 1, and an episode terminates, with reward 0, when |θ| > 0.2; it is
truncated after 1000 steps. The pole's own stop at ±90° cannot be reached in an episode and is left
out.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from tsallax.envs.jax.canvas import FAINT, INK, ORANGE, PAPER, Canvas, Picture, Point
from tsallax.envs.jax.environment import Environment
from tsallax.envs.jax.mechanics import GRAVITY, capsule, limit_force, rk4

TIME_STEP = 0.02
SUBSTEPS = 2
LIMIT = 1000
RESET_RANGE = 0.01
FALLEN = 0.2
"""The angle beyond which the pole has fallen."""
FORCE = 3.0
GEAR = 100.0
DAMPING = 1.0
RAIL = 1.0

CART_MASS, _ = capsule(radius=0.1, half_length=0.1)
POLE_END = (0.001, 0.6)
"""The end of the upright pole, which leans a little."""
CENTRE = (POLE_END[0] / 2, POLE_END[1] / 2)
POLE_MASS, POLE_INERTIA = capsule(radius=0.049, half_length=math.hypot(*CENTRE))
TOTAL_MASS = CART_MASS + POLE_MASS
HINGE_INERTIA = POLE_INERTIA + POLE_MASS * (CENTRE[0] ** 2 + CENTRE[1] ** 2)
REST_MOBILITY = HINGE_INERTIA / (TOTAL_MASS * HINGE_INERTIA - (POLE_MASS * CENTRE[1]) ** 2)


class InvertedPendulumState(NamedTuple):
    """The motion (x, θ, ẋ, θ̇) and the number of steps taken."""

    motion: Array
    step: Array


def reset(key: ArrayLike) -> InvertedPendulumState:
    """Draw x, θ, ẋ and θ̇ uniformly from ±0.01."""
    motion = jax.random.uniform(key, (4,), minval=-RESET_RANGE, maxval=RESET_RANGE)
    return InvertedPendulumState(motion, jnp.zeros((), jnp.int32))


def observe(state: InvertedPendulumState) -> Array:
    """Return (x, θ, ẋ, θ̇)."""
    return state.motion


def step(
    state: InvertedPendulumState, action: ArrayLike
) -> tuple[InvertedPendulumState, Array, Array, Array, Array]:
    """Push the cart for 0.04 s."""
    force = GEAR * jnp.clip(jnp.asarray(action)[0], -FORCE, FORCE)
    motion = state.motion
    for _ in range(SUBSTEPS):
        motion, _ = rk4(partial(_derivative, force), motion, TIME_STEP)
    after = InvertedPendulumState(motion, state.step + 1)
    standing = (jnp.abs(motion[1]) <= FALLEN) & jnp.isfinite(motion).all()
    return after, motion, standing.astype(motion.dtype), ~standing, after.step >= LIMIT


def _derivative(force: Array, motion: Array) -> Array:
    """Solve the equations of motion: (ẋ, θ̇, ẍ, θ̈)."""
    x, angle, speed, spin = motion
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    u = CENTRE[0] * cosine + CENTRE[1] * sine
    w = CENTRE[1] * cosine - CENTRE[0] * sine
    coupling = POLE_MASS * w
    on_cart = force - DAMPING * speed + POLE_MASS * u * spin**2
    on_pole = POLE_MASS * GRAVITY * u - DAMPING * spin
    scale = 1 / (TOTAL_MASS * HINGE_INERTIA - coupling**2)
    free = scale * (HINGE_INERTIA * on_cart - coupling * on_pole)
    mobility = scale * HINGE_INERTIA
    stop = limit_force(
        x, speed, free, mobility, limit=RAIL, rest_mobility=REST_MOBILITY, h=TIME_STEP
    )
    swing = scale * (TOTAL_MASS * on_pole - coupling * (on_cart + stop))
    return jnp.stack([speed, spin, free + mobility * stop, swing])


def draw(state: InvertedPendulumState, width: int = 480) -> Picture:
    """Draw cart and pole, on the rail, between the angles where the pole has fallen."""
    x, angle = (float(value) for value in state.motion[:2])
    canvas = Canvas((-1.3, 1.3), (-0.25, 0.75), width)
    canvas.line((-RAIL, 0.0), (RAIL, 0.0), 0.012, FAINT)
    for stop in (-RAIL, RAIL):
        canvas.line((stop, -0.04), (stop, 0.04), 0.008, INK)
    length = math.hypot(*POLE_END)
    tilt = math.atan2(*POLE_END)
    for fallen in (-FALLEN, FALLEN):
        canvas.line((x, 0.0), _from((x, 0.0), length, fallen + tilt), 0.003, FAINT)
    canvas.line((x - 0.1, 0.0), (x + 0.1, 0.0), 0.06, INK)
    canvas.line((x, 0.0), _from((x, 0.0), length, angle + tilt), 0.028, ORANGE)
    canvas.disc((x, 0.0), 0.014, PAPER)
    return canvas.pixels()


def _from(start: Point, length: float, angle: float) -> Point:
    """The point at a distance, in the direction that is an angle clockwise from upright."""
    return start[0] + length * math.sin(angle), start[1] + length * math.cos(angle)


InvertedPendulum = Environment(
    name="InvertedPendulum-v5",
    observation_size=4,
    action_low=(-FORCE,),
    action_high=(FORCE,),
    limit=LIMIT,
    reset=reset,
    observe=observe,
    step=step,
    draw=draw,
    frames_per_second=25,
)
"""Gymnasium's InvertedPendulum-v5 in JAX."""
