"""Multi-goal point mass: the paper's example of a multi-modal problem, as an environment.

The state is a location x in the square [-3, 3]², the action a velocity v in [-3, 3]²:

    x' = clip(x + v dt + noise),      r(x) = exp(-½ d(x)²/0.2),

with d the distance to the nearest of four goals, dt = 0.5 and Gaussian noise of standard deviation
0.09: what `problems.multigoal` puts on a grid. The reward is that of the location where the
action is taken. An observation is x, an episode starts anywhere in the square, never terminates and
is truncated after 50 steps.
"""

from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from tsallax import checks
from tsallax.envs.jax.canvas import FAINT, GREEN, INK, PAPER, Canvas, Picture
from tsallax.envs.jax.environment import Environment
from tsallax.problems.multigoal_mdp import GOALS, SIZE

LIMIT = 50


class MultiGoalState(NamedTuple):
    """The location, the key of the noise to come, and the number of steps taken."""

    location: Array
    key: Array
    step: Array


def reset(key: ArrayLike) -> MultiGoalState:
    """Draw a location uniformly from the square."""
    first, later = jax.random.split(key)
    location = jax.random.uniform(first, (2,), minval=-SIZE, maxval=SIZE)
    return MultiGoalState(location, later, jnp.zeros((), jnp.int32))


def observe(state: MultiGoalState) -> Array:
    """Return the location."""
    return state.location


def step(
    noise: float, reward_scale: float, time_step: float, state: MultiGoalState, action: ArrayLike
) -> tuple[MultiGoalState, Array, Array, Array, Array]:
    """Move with a velocity for one time step."""
    now, later = jax.random.split(state.key)
    velocity = jnp.clip(jnp.asarray(action), -SIZE, SIZE)
    moved = state.location + time_step * velocity
    if noise > 0:
        moved += noise * jax.random.normal(now, (2,), moved.dtype)
    location = jnp.clip(moved, -SIZE, SIZE)
    after = MultiGoalState(location, later, state.step + 1)
    gain = reward(state.location, reward_scale)
    return after, location, gain, jnp.zeros((), bool), after.step >= LIMIT


def reward(location: Array, reward_scale: float = 0.2) -> Array:
    """exp(-½ d²/reward_scale), d the distance to the nearest goal.

    >>> float(reward(jnp.array([2.0, 0.0])))
    1.0
    """
    to_goals = location - jnp.asarray(GOALS, location.dtype)
    return jnp.exp(-0.5 * jnp.min(jnp.sum(to_goals**2, axis=-1)) / reward_scale)


def draw(state: MultiGoalState, width: int = 360) -> Picture:
    """Draw the point mass over the rewards of all places."""
    edge = SIZE + 0.2
    canvas = Canvas((-edge, edge), (-edge, edge), width)
    nearest = np.min([(canvas.x - x) ** 2 + (canvas.y - y) ** 2 for x, y in GOALS], axis=0)
    canvas.shade(0.75 * np.exp(-0.5 * nearest / 0.2), GREEN)
    corners = [(-SIZE, -SIZE), (SIZE, -SIZE), (SIZE, SIZE), (-SIZE, SIZE), (-SIZE, -SIZE)]
    canvas.path(corners, 0.02, FAINT)
    place = float(state.location[0]), float(state.location[1])
    canvas.disc(place, 0.13, PAPER)
    canvas.disc(place, 0.10, INK)
    return canvas.pixels()


@cache
def multigoal(
    noise: float = 0.09, reward_scale: float = 0.2, time_step: float = 0.5
) -> Environment:
    """Make the point mass with the parameters of `tsallax.problems.multigoal_mdp`.

    >>> still = multigoal(noise=0.0)
    >>> state = still.reset(jax.random.key(0))._replace(location=jnp.zeros(2))
    >>> still.step(state, [2.0, -1.0])[1]
    Array([ 1. , -0.5], dtype=float32)
    """
    spread = checks.number("noise", noise, at_least=0)
    width = checks.number("reward_scale", reward_scale, above=0)
    dt = checks.number("time_step", time_step, above=0)
    return Environment(
        name="MultiGoal-v0",
        observation_size=2,
        action_low=(-SIZE, -SIZE),
        action_high=(SIZE, SIZE),
        limit=LIMIT,
        reset=reset,
        observe=observe,
        step=partial(step, spread, width, dt),
        draw=draw,
        frames_per_second=10,
    )


MultiGoal = multigoal()
"""The paper's point mass among four goals."""
