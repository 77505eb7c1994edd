"""The point mass moves as described and is rewarded at its four goals."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from mdp_checks import assert_stochastic
from tsallax import Hard, Soft, Sparse, solve
from tsallax.errors import InvalidInput
from tsallax.problems.lattice import interpolate
from tsallax.problems.multigoal_mdp import (
    GOALS,
    multigoal,
    multigoal_actions,
    multigoal_axis,
    multigoal_state,
)


def test_multigoal_rows_are_distributions_and_the_mean_is_kept_inside():
    mdp = multigoal(49, grid=21)
    assert_stochastic(mdp)
    axis = multigoal_axis(21)
    places = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    target = places[mdp.state_of] + 0.5 * multigoal_actions(49)[mdp.action_of]
    inside = np.abs(target).max(axis=1) < 3 - 6 * 0.09 - 0.3
    assert inside.sum() > 5000
    np.testing.assert_allclose((mdp.transitions @ places)[inside], target[inside], atol=1e-7)


def test_multigoal_noise_is_the_gaussian_smear_of_linear_interpolation():
    noise, grid = 0.25, 11
    mdp = multigoal(4, grid=grid, noise=noise, time_step=0.1)
    axis = multigoal_axis(grid)
    rows = mdp.transitions.toarray().reshape(grid, grid, 4, grid, grid)
    for i, action in ((0, 0), (4, 3), (10, 3), (9, 3)):
        mean = axis[i] + 0.1 * multigoal_actions(4)[action][0]
        got = rows[i, 5, action].sum(axis=1)
        for j in range(grid):
            hat = np.eye(grid)[j]
            want = quad(
                lambda x, m=mean, hat=hat: np.interp(x, axis, hat) * norm.pdf(x, m, noise),
                mean - 3, mean + 3, points=sorted(p for p in axis if abs(p - mean) < 3), limit=200,
            )[0]  # fmt: skip
            assert got[j] == pytest.approx(want, abs=1e-8)


def test_multigoal_without_noise_is_plain_bilinear_interpolation():
    mdp = multigoal(9, grid=13, noise=0.0, time_step=0.07)
    axis = multigoal_axis(13)
    next_x = axis[:, None] + 0.07 * np.array([-3.0, 0.0, 3.0])
    move = interpolate((next_x + 3) / 0.5, 13)
    one = np.zeros((13, 3, 13))
    np.put_along_axis(one, move.indices.astype(int), move.weights, axis=-1)
    want = np.einsum("iax,jby->ijabxy", one, one).reshape(13 * 13 * 9, -1)
    np.testing.assert_allclose(mdp.transitions.toarray(), want, atol=1e-8)


@pytest.mark.parametrize("regularizer", [Hard(), Soft(0.3), Sparse(0.3)], ids=str)
def test_multigoal_value_has_the_symmetries_of_the_square(regularizer):
    value = solve(multigoal(9, grid=13), regularizer, 1e-6).value.reshape(13, 13)
    for image in (value.T, value[::-1], value[:, ::-1]):
        np.testing.assert_allclose(image, value, rtol=0, atol=2e-5)


def test_multigoal_rewards_have_their_four_maxima_at_the_goals():
    mdp = multigoal(9)
    reward = mdp.table(mdp.rewards)[:, 0].reshape(31, 31)
    padded = np.pad(reward, 1)
    beside = [padded[1 + i : 32 + i, 1 + j : 32 + j] for i, j in ((0, 1), (0, -1), (1, 0), (-1, 0))]
    peaks = np.flatnonzero(reward > np.max(beside, axis=0))
    assert set(peaks) == {multigoal_state(goal) for goal in GOALS}
    np.testing.assert_allclose(reward.ravel()[peaks], 1.0)
    assert reward[15, 15] == pytest.approx(np.exp(-0.5 * 4 / 0.2))


@pytest.mark.parametrize(
    "options",
    [{"actions": 48}, {"grid": 1}, {"noise": -0.1}, {"reward_scale": 0.0}, {"time_step": 0.0},
     {"discount": 1.5}],
)  # fmt: skip
def test_unusable_parameters_are_named(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        multigoal(**options)
