"""The JAX environments equal Gymnasium's, which C MuJoCo simulates, joint limits included."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tsallax import problems
from tsallax.envs import Environment, InvertedPendulum, MultiGoal, Reacher, jax_environment
from tsallax.envs.jax import inverted_pendulum, reacher
from tsallax.envs.jax.inverted_pendulum import InvertedPendulumState
from tsallax.envs.jax.multigoal_env import multigoal
from tsallax.envs.jax.reacher import ReacherState
from tsallax.errors import InvalidInput
from tsallax.problems.multigoal_mdp import multigoal_axis, multigoal_state

PER_STEP = 1e-9
"""How far a step in float64 may be from MuJoCo's."""
SOLVER_EXIT = 1e-6
"""The same at a joint limit, where MuJoCo's iteration may stop early (its tolerance is 1e-8)."""
EPISODE32 = {"InvertedPendulum-v5": 1e-5, "Reacher-v5": 5e-4}
"""How far an episode in float32 may be from MuJoCo's, in any observation."""
MUJOCO = [InvertedPendulum, Reacher]


def x64(enabled: bool = True) -> AbstractContextManager[Any]:
    """Compute in float64, here alone."""
    context = getattr(jax, "enable_x64", None)
    if context is None:
        from jax.experimental import enable_x64 as context
    return context(enabled)


def make(environment: Environment, converged: bool = True) -> Any:
    """Gymnasium's environment, with its time limit; its constraint solver run to convergence."""
    pytest.importorskip("mujoco")
    env = pytest.importorskip("gymnasium").make(environment.name)
    if converged:
        env.unwrapped.model.opt.tolerance = 0
    return env


def state_of(env: Any, step: int = 0) -> Any:
    """The state that MuJoCo is in, for the JAX environment."""
    q, v = env.unwrapped.data.qpos, env.unwrapped.data.qvel
    motion, steps = np.array([*q[:2], *v[:2]]), np.int32(step)
    if env.spec.id.startswith("Reacher"):
        tip = env.unwrapped.get_body_com("fingertip")[:2]
        return ReacherState(motion, q[2:].copy(), tip.copy(), steps)
    return InvertedPendulumState(motion, steps)


class Record(NamedTuple):
    """Steps that MuJoCo took, stacked."""

    state: Any
    action: Any
    motion: Any
    observation: Any
    reward: Any
    terminated: Any


def hard_start(environment: Environment, rng: np.random.Generator) -> tuple[Any, Any]:
    """A position around and beyond the joint limits, and a high speed."""
    if environment is InvertedPendulum:
        return np.array([rng.uniform(-1.06, 1.06), rng.uniform(-0.2, 0.2)]), rng.normal(size=2) * 6
    q = np.array([rng.uniform(-3, 3), rng.choice([-1, 1]) * rng.uniform(2.8, 3.06), 0.1, -0.05])
    return q, np.array([*rng.normal(size=2) * 30, 0.0, 0.0])


def record(environment: Environment, episodes: int, converged: bool, seed: int = 0) -> Record:
    """Steps of random episodes: from resets and hard starts, with random and extreme actions."""
    env, rng, rows = make(environment, converged), np.random.default_rng(seed), []
    high = np.array(environment.action_high)
    for episode in range(episodes):
        env.reset(seed=episode)
        if episode % 2:
            env.unwrapped.set_state(*hard_start(environment, rng))
        constant = rng.choice([-1.0, 1.0], high.shape) * high if episode % 4 > 1 else None
        for _ in range(environment.limit if environment is Reacher else 60):
            action = rng.uniform(-high, high) if constant is None else constant
            before = state_of(env)
            observation, reward, terminated, _, _ = env.unwrapped.step(action)
            after = state_of(env)
            if environment is InvertedPendulum and fastest_tilt(before, after) > 1.4:
                break  # long after the end of an episode, and next to the pole's own stop
            rows.append(Record(before, action, after.motion, observation, reward, terminated))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


def fastest_tilt(before: Any, after: Any) -> float:
    """A bound on the pole's angle in between."""
    spin = max(abs(before.motion[3]), abs(after.motion[3]))
    return float(max(abs(before.motion[1]), abs(after.motion[1])) + 0.04 * spin)


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference of any two entries."""
    return float(np.abs(np.asarray(ours) - np.asarray(theirs)).max())


@pytest.mark.parametrize("environment", MUJOCO, ids=lambda e: e.name)
def test_a_step_in_float64_is_mujocos_joint_limits_included(environment: Environment) -> None:
    with x64():
        steps = record(environment, episodes=240, converged=True)
        state, observation, reward, terminated, _ = jax.jit(jax.vmap(environment.step))(
            steps.state, steps.action
        )
    limit, joint = (1.0, 0) if environment is InvertedPendulum else (3.0, 1)
    beyond = np.abs(steps.state.motion[:, joint]) > limit
    assert beyond.sum() > 100, "the joint limits were hardly reached"
    assert (~beyond).sum() > 1000
    assert state.motion.dtype == np.float64
    assert apart(state.motion, steps.motion) < PER_STEP
    assert apart(observation, steps.observation) < PER_STEP
    assert apart(reward, steps.reward) < PER_STEP
    np.testing.assert_array_equal(terminated, steps.terminated)


@pytest.mark.parametrize("environment", MUJOCO, ids=lambda e: e.name)
def test_a_step_differs_from_an_unconverged_solver_at_a_limit_only(
    environment: Environment,
) -> None:
    with x64():
        steps = record(environment, episodes=240, converged=False)
        state, *_ = jax.jit(jax.vmap(environment.step))(steps.state, steps.action)
    limit, joint = (1.0, 0) if environment is InvertedPendulum else (3.0, 1)
    place, speed = np.abs(steps.state.motion[:, joint]), np.abs(steps.state.motion[:, joint + 2])
    reach = 0.04 * (speed + np.abs(steps.motion[:, joint + 2])) + 0.05
    off = np.abs(np.asarray(state.motion) - steps.motion).max(axis=1)
    inside = place + reach < limit
    assert inside.sum() > 500
    assert off[inside].max() < PER_STEP
    assert off.max() < SOLVER_EXIT
    assert (off < PER_STEP).mean() > 0.98


GAINS = np.array([0.5, 12.0, 0.8, 2.0])
"""A linear controller that keeps the pole up; without one, an episode would amplify rounding."""


def episode(
    environment: Environment, seed: int, gain: Any, converged: bool
) -> tuple[Any, Any, list[Any]]:
    """An episode of Gymnasium's environment: first state, noise, and what each step returned."""
    env, rng = make(environment, converged), np.random.default_rng(seed)
    high = np.array(environment.action_high)
    noise = rng.uniform(-high, high, (environment.limit, len(high)))
    noise *= 0.1 if gain.any() else 1.0
    observation, _ = env.reset(seed=seed)
    start, results = state_of(env), []
    for part in noise:
        observation, *outcome, _ = env.step(gain @ observation + part)
        results.append((observation, *outcome))
        if outcome[1] or outcome[2]:
            break
    return start, noise[: len(results)], [np.stack(column) for column in zip(*results, strict=True)]


@partial(jax.jit, static_argnums=0)
def replay(environment: Environment, start: Any, noise: Any, gain: Any) -> Any:
    def one(state: Any, part: Any) -> Any:
        steer = gain @ environment.observe(state)
        state, *outcome = environment.step(state, steer + part)
        return state, outcome

    return jax.lax.scan(one, start, noise)[1]


@pytest.mark.parametrize("environment", MUJOCO, ids=lambda e: e.name)
@pytest.mark.parametrize("bits", [32, 64])
def test_whole_episodes_are_mujocos(environment: Environment, bits: int) -> None:
    lengths, off = set(), 0.0
    for seed in range(10):
        steady = environment is InvertedPendulum and seed % 2 == 0
        gain = GAINS[None] * steady if environment is InvertedPendulum else np.zeros((2, 10))
        start, noise, theirs = episode(environment, seed, gain, converged=bits == 64)
        with x64(bits == 64):
            ours = replay(environment, start, noise, gain)
        assert ours[0].dtype == f"float{bits}"
        off = max(off, apart(ours[0], theirs[0]), apart(ours[1], theirs[1]))
        np.testing.assert_array_equal(ours[2], theirs[2])
        np.testing.assert_array_equal(ours[3], theirs[3])
        lengths.add(len(noise))
    assert off < (EPISODE32[environment.name] if bits == 32 else PER_STEP), off
    assert max(lengths) == environment.limit
    assert environment is Reacher or min(lengths) < 50


@partial(jax.jit, static_argnums=0)
def rollout(environment: Environment, start: Any, actions: Any) -> Any:
    def one(state: Any, action: Any) -> Any:
        state, *outcome = environment.step(state, action)
        return state, outcome

    return jax.lax.scan(one, start, actions)


def test_the_pendulum_is_the_model_that_mujoco_compiles() -> None:
    model = make(InvertedPendulum).unwrapped.model
    check = partial(np.testing.assert_allclose, rtol=1e-13)
    ours = inverted_pendulum
    check(model.body_mass[1:], [ours.CART_MASS, ours.POLE_MASS])
    check(model.body_ipos[2], [ours.CENTRE[0], 0.0, ours.CENTRE[1]])
    check(model.body_inertia[2, :2], ours.POLE_INERTIA)
    check(model.dof_invweight0[0], ours.REST_MOBILITY)
    check(model.dof_damping, ours.DAMPING)
    check(model.jnt_range[0], [-ours.RAIL, ours.RAIL])
    check(model.actuator_gear[0, 0], ours.GEAR)
    check(model.actuator_ctrlrange, [[-ours.FORCE, ours.FORCE]])
    check(model.opt.timestep, ours.TIME_STEP)
    check(make(InvertedPendulum).unwrapped.frame_skip, ours.SUBSTEPS)
    for unused in (model.dof_armature, model.jnt_stiffness, model.dof_frictionloss):
        assert not unused.any()
    same_solver(model)


def test_the_reacher_is_the_model_that_mujoco_compiles() -> None:
    model = make(Reacher).unwrapped.model
    check = partial(np.testing.assert_allclose, rtol=1e-13)
    ours = reacher
    check(model.body_mass[1:4], [ours.LINK_MASS, ours.LINK_MASS, ours.TIP_MASS])
    check(model.body_inertia[1:3, :2], ours.LINK_INERTIA)
    check(model.body_inertia[3], ours.TIP_INERTIA)
    check(model.body_pos[2:4, 0], [ours.LINK, ours.TIP])
    check(model.body_ipos[1:3, 0], ours.LINK / 2)
    check(model.dof_invweight0[1], ours.REST_MOBILITY)
    check(model.dof_armature[:2], ours.ROTOR)
    check(model.dof_damping[:2], ours.DAMPING)
    check(model.jnt_range[1], [-ours.ELBOW, ours.ELBOW])
    assert not model.jnt_limited[0]
    check(model.actuator_gear[:, 0], ours.GEAR)
    check(model.opt.timestep, ours.TIME_STEP)
    check(make(Reacher).unwrapped.frame_skip, ours.SUBSTEPS)
    same_solver(model)


def same_solver(model: Any) -> None:
    """The integrator, gravity and constraint parameters are those of `mechanics`."""
    import mujoco

    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    np.testing.assert_array_equal(model.opt.gravity, [0.0, 0.0, -9.81])
    np.testing.assert_array_equal(model.jnt_solref, [[0.02, 1.0]] * model.njnt)
    np.testing.assert_array_equal(model.jnt_solimp, [[0.9, 0.95, 0.001, 0.5, 2.0]] * model.njnt)
    assert not model.jnt_margin.any()
    assert model.opt.disableflags == 0
    assert model.opt.density == model.opt.viscosity == 0


@pytest.mark.parametrize("environment", MUJOCO, ids=lambda e: e.name)
def test_spaces_and_limits_are_gymnasiums(environment: Environment) -> None:
    env = make(environment)
    np.testing.assert_allclose(env.action_space.low, environment.action_low)
    np.testing.assert_allclose(env.action_space.high, environment.action_high)
    assert env.observation_space.shape == (environment.observation_size,)
    assert env.spec.max_episode_steps == environment.limit


@pytest.mark.parametrize("environment", MUJOCO, ids=lambda e: e.name)
def test_resets_are_distributed_as_gymnasiums(environment: Environment) -> None:
    env, n = make(environment), 1500
    theirs = np.stack([env.reset(seed=seed)[0] for seed in range(n)])
    states = jax.vmap(environment.reset)(jax.random.split(jax.random.key(0), n))
    ours = np.asarray(jax.vmap(environment.observe)(states))
    assert ours.shape == theirs.shape
    for column in range(environment.observation_size):
        assert stats.ks_2samp(ours[:, column], theirs[:, column]).pvalue > 1e-3
    if environment is Reacher:
        radii = [np.linalg.norm(x[:, 4:6], axis=1) for x in (ours, theirs)]
        assert max(radii[0]) < 0.2
        assert stats.ks_2samp(*radii).pvalue > 1e-3
    assert not states.step.any()


@pytest.mark.parametrize("environment", MUJOCO, ids=lambda e: e.name)
def test_forces_beyond_the_bounds_are_clipped_as_mujoco_does(environment: Environment) -> None:
    env = make(environment)
    env.reset(seed=3)
    with x64():
        state, action = state_of(env), 2.5 * np.array(environment.action_high)
        observation, reward, *_ = env.step(action)
        _, ours, our_reward, *_ = environment.step(state, action)
        assert apart(ours, observation) < PER_STEP
        assert abs(float(our_reward) - reward) < PER_STEP


def test_the_fingertip_is_that_of_the_last_stage() -> None:
    state = Reacher.reset(jax.random.key(0))
    state, _ = rollout(Reacher, state, jnp.array([[1.0, -1.0]] * 3))
    assert 1e-7 < apart(state.fingertip, reacher.fingertip(state.motion)) < 1e-4


def test_a_pendulum_that_is_not_finite_has_fallen() -> None:
    state = InvertedPendulumState(jnp.array([0.0, 0.0, jnp.nan, 0.0]), jnp.int32(0))
    _, _, reward, terminated, _ = InvertedPendulum.step(state, [0.0])
    assert bool(terminated)
    assert float(reward) == 0.0


@pytest.mark.parametrize("environment", [*MUJOCO, MultiGoal], ids=lambda e: e.name)
def test_many_at_once_are_as_one_by_one(environment: Environment) -> None:
    keys = jax.random.split(jax.random.key(1), 5)
    states = jax.vmap(environment.reset)(keys)
    low, high = np.array([environment.action_low, environment.action_high])
    actions = np.random.default_rng(0).uniform(low, high, (5, len(low))).astype(np.float32)
    batched = jax.jit(jax.vmap(environment.step))(states, actions)
    reset, step = jax.jit(environment.reset), jax.jit(environment.step)
    for i in range(5):
        single = step(reset(keys[i]), actions[i])
        for one, many in zip(jax.tree.leaves(single), jax.tree.leaves(batched), strict=True):
            if not jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
                np.testing.assert_allclose(one, many[i], rtol=2e-5, atol=1e-6)
    assert batched[1].shape == (5, environment.observation_size)
    assert batched[1].dtype == batched[2].dtype == np.float32
    assert batched[0].step.dtype == np.int32
    np.testing.assert_array_equal(jax.vmap(environment.observe)(batched[0]), batched[1])


@pytest.mark.parametrize("environment", [*MUJOCO, MultiGoal], ids=lambda e: e.name)
def test_an_episode_is_truncated_at_its_limit_and_not_before(environment: Environment) -> None:
    actions = jnp.zeros((environment.limit, environment.action_size))
    _, (_, _, _, truncated) = rollout(environment, environment.reset(jax.random.key(0)), actions)
    assert bool(truncated[-1])
    assert not truncated[:-1].any()


def test_environments_are_found_by_their_ids() -> None:
    assert jax_environment("InvertedPendulum-v5") is InvertedPendulum
    assert jax_environment("tsallax/Reacher-v5") is jax_environment("Reacher") is Reacher
    assert jax_environment("MultiGoal") is MultiGoal
    assert jax_environment("InvertedPendulum-v4") is None
    assert jax_environment("InvertedDoublePendulum-v5") is None


def test_the_point_mass_moves_as_the_planning_problem_does() -> None:
    grid, location = 61, (2.9, -0.4)
    mdp, axis = problems.multigoal(9, grid=grid), multigoal_axis(grid)
    row = multigoal_state(location, grid) * 9 + 5  # velocities (0, 3)
    chances = np.asarray(mdp.transitions[[row]].todense()).reshape(grid, grid)
    n = 20_000
    states = jax.vmap(MultiGoal.reset)(jax.random.split(jax.random.key(0), n))
    states = states._replace(location=jnp.tile(jnp.array(location), (n, 1)))
    _, after, reward, _, _ = jax.vmap(MultiGoal.step, (0, None))(states, jnp.array([0.0, 3.0]))
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
    with pytest.raises(InvalidInput, match="noise must be a finite number at least zero"):
        multigoal(noise=-1.0)


def test_the_noise_of_the_point_mass_is_new_at_every_step() -> None:
    state = MultiGoal.reset(jax.random.key(0))._replace(location=jnp.zeros(2))
    first, *_ = MultiGoal.step(state, jnp.zeros(2))
    second, *_ = MultiGoal.step(first, jnp.zeros(2))
    assert not np.allclose(first.location, second.location - first.location)
    again, *_ = MultiGoal.step(state, jnp.zeros(2))
    np.testing.assert_array_equal(first.location, again.location)
