"""Steps and episodes of Gymnasium's MuJoCo environments, for comparison with those in JAX."""

import itertools
from functools import cache, partial
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np

from tsallax.envs import Environment, InvertedPendulum, Reacher
from tsallax.envs.jax.inverted_pendulum import InvertedPendulumState
from tsallax.envs.jax.reacher import ReacherState

PER_STEP = 1e-9
"""The largest difference of a step in float64 from MuJoCo's."""
MUJOCO = [InvertedPendulum, Reacher]


def make(environment: Environment, converged: bool = True) -> Any:
    """Gymnasium's environment, with its time limit; its constraint solver run to convergence."""
    env = gymnasium.make(environment.name)
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


def record(environment: Environment, steps: int, converged: bool) -> Record:
    """Steps of random episodes: from resets and hard starts, with random and extreme actions."""
    env, rng, rows = make(environment, converged), np.random.default_rng(0), []
    high = np.array(environment.action_high)
    for episode in itertools.count():
        if len(rows) >= steps:
            break
        env.reset(seed=episode)
        if episode % 2:
            env.unwrapped.set_state(*hard_start(environment, rng))
        constant = rng.choice([-1.0, 1.0], high.shape) * high if episode % 4 > 1 else None
        if constant is not None and episode % 8 > 5:
            constant *= 2.5  # MuJoCo clips it
        for _ in range(environment.limit if environment is Reacher else 60):
            action = rng.uniform(-high, high) if constant is None else constant
            before = state_of(env)
            observation, reward, terminated, _, _ = env.unwrapped.step(action)
            after = state_of(env)
            if environment is InvertedPendulum and fastest_tilt(before, after) > 1.4:
                break  # long after the end of an episode, and next to the pole's own stop
            rows.append(Record(before, action, after.motion, observation, reward, terminated))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows[:steps])


def fastest_tilt(before: Any, after: Any) -> float:
    """A bound on the pole's angle in between."""
    spin = max(abs(before.motion[3]), abs(after.motion[3]))
    return float(max(abs(before.motion[1]), abs(after.motion[1])) + 0.04 * spin)


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference of any two entries."""
    return float(np.abs(np.asarray(ours) - np.asarray(theirs)).max())


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
    return start, noise, [np.stack(column) for column in zip(*results, strict=True)]


@partial(jax.jit, static_argnums=0)
def replay(environment: Environment, start: Any, actions: Any, gain: Any = None) -> Any:
    """The last state and what each step returned; with a gain, actions are added to its control."""

    def one(state: Any, action: Any) -> Any:
        control = 0.0 if gain is None else gain @ environment.observe(state)
        state, *outcome = environment.step(state, control + action)
        return state, outcome

    return jax.lax.scan(one, start, actions)


@cache
def batched_step(environment: Environment) -> Any:
    return jax.jit(jax.vmap(environment.step))
