"""Reacher: an arm of two links moves its fingertip to a target, as Gymnasium's Reacher-v5.

With θ₁, θ₂ the joint angles, τ = 200 a the motors' torques and c, s the cosine and sine of θ₂,

    (J₁ + J₂ + 2 K c + 1) θ̈₁ + (J₂ + K c) θ̈₂ = τ₁ - θ̇₁ + K s (2 θ̇₁ + θ̇₂) θ̇₂,
    (J₂ + K c) θ̈₁ + (J₂ + 1) θ̈₂             = τ₂ - θ̇₂ - K s θ̇₁²,

integrated by two Runge-Kutta steps of 0.01; the joints' rotors have inertia 1. Joint 2 stops at
±3. An observation is cos θ, sin θ, the target, θ̇ and the fingertip relative to the target; the
reward is -‖fingertip - target‖ - ‖a‖². An episode never terminates and is truncated after 50 steps.

After a step, MuJoCo's fingertip is the one of the last Runge-Kutta stage, a micrometre from where
θ puts it; the state keeps it.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from tsallax.envs.jax.canvas import BLUE, FAINT, GREEN, INK, ORANGE, PAPER, Canvas, Picture
from tsallax.envs.jax.environment import Environment
from tsallax.envs.jax.mechanics import capsule, limit_force, rk4, sphere

TIME_STEP = 0.01
SUBSTEPS = 2
LIMIT = 50
GEAR = 200.0
DAMPING = 1.0
ROTOR = 1.0
ELBOW = 3.0
"""The largest angle of joint 2."""
LINK = 0.1
TIP = 0.11
"""The distance of the fingertip from the second joint."""
RESET_ANGLE, RESET_SPEED, TARGET_RADIUS = 0.1, 0.005, 0.2

LINK_MASS, LINK_INERTIA = capsule(radius=0.01, half_length=LINK / 2)
TIP_MASS, TIP_INERTIA = sphere(0.01)
_LINK_ABOUT_JOINT = LINK_INERTIA + LINK_MASS * (LINK / 2) ** 2
UPPER = _LINK_ABOUT_JOINT + (LINK_MASS + TIP_MASS) * LINK**2
"""J₁, of the first link with the second one's mass at its end."""
FORE = _LINK_ABOUT_JOINT + TIP_INERTIA + TIP_MASS * TIP**2
"""J₂, of the second link and the fingertip."""
COUPLING = LINK * (LINK_MASS * LINK / 2 + TIP_MASS * TIP)
"""K"""


def _mobility(cosine: float) -> float:
    first = UPPER + FORE + 2 * COUPLING * cosine + ROTOR
    return first / (first * (FORE + ROTOR) - (FORE + COUPLING * cosine) ** 2)


REST_MOBILITY = _mobility(1.0)


class ReacherState(NamedTuple):
    """The motion (θ₁, θ₂, θ̇₁, θ̇₂), target and fingertip, and the number of steps taken."""

    motion: Array
    target: Array
    fingertip: Array
    step: Array


def reset(key: ArrayLike) -> ReacherState:
    """Draw θ from ±0.1, θ̇ from ±0.005 and the target from the disk of radius 0.2, uniformly."""
    draws = jax.random.uniform(key, (6,))
    radius, angle = TARGET_RADIUS * jnp.sqrt(draws[4]), 2 * math.pi * draws[5]
    scale = (RESET_ANGLE, RESET_ANGLE, RESET_SPEED, RESET_SPEED)
    motion = jnp.asarray(scale, draws.dtype) * (2 * draws[:4] - 1)
    return ReacherState(
        motion=motion,
        target=radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)]),
        fingertip=fingertip(motion),
        step=jnp.zeros((), jnp.int32),
    )


def fingertip(motion: Array) -> Array:
    """Return the place of the fingertip at the angles θ.

    >>> fingertip(jnp.zeros(4)).round(6)
    Array([0.21, 0.  ], dtype=float32)
    """
    first, both = motion[0], motion[0] + motion[1]
    return jnp.stack(
        [LINK * jnp.cos(first) + TIP * jnp.cos(both), LINK * jnp.sin(first) + TIP * jnp.sin(both)]
    )


def observe(state: ReacherState) -> Array:
    """Return cos θ, sin θ, the target, θ̇ and the fingertip relative to the target."""
    angles, velocities = state.motion[:2], state.motion[2:]
    reach = state.fingertip - state.target
    return jnp.concatenate([jnp.cos(angles), jnp.sin(angles), state.target, velocities, reach])


def step(state: ReacherState, action: ArrayLike) -> tuple[ReacherState, Array, Array, Array, Array]:
    """Turn the joints for 0.02 s; the reward counts the action as it was given."""
    action = jnp.asarray(action)
    torque = GEAR * jnp.clip(action, -1.0, 1.0)
    motion = last = state.motion
    for _ in range(SUBSTEPS):
        motion, last = rk4(partial(_derivative, torque), motion, TIME_STEP)
    after = ReacherState(motion, state.target, fingertip(last), state.step + 1)
    reach = after.fingertip - state.target
    reward = -jnp.sqrt(jnp.sum(reach**2)) - jnp.sum(action**2)
    return after, observe(after), reward, jnp.zeros((), bool), after.step >= LIMIT


def _derivative(torque: Array, motion: Array) -> Array:
    """Solve the equations of motion: (θ̇₁, θ̇₂, θ̈₁, θ̈₂)."""
    _, bend, first, second = motion
    coupling = COUPLING * jnp.cos(bend)
    swirl = COUPLING * jnp.sin(bend)
    m11 = UPPER + FORE + ROTOR + 2 * coupling
    m12 = FORE + coupling
    m22 = FORE + ROTOR
    on_first = torque[0] - DAMPING * first + swirl * (2 * first + second) * second
    on_second = torque[1] - DAMPING * second - swirl * first**2
    scale = 1 / (m11 * m22 - m12**2)
    free = scale * (m11 * on_second - m12 * on_first)
    mobility = scale * m11
    stop = limit_force(
        bend, second, free, mobility, limit=ELBOW, rest_mobility=REST_MOBILITY, h=TIME_STEP
    )
    turn = scale * (m22 * on_first - m12 * (on_second + stop))
    return jnp.stack([first, second, turn, free + mobility * stop])


def draw(state: ReacherState, width: int = 360) -> Picture:
    """Draw the arm and its target in the arena."""
    first, bend = (float(value) for value in state.motion[:2])
    elbow = LINK * math.cos(first), LINK * math.sin(first)
    tip = (
        elbow[0] + TIP * math.cos(first + bend),
        elbow[1] + TIP * math.sin(first + bend),
    )
    canvas = Canvas((-0.33, 0.33), (-0.33, 0.33), width)
    canvas.path([(-0.3, -0.3), (0.3, -0.3), (0.3, 0.3), (-0.3, 0.3), (-0.3, -0.3)], 0.006, FAINT)
    canvas.disc((float(state.target[0]), float(state.target[1])), 0.014, GREEN)
    canvas.line((0.0, 0.0), elbow, 0.010, BLUE)
    canvas.line(elbow, tip, 0.010, BLUE)
    canvas.disc((0.0, 0.0), 0.013, INK)
    canvas.disc(elbow, 0.005, PAPER)
    canvas.disc(tip, 0.012, ORANGE)
    return canvas.pixels()


Reacher = Environment(
    name="Reacher-v5",
    observation_size=10,
    action_low=(-1.0, -1.0),
    action_high=(1.0, 1.0),
    limit=LIMIT,
    reset=reset,
    observe=observe,
    step=step,
    draw=draw,
    frames_per_second=50,
)
"""Gymnasium's Reacher-v5 in JAX."""
