"""The point mass among four goals is the planning problem without its grid."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from refusals import refused
from tsallax import problems
from tsallax.envs import MultiGoal
from tsallax.envs.jax.canvas import INK
from tsallax.envs.jax.multigoal_env import draw, multigoal
from tsallax.problems.multigoal_mdp import multigoal_axis, multigoal_state


def test_the_point_mass_moves_as_the_planning_problem_does() -> None:
    grid, location = 61, (2.9, -0.4)
    mdp, axis = problems.multigoal(9, grid=grid), multigoal_axis(grid)
    row = multigoal_state(location, grid) * 9 + 5  # velocities (0, 3)
    chances = np.asarray(mdp.transitions[[row]].todense()).reshape(grid, grid)
    n = 10_000
    states = jax.jit(jax.vmap(MultiGoal.reset))(jax.random.split(jax.random.key(0), n))
    states = states._replace(location=jnp.tile(jnp.array(location), (n, 1)))
    step = jax.jit(jax.vmap(MultiGoal.step, (0, None)))
    _, after, reward, _, _ = step(states, jnp.array([0.0, 3.0]))
    for i, marginal in enumerate([chances.sum(axis=1), chances.sum(axis=0)]):
        mean = float(marginal @ axis)
        spread = float(np.sqrt(marginal @ axis**2 - mean**2))
        assert abs(float(after[:, i].mean()) - mean) < 5 * spread / np.sqrt(n) + 1e-3
        assert float(after[:, i].std()) == pytest.approx(spread, rel=0.1)  # the grid widens it
    assert float(jnp.abs(after).max()) <= 3.0
    np.testing.assert_allclose(reward, mdp.rewards[row], rtol=1e-5)


def test_the_point_mass_has_no_noise_where_none_is_wanted() -> None:
    still = multigoal(noise=0.0)
    state = still.reset(jax.random.key(0))._replace(location=jnp.array([0.5, 1.0]))
    np.testing.assert_allclose(still.step(state, [-9.0, 1.0])[1], [-1.0, 1.5])
    with refused("noise must be a number of at least 0"):
        multigoal(noise=-1.0)


def test_the_noise_of_the_point_mass_is_new_at_every_step() -> None:
    state = MultiGoal.reset(jax.random.key(0))._replace(location=jnp.zeros(2))
    step = jax.jit(MultiGoal.step)
    first, *_ = step(state, jnp.zeros(2))
    second, *_ = step(first, jnp.zeros(2))
    assert not np.allclose(first.location, second.location - first.location)
    again, *_ = step(state, jnp.zeros(2))
    np.testing.assert_array_equal(first.location, again.location)


def test_the_point_mass_is_drawn_where_the_state_has_it() -> None:
    state = jax.jit(MultiGoal.reset)(jax.random.key(0))
    picture = draw(state._replace(location=jnp.array([-1.6, 1.6])))
    row, column = np.argwhere((picture == INK).all(-1)).mean(0)
    assert column == pytest.approx(90, abs=1)
    assert row == pytest.approx(90, abs=1)
