"""Unicycle: the paper's vehicle that steers to a goal past an obstacle (its Figure 2).

The state is a location (x, y) and a heading θ, the action a speed v and a turn rate ω:

    x' = x + v cos(θ) dt,   y' = y + v sin(θ) dt,   θ' = θ + ω dt,
    r(x) = exp(-|x - x₁|²/(2σ₁²)) - exp(-|x - x₂|²/(2σ₂²)),

with goal x₁ and obstacle x₂ (the minus signs in the exponents are missing in the paper). On the
grid, a successor is spread over the 8 grid points around it by multilinear interpolation.

The paper states neither grid, speeds, scales nor γ. The defaults here are chosen such that the
support ratios of its Figure 2b come out at 25 actions: sparse 0.24 at α=0.1 and 0.99 at α=100,
soft 0.79 and 1.00 when actions of probability above 0.001 count.
"""

from math import pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP
from tsallax.problems.lattice import counts, interpolate, joint_rows, point, point_names

Floats = NDArray[np.float64]


class UnicycleAxes(NamedTuple):
    """Grid points of the coordinates; the state (i, j, k) has number (i·|y| + j)·|heading| + k."""

    x: Floats
    y: Floats
    heading: Floats


def unicycle_axes(grid: tuple[int, int, int] = (21, 21, 12), size: float = 10.0) -> UnicycleAxes:
    """Return the grid points of x, y (ends included) and heading (from 0 up to 2π, excluded).

    >>> unicycle_axes((3, 3, 4)).heading / np.pi
    array([0. , 0.5, 1. , 1.5])
    """
    n_x, n_y, n_heading = counts("grid", grid, 3)
    half = checks.number("size", size, above=0) / 2
    heading = np.linspace(0.0, 2 * pi, n_heading, endpoint=False)
    return UnicycleAxes(np.linspace(-half, half, n_x), np.linspace(-half, half, n_y), heading)


def unicycle_actions(
    actions: int | tuple[int, int] = 25,
    speeds: tuple[float, float] = (-1.0, 1.0),
    turn: float = 2 * pi / 3,
) -> Floats:
    """Return the rows (v, ω) of the actions: an even grid with its ends, the turn running fastest.

    >>> unicycle_actions(4, speeds=(0, 2), turn=1)
    array([[ 0., -1.],
           [ 0.,  1.],
           [ 2., -1.],
           [ 2.,  1.]])
    """
    speed, rate = _action_axes(actions, speeds, turn)
    return np.stack(np.meshgrid(speed, rate, indexing="ij"), axis=-1).reshape(-1, 2)


def unicycle(
    actions: int | tuple[int, int] = 25,
    *,
    grid: tuple[int, int, int] = (21, 21, 12),
    size: float = 10.0,
    goal: tuple[float, float] = (-2.0, -2.0),
    obstacle: tuple[float, float] = (3.5, 3.5),
    goal_scale: float = 12.0,
    obstacle_scale: float = 2.25,
    speeds: tuple[float, float] = (-1.0, 1.0),
    turn: float = 2 * pi / 3,
    time_step: float = 1.0,
    discount: float = 0.995,
) -> MDP:
    """Discretise the unicycle dynamics into an MDP with at most 8 successors for each pair.

    Locations are clipped to the square of side `size` around the origin, headings are periodic.
    The reward depends on the location alone. An episode starts in any state. `unicycle_axes` and
    `unicycle_actions` say what the states and actions are.

    Args:
        actions: number of actions, a square such as 25 = 5x5, or (number of speeds, of turns).
        grid: number of grid points of (x, y, heading).
        size: side of the square.
        goal: x₁, the location with the highest reward.
        obstacle: x₂, the location to avoid.
        goal_scale: σ₁, the width of the goal's reward.
        obstacle_scale: σ₂, the width of the obstacle's penalty.
        speeds: the lowest and the highest v; negative is backwards.
        turn: the highest turn rate, ω in [-turn, turn].
        time_step: dt.
        discount: γ in [0, 1).

    >>> unicycle(25)
    MDP(5292 states, 25 actions, 132300 pairs, 263420 transitions, discount 0.995, 3.7 MB)
    """
    x, y, heading = unicycle_axes(grid, size)
    speed, rate = _action_axes(actions, speeds, turn)
    step = checks.number("time_step", time_step, above=0)
    cell = [size / (len(axis) - 1) for axis in (x, y)] + [2 * pi / len(heading)]
    # Every array has the axes (x, y, heading, speed, turn) or 1 where it does not vary.
    forward = step * speed[:, None]
    angle = heading[:, None, None]
    i, j, k = (np.arange(len(axis), dtype=np.float64) for axis in (x, y, heading))
    cells_x = i[:, None, None, None, None] + forward * np.cos(angle) / cell[0]
    cells_y = j[:, None, None, None] + forward * np.sin(angle) / cell[1]
    cells_heading = k[:, None, None] + step * rate / cell[2]
    rows = joint_rows(
        interpolate(cells_x, len(x)),
        interpolate(cells_y, len(y)),
        interpolate(cells_heading, len(heading), periodic=True),
    )
    goal_scale = checks.number("goal_scale", goal_scale, above=0)
    obstacle_scale = checks.number("obstacle_scale", obstacle_scale, above=0)
    reward = _bump(x, y, point("goal", goal), goal_scale)
    reward -= _bump(x, y, point("obstacle", obstacle), obstacle_scale)
    names = [f"v={v:.6g}, ω={w:.6g}" for v in speed for w in rate]
    if len(set(names)) < len(names):
        names = [f"v={float(v)!r}, ω={float(w)!r}" for v in speed for w in rate]
    rewards = np.repeat(reward.ravel(), len(heading) * len(names))
    states = point_names(x, y, heading)
    return MDP(rows, rewards, discount, state_names=states, action_names=names)


def _action_axes(
    actions: int | tuple[int, int], speeds: tuple[float, float], turn: float
) -> tuple[Floats, Floats]:
    """Return the speeds and the turn rates whose combinations are the actions."""
    n_speeds, n_turns = counts("actions", actions, 2, total=True)
    slow, fast = point("speeds", speeds)
    if slow >= fast:
        raise InvalidInput(f"speeds must be (lowest, highest), got {speeds}")
    turn = checks.number("turn", turn, above=0)
    return np.linspace(slow, fast, n_speeds), np.linspace(-turn, turn, n_turns)


def _bump(x: Floats, y: Floats, centre: Floats, scale: float) -> Floats:
    """Squared exponential exp(-|x - centre|²/(2 scale²)) on the grid (x, y)."""
    squares = (x[:, None] - centre[0]) ** 2 + (y - centre[1]) ** 2
    return np.asarray(np.exp(-squares / (2 * scale**2)))
