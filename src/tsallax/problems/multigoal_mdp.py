"""Multi-goal point mass: the paper's example of a multi-modal problem (its Figure 1).

The state is a location x in the square [-3, 3]², the action a velocity v in [-3, 3]²:

    x' = x + v dt + noise,      r(x) = exp(-½ d(x)²/0.2),

where d(x) is the distance to the nearest of four goals (±2, 0) and (0, ±2), and the noise is
Gaussian with standard deviation 0.09 in each coordinate. The location is clipped at the edge. On
the grid, T(s'|s,a) is the expectation of the bilinear interpolation of x' over the noise, in
closed form.
"""

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.planning.mdp import MDP
from tsallax.problems.lattice import Move, counts, joint_rows, point, point_names

SIZE = 3.0
"""Half the side of the square of locations, and the highest velocity of either coordinate."""
GOALS = ((2.0, 0.0), (0.0, 2.0), (-2.0, 0.0), (0.0, -2.0))
"""Locations of the four reward maxima."""
MARKED = (0.0, 0.0)
"""The location whose action values and policies Figure 1 shows."""
NEGLIGIBLE = 1e-9
"""Successors less probable than this in one coordinate are left out."""


def multigoal_axis(grid: int = 31) -> NDArray[np.float64]:
    """Return the grid points of either coordinate; the location (i, j) has number i·grid + j.

    >>> multigoal_axis(4)
    array([-3., -1.,  1.,  3.])
    """
    return np.linspace(-SIZE, SIZE, counts("grid", grid, 1)[0])


def multigoal_actions(actions: int | tuple[int, int] = 49) -> NDArray[np.float64]:
    """Return the rows (vx, vy) of the actions: an even grid with its ends, vy running fastest.

    >>> multigoal_actions(9)[:4]
    array([[-3., -3.],
           [-3.,  0.],
           [-3.,  3.],
           [ 0., -3.]])
    """
    axes = [np.linspace(-SIZE, SIZE, n) for n in counts("actions", actions, 2, total=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)


def multigoal_state(location: tuple[float, float] = MARKED, grid: int = 31) -> int:
    """Return the number of the state whose grid point is nearest to a location.

    >>> multigoal_state((-3.0, -2.8))
    1
    """
    axis = multigoal_axis(grid)
    i, j = (int(np.abs(axis - x).argmin()) for x in point("location", location))
    return i * len(axis) + j


def multigoal(
    actions: int | tuple[int, int] = 49,
    *,
    grid: int = 31,
    noise: float = 0.09,
    reward_scale: float = 0.2,
    time_step: float = 0.5,
    discount: float = 0.95,
) -> MDP:
    """Discretise the point mass among four goals into an MDP.

    The reward depends on the location alone. An episode starts anywhere. `multigoal_axis`,
    `multigoal_actions` and `multigoal_state` say what the states and actions are.

    Args:
        actions: number of actions, a square such as 49 = 7x7, or (number of vx, of vy).
        grid: number of grid points of each coordinate.
        noise: standard deviation of the location's noise, in each coordinate and step.
        reward_scale: the variance in exp(-½ d²/variance), the width of the reward's maxima.
        time_step: dt.
        discount: γ in [0, 1).

    >>> multigoal(9, grid=13)
    MDP(169 states, 9 actions, 1521 pairs, 10201 transitions, discount 0.95, 0.1 MB)
    """
    axis = multigoal_axis(grid)
    n_x, n_y = counts("actions", actions, 2, total=True)
    step = checks.number("time_step", time_step, above=0)
    spread = checks.number("noise", noise, at_least=0)
    width = checks.number("reward_scale", reward_scale, above=0)
    # Every array has the axes (x, y, vx, vy) or 1 where it does not vary.
    next_x = axis[:, None, None, None] + step * np.linspace(-SIZE, SIZE, n_x)[:, None]
    next_y = axis[:, None, None] + step * np.linspace(-SIZE, SIZE, n_y)
    rows = joint_rows(_noisy(next_x, axis, spread), _noisy(next_y, axis, spread))
    squares = np.min([(axis[:, None] - gx) ** 2 + (axis - gy) ** 2 for gx, gy in GOALS], axis=0)
    velocities = multigoal_actions(actions)
    rewards = np.repeat(np.exp(-0.5 * squares / width).ravel(), len(velocities))
    return MDP(
        rows,
        rewards,
        discount,
        state_names=point_names(axis, axis),
        action_names=[f"({vx:.6g}, {vy:.6g})" for vx, vy in velocities],
    )


def _noisy(mean: NDArray[np.float64], axis: NDArray[np.float64], noise: float) -> Move:
    """Expected linear interpolation of a clipped Gaussian around `mean` on the grid `axis`.

    The weight of a grid point is the expectation of its hat function, a second difference of
    E[(X - t)₊] over the grid points t.
    """
    from scipy.special import ndtr

    distance = mean[..., None] - axis
    if noise > 0:
        z = distance / noise
        excess = noise * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) + distance * ndtr(z)
    else:
        excess = np.maximum(distance, 0.0)
    beyond = -np.diff(excess, axis=-1) / (axis[1] - axis[0])
    weights = -np.diff(beyond, axis=-1, prepend=1.0, append=0.0)
    weights[weights < NEGLIGIBLE] = 0.0
    weights /= weights.sum(axis=-1, keepdims=True)
    return _band(weights)


def _band(weights: NDArray[np.float64]) -> Move:
    """Restrict distributions over an axis to windows of equal width that contain their supports."""
    size = weights.shape[-1]
    positive = weights > 0
    first = positive.argmax(axis=-1)
    last = size - 1 - positive[..., ::-1].argmax(axis=-1)
    width = int((last - first).max()) + 1
    start = np.minimum(first, size - width)
    indices = (start[..., None] + np.arange(width)).astype(np.int32)
    return Move(indices, np.take_along_axis(weights, indices.astype(np.int64), axis=-1), size)
