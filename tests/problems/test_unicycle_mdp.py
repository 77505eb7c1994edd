"""The unicycle moves as its equations say and gives the numbers of the paper's Figure 2b."""

from math import pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdp_checks import assert_stochastic
from tsallax import Hard, Soft, Sparse, solve
from tsallax.errors import InvalidInput
from tsallax.problems.unicycle_mdp import unicycle, unicycle_actions, unicycle_axes


def unicycle_states(grid):
    """Rows (x, y, heading) of all states in their order."""
    return np.stack(np.meshgrid(*unicycle_axes(grid), indexing="ij"), -1).reshape(-1, 3)


@given(
    n=st.tuples(st.integers(2, 4), st.integers(2, 4)),
    grid=st.tuples(st.integers(2, 6), st.integers(2, 6), st.integers(3, 8)),
    fast=st.floats(0.1, 4),
    turn=st.floats(0.01, 3),
    step=st.floats(0.05, 1),
)
def test_unicycle_moves_as_its_equations_say_in_the_mean(n, grid, fast, turn, step):
    speeds = (-0.3, fast)
    mdp = unicycle(n, grid=grid, speeds=speeds, turn=turn, time_step=step)
    assert_stochastic(mdp)
    assert np.diff(mdp.transitions.indptr).max() <= 8
    states = unicycle_states(grid)
    actions = unicycle_actions(n, speeds, turn)
    assert mdp.n_actions == len(actions) == n[0] * n[1]
    x, y, heading = (states[:, None, i] for i in range(3))
    v, w = actions.T
    expected = (mdp.transitions @ states).reshape(len(states), len(actions), 3)
    want_x = np.clip(x + v * np.cos(heading) * step, -5, 5)
    want_y = np.clip(y + v * np.sin(heading) * step, -5, 5)
    np.testing.assert_allclose(expected[..., 0], want_x, atol=1e-7)
    np.testing.assert_allclose(expected[..., 1], want_y, atol=1e-7)
    turned = heading + w * step
    inside = (turned >= 0) & (turned <= states[:, 2].max())
    np.testing.assert_allclose(
        expected[..., 2][inside], np.broadcast_to(turned, inside.shape)[inside], atol=1e-7
    )


def test_unicycle_heading_wraps_around_both_ways():
    grid, quarter = (3, 3, 4), pi / 2
    mdp = unicycle((2, 3), grid=grid, speeds=(0.0, 1.0), turn=quarter)
    rows = mdp.transitions.toarray().reshape(3, 3, 4, 2, 3, 3, 3, 4)
    assert rows[1, 1, 0, 0, 0, 1, 1, 3] == 1
    assert rows[1, 1, 3, 0, 2, 1, 1, 0] == 1
    half = unicycle((2, 3), grid=grid, speeds=(0.0, 1.0), turn=quarter / 2)
    rows = half.transitions.toarray().reshape(3, 3, 4, 2, 3, 3, 3, 4)
    np.testing.assert_allclose(rows[1, 1, 0, 0, 0, 1, 1], [0.5, 0, 0, 0.5])
    np.testing.assert_allclose(rows[1, 1, 3, 0, 2, 1, 1], [0.5, 0, 0, 0.5])
    full = unicycle((2, 3), grid=grid, speeds=(0.0, 1.0), turn=2 * pi)
    rows = full.transitions.toarray().reshape(3, 3, 4, 2, 3, 3, 3, 4)
    assert rows[1, 1, 2, 0, 0, 1, 1, 2] == rows[1, 1, 2, 0, 2, 1, 1, 2] == 1


def test_unicycle_reward_is_highest_towards_the_goal_and_negative_at_the_obstacle():
    goal, obstacle = (-2.0, -2.0), (3.0, 3.0)
    mdp = unicycle(4, grid=(11, 11, 4), goal=goal, obstacle=obstacle, goal_scale=1.5)
    states = unicycle_states((11, 11, 4))[mdp.state_of]
    d1, d2 = (((states[:, :2] - c) ** 2).sum(axis=1) for c in (goal, obstacle))
    want = np.exp(-d1 / (2 * 1.5**2)) - np.exp(-d2 / (2 * 2.25**2))
    np.testing.assert_allclose(mdp.rewards, want, rtol=0, atol=1e-15)
    assert tuple(states[mdp.rewards.argmax(), :2]) == goal
    assert (mdp.rewards[d2 < 1] < -0.8).all()


def test_unicycle_has_the_mirror_symmetry_of_its_defaults():
    mdp = unicycle(9, grid=(7, 7, 8))
    value = solve(mdp, Hard(), tolerance=1e-5).value.reshape(7, 7, 8)
    mirrored = value.transpose(1, 0, 2)[:, :, (2 - np.arange(8)) % 8]
    np.testing.assert_allclose(value, mirrored, rtol=0, atol=1e-4)


def test_unicycle_defaults_land_on_the_support_ratios_of_figure_2b():
    mdp = unicycle()
    for regularizer, threshold, expected in (
        (Sparse(0.1), 0.0, 0.24), (Sparse(100.0), 0.0, 0.99),
        (Soft(0.1), 1e-3, 0.79), (Soft(100.0), 1e-3, 1.00),
    ):  # fmt: skip
        share = (solve(mdp, regularizer, 1e-3).policy > threshold).mean()
        assert round(float(share), 2) == expected, regularizer


def test_actions_that_are_close_have_names_of_their_own():
    mdp = unicycle(25, grid=(3, 3, 4), speeds=(100.0, 100.0001))
    assert len(set(mdp.action_names)) == 25


@pytest.mark.parametrize(
    "options",
    [
        {"actions": 24}, {"actions": 25.0}, {"actions": (5, 1)}, {"actions": (5, 5, 5)},
        {"grid": (15, 15)}, {"grid": (15, 1, 12)}, {"size": 0.0}, {"goal_scale": -1.0},
        {"obstacle_scale": float("nan")}, {"goal": (1.0, float("inf"))}, {"obstacle": (1.0,)},
        {"speeds": (1.0, 1.0)}, {"speeds": (1.0,)}, {"turn": 0.0}, {"time_step": -0.1},
        {"discount": 1.5},
    ],
)  # fmt: skip
def test_unusable_parameters_are_named(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        unicycle(**options)
