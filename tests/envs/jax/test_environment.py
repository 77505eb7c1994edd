"""The JAX environments equal Gymnasium's, which C MuJoCo simulates, joint limits included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mujoco_episodes import (
    GAINS,
    MUJOCO,
    PER_STEP,
    apart,
    batched_step,
    episode,
    make,
    record,
    replay,
)  # fmt: skip
from precision import double
from tsallax.envs import Environment, InvertedPendulum, MultiGoal, Reacher

each_environment = pytest.mark.parametrize("environment", MUJOCO, ids=lambda e: e.name)
SOLVER_EXIT = 1e-6
"""The tolerance at a joint limit, where MuJoCo's iteration may stop early (its own is 1e-8)."""
EPISODE32 = {"InvertedPendulum-v5": 1e-5, "Reacher-v5": 5e-4}
"""The largest difference of an episode in float32 from MuJoCo's, in any observation."""


@each_environment
def test_a_step_in_float64_is_mujocos_joint_limits_included(environment: Environment) -> None:
    with double():
        steps = record(environment, steps=2500, converged=True)
        state, observation, reward, terminated, _ = batched_step(environment)(
            steps.state, steps.action
        )
    limit, joint = (1.0, 0) if environment is InvertedPendulum else (3.0, 1)
    beyond = np.abs(steps.state.motion[:, joint]) > limit
    assert beyond.sum() > 50, "too few steps beyond the joint limits"
    assert (~beyond).sum() > 500
    assert (np.abs(steps.action) > environment.action_high).any(), "no action beyond its bounds"
    assert state.motion.dtype == np.float64
    np.testing.assert_allclose(jax.vmap(environment.observe)(state), observation, rtol=1e-12)
    assert apart(state.motion, steps.motion) < PER_STEP
    assert apart(observation, steps.observation) < PER_STEP
    assert apart(reward, steps.reward) < PER_STEP
    np.testing.assert_array_equal(terminated, steps.terminated)


@each_environment
def test_a_step_differs_from_an_unconverged_solver_at_a_limit_only(
    environment: Environment,
) -> None:
    with double():
        steps = record(environment, steps=2500, converged=False)
        state, *_ = batched_step(environment)(steps.state, steps.action)
    limit, joint = (1.0, 0) if environment is InvertedPendulum else (3.0, 1)
    place, speed = np.abs(steps.state.motion[:, joint]), np.abs(steps.state.motion[:, joint + 2])
    reach = 0.04 * (speed + np.abs(steps.motion[:, joint + 2])) + 0.05
    off = np.abs(np.asarray(state.motion) - steps.motion).max(axis=1)
    inside = place + reach < limit
    assert inside.sum() > 250
    assert off[inside].max() < PER_STEP
    assert off.max() < SOLVER_EXIT
    assert (off < PER_STEP).mean() > 0.98


@each_environment
@pytest.mark.parametrize("bits", [32, pytest.param(64, marks=pytest.mark.slow)])
def test_whole_episodes_are_mujocos(environment: Environment, bits: int) -> None:
    lengths, off = set(), 0.0
    for seed in range(4):
        steady = environment is InvertedPendulum and seed % 2 == 0
        gain = GAINS[None] * steady if environment is InvertedPendulum else np.zeros((2, 10))
        start, noise, theirs = episode(environment, seed, gain, converged=bits == 64)
        with double(bits == 64):
            ours = [x[: len(theirs[0])] for x in replay(environment, start, noise, gain)[1]]
        assert ours[0].dtype == f"float{bits}"
        off = max(off, apart(ours[0], theirs[0]), apart(ours[1], theirs[1]))
        np.testing.assert_array_equal(ours[2], theirs[2])
        np.testing.assert_array_equal(ours[3], theirs[3])
        lengths.add(len(theirs[0]))
    assert off < (EPISODE32[environment.name] if bits == 32 else PER_STEP), off
    assert max(lengths) == environment.limit
    assert environment is Reacher or min(lengths) < 50


@each_environment
def test_resets_are_distributed_as_gymnasiums(environment: Environment) -> None:
    env, n = make(environment), 800
    theirs = np.stack([env.reset(seed=seed)[0] for seed in range(n)])
    states = jax.jit(jax.vmap(environment.reset))(jax.random.split(jax.random.key(0), n))
    ours = np.asarray(jax.jit(jax.vmap(environment.observe))(states))
    assert ours.shape == theirs.shape
    for column in range(environment.observation_size):
        assert stats.ks_2samp(ours[:, column], theirs[:, column]).pvalue > 1e-3
    if environment is Reacher:
        radii = [np.linalg.norm(x[:, 4:6], axis=1) for x in (ours, theirs)]
        assert max(radii[0]) < 0.2
        assert stats.ks_2samp(*radii).pvalue > 1e-3
    assert not states.step.any()


def test_an_episode_is_truncated_at_its_limit_and_not_before() -> None:
    actions = jnp.zeros((MultiGoal.limit, MultiGoal.action_size))
    last, (_, _, _, truncated) = replay(MultiGoal, MultiGoal.reset(jax.random.key(0)), actions)
    assert last.step.dtype == np.int32
    assert bool(truncated[-1])
    assert not truncated[:-1].any()
