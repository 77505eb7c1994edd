"""The paper's two problems are the dynamics and rewards they claim to be, and give its numbers."""

from __future__ import annotations

import time
from math import pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.special import logsumexp
from scipy.stats import norm

from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP
from tsallax.problems.lattice import interpolate
from tsallax.problems.multigoal_mdp import (
    GOALS,
    MARKED,
    multigoal,
    multigoal_actions,
    multigoal_axis,
    multigoal_state,
)
from tsallax.problems.unicycle_mdp import unicycle, unicycle_actions, unicycle_axes


def sparsemax_rows(z):
    """Sparsemax of each row by sorting."""
    ordered = -np.sort(-z, axis=1)
    sums = np.cumsum(ordered, axis=1)
    ranks = np.arange(1, z.shape[1] + 1)
    size = (1 + ranks * ordered > sums).sum(axis=1)
    tau = (sums[np.arange(len(z)), size - 1] - 1) / size
    return np.maximum(z - tau[:, None], 0.0)


def greedy(q, kind, alpha):
    """Regularised maximum of each row of action values, and the policy that attains it."""
    if kind == "hard":
        return q.max(axis=1), np.eye(q.shape[1])[q.argmax(axis=1)]
    z = (q - q.max(axis=1, keepdims=True)) / alpha
    if kind == "soft":
        log = logsumexp(z, axis=1)
        return q.max(axis=1) + alpha * log, np.exp(z - log[:, None])
    policy = sparsemax_rows(z)
    bonus = (policy * z).sum(axis=1) + 0.5 * (1 - (policy**2).sum(axis=1))
    return q.max(axis=1) + alpha * bonus, policy


def weigh(policy):
    """The matrix (S, S·A) that averages per-pair vectors with a policy."""
    states, actions = policy.shape
    starts = np.arange(0, states * actions + 1, actions)
    shape = (states, states * actions)
    return csr_array((policy.ravel(), np.arange(states * actions), starts), shape=shape)


def optimum(mdp: MDP, kind: str = "hard", alpha: float = 0.0, tolerance: float = 1e-5):
    """Optimal values and policy by modified policy iteration, within `tolerance` of the truth."""
    gamma = mdp.discount
    value = np.zeros(mdp.n_states)
    for _ in range(1000):
        q = mdp.table(mdp.rewards + gamma * (mdp.transitions @ value))
        new, policy = greedy(q, kind, alpha)
        change = new - value
        if np.ptp(change) * gamma / (1 - gamma) < tolerance:
            return new + gamma / (1 - gamma) * (change.max() + change.min()) / 2, policy
        chain = weigh(policy) @ mdp.transitions
        earned = new - gamma * (chain @ value)
        value = new
        for _ in range(150):
            step = earned + gamma * (chain @ value) - value
            value = value + step
            if np.ptp(step) < 1e-3 * tolerance:
                break
        value = value + gamma / (1 - gamma) * (step.max() + step.min()) / 2
    raise AssertionError("no fixed point")


def returns(mdp: MDP, policy):
    """Values of the reward alone under a policy."""
    chain, earned = weigh(policy) @ mdp.transitions, weigh(policy) @ mdp.rewards
    value = np.zeros(mdp.n_states)
    for _ in range(100_000):
        step = earned + mdp.discount * (chain @ value) - value
        value = value + step
        if np.ptp(step) < 1e-8 * (1 - mdp.discount):
            return value + mdp.discount / (1 - mdp.discount) * step.mean()
    raise AssertionError("no fixed point")


def assert_stochastic(mdp: MDP) -> None:
    np.testing.assert_allclose(mdp.transitions.sum(axis=1), 1.0, rtol=0, atol=4e-15)
    assert (mdp.transitions.data > 0).all()
    assert mdp.transitions.has_canonical_format
    assert mdp.transitions.indices.dtype == np.int32


def unicycle_states(grid):
    """Rows (x, y, heading) of all states in their order."""
    return np.stack(np.meshgrid(*unicycle_axes(grid), indexing="ij"), -1).reshape(-1, 3)


@pytest.mark.parametrize("n", [4, 9, 49, (2, 7)])
def test_unicycle_rows_are_distributions_over_at_most_eight_successors(n):
    mdp = unicycle(n, grid=(9, 7, 5))
    assert_stochastic(mdp)
    assert np.diff(mdp.transitions.indptr).max() <= 8
    assert mdp.n_states == 9 * 7 * 5
    assert mdp.n_actions == len(unicycle_actions(n)) == (np.prod(n) if isinstance(n, tuple) else n)


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
    states = unicycle_states(grid)
    actions = unicycle_actions(n, speeds, turn)
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
    value = optimum(mdp)[0].reshape(7, 7, 8)
    mirrored = value.transpose(1, 0, 2)[:, :, (2 - np.arange(8)) % 8]
    np.testing.assert_allclose(value, mirrored, rtol=0, atol=1e-4)


def test_unicycle_defaults_land_on_the_support_ratios_of_figure_2b():
    mdp = unicycle()
    ratio = {
        (kind, alpha): float((optimum(mdp, kind, alpha, 1e-3)[1] > threshold).mean())
        for kind, threshold in (("sparse", 0.0), ("soft", 1e-3))
        for alpha in (0.1, 100.0)
    }
    assert {case: round(share, 2) for case, share in ratio.items()} == {
        ("sparse", 0.1): 0.24,
        ("sparse", 100.0): 0.99,
        ("soft", 0.1): 0.79,
        ("soft", 100.0): 1.00,
    }


def test_unicycle_gaps_grow_with_the_actions_as_in_figure_2a():
    alpha, excess, lost = 0.1, {}, {}
    for n in (9, 25, 81):
        mdp = unicycle(n, grid=(11, 11, 12))
        best = optimum(mdp)[0].mean()
        bound = {"sparse": (n - 1) / (2 * n), "soft": np.log(n)}
        for kind in bound:
            value, policy = optimum(mdp, kind, alpha)
            limit = alpha * bound[kind] / (1 - mdp.discount)
            excess[kind, n] = value.mean() - best
            lost[kind, n] = best - returns(mdp, policy).mean()
            assert 0 <= excess[kind, n] <= limit
            assert 0 <= lost[kind, n] <= limit
        assert lost["sparse", n] < lost["soft", n]
    growth = {kind: excess[kind, 81] - excess[kind, 25] for kind in ("sparse", "soft")}
    assert growth["sparse"] < 0.1 * excess["sparse", 25]
    logarithm = alpha * np.log(81 / 25) / (1 - mdp.discount)
    assert growth["soft"] == pytest.approx(logarithm, rel=0.05)
    assert lost["sparse", 81] <= lost["sparse", 25]


def test_many_actions_are_built_quickly_and_stay_sparse():
    start = time.perf_counter()
    mdp = unicycle(225, grid=(15, 15, 12))
    assert time.perf_counter() - start < 4
    assert mdp.transitions.nnz < 8 * mdp.n_pairs


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
                mean - 3,
                mean + 3,
                points=sorted(p for p in axis if abs(p - mean) < 3),
                limit=200,
            )[0]
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


@pytest.mark.parametrize("kind", ["hard", "soft", "sparse"])
def test_multigoal_value_has_the_symmetries_of_the_square(kind):
    value = optimum(multigoal(9, grid=13), kind, 0.3)[0].reshape(13, 13)
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


def test_more_actions_harm_the_soft_policy_more_than_the_sparse_one():
    gap, policy = {}, {}
    for n in (9, 49):
        mdp = multigoal(n, grid=21)
        best = optimum(mdp)[0]
        for kind in ("sparse", "soft"):
            policy[kind, n] = optimum(mdp, kind, 0.3)[1]
            gap[kind, n] = (best - returns(mdp, policy[kind, n])).mean()
    assert gap["soft", 49] - gap["soft", 9] > 5 * (gap["sparse", 49] - gap["sparse", 9])
    assert gap["sparse", 49] < 0.1 * gap["soft", 49]
    marked = multigoal_state(MARKED, 21)
    chosen = multigoal_actions(49)[policy["sparse", 49][marked] > 0]
    assert {tuple(v) for v in chosen} == {(3.0, 0.0), (-3.0, 0.0), (0.0, 3.0), (0.0, -3.0)}
    assert (policy["soft", 49][marked] > 1e-3).all()


@settings(max_examples=100)
@given(cells=st.floats(-20, 20), size=st.integers(2, 9), periodic=st.booleans())
def test_interpolation_keeps_the_mean_and_never_leaves_the_axis(cells, size, periodic):
    move = interpolate(np.array([cells]), size, periodic)
    (i, j), (a, b) = move.indices[0], move.weights[0]
    assert 0 <= i < j < size
    assert a >= 0
    assert b >= 0
    assert a + b == pytest.approx(1, abs=1e-12)
    if periodic:
        for at, weight in ((i, a), (j, b)):
            away = min((cells - at) % size, (at - cells) % size)
            assert weight == pytest.approx(max(0.0, 1 - away), abs=1e-8)
    else:
        assert a * i + b * j == pytest.approx(np.clip(cells, 0, size - 1), abs=1e-8)


@pytest.mark.parametrize(
    ("build", "culprit"),
    [
        (lambda: unicycle(24), "actions"),
        (lambda: unicycle(1), "actions"),
        (lambda: unicycle(-25), "actions"),
        (lambda: unicycle(25.0), "actions"),  # type: ignore[arg-type]
        (lambda: unicycle((5, 1)), "actions"),
        (lambda: unicycle((5, 5, 5)), "actions"),  # type: ignore[arg-type]
        (lambda: unicycle(grid=(15, 15)), "grid"),  # type: ignore[arg-type]
        (lambda: unicycle(grid=(15, 1, 12)), "grid"),
        (lambda: unicycle(size=0.0), "size"),
        (lambda: unicycle(goal_scale=-1.0), "goal_scale"),
        (lambda: unicycle(obstacle_scale=float("nan")), "obstacle_scale"),
        (lambda: unicycle(goal=(1.0, float("inf"))), "goal"),
        (lambda: unicycle(obstacle=(1.0,)), "obstacle"),  # type: ignore[arg-type]
        (lambda: unicycle(speeds=(1.0, 1.0)), "speeds"),
        (lambda: unicycle(speeds=(1.0,)), "speeds"),  # type: ignore[arg-type]
        (lambda: unicycle(turn=0.0), "turn"),
        (lambda: unicycle(turn="left"), "turn"),  # type: ignore[arg-type]
        (lambda: unicycle(time_step=-0.1), "time_step"),
        (lambda: unicycle(discount=1.0), "discount"),
        (lambda: multigoal(48), "actions"),
        (lambda: multigoal(grid=1), "grid"),
        (lambda: multigoal(noise=-0.1), "noise"),
        (lambda: multigoal(reward_scale=0.0), "reward_scale"),
        (lambda: multigoal(time_step=0.0), "time_step"),
        (lambda: multigoal(discount=1.5), "discount"),
        (lambda: multigoal_state((0.0, float("nan"))), "location"),
    ],
)
def test_bad_parameters_are_refused_in_one_line_that_names_them(build, culprit):
    with pytest.raises(InvalidInput, match=culprit) as refusal:
        build()
    assert "\n" not in str(refusal.value)


def test_actions_that_are_close_have_names_of_their_own():
    mdp = unicycle(25, grid=(3, 3, 4), speeds=(100.0, 100.0001))
    assert len(set(mdp.action_names)) == 25
