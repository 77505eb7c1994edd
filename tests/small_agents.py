"""Agents small enough for tests, an environment whose every step can be checked, comparisons.

Tests share these sizes and options: what is compiled for one of them serves the others.
"""

from functools import cache
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from tsallax import DeepQ, DeepQConfig, Fleet, Member
from tsallax.deep.replay import ENDED, TERMINATED
from tsallax.envs.jax.environment import Environment

TINY: dict[str, Any] = {
    "net_arch": (16,), "batch_size": 8, "buffer_size": 96, "learning_starts": 0,
    "target_update_interval": 25,
    "learning_rate": 0.01, "gamma": 0.9, "alpha": 3.0,
}  # fmt: skip

SMALL_DDPG: dict[str, Any] = {
    "net_arch": (8,), "batch_size": 8, "buffer_size": 48, "learning_starts": 0, "noise": "ou"
}  # fmt: skip
"""Those of the agent of version 0.1 in tests/data, which shares its compiled program."""

LIMIT, WALL = 6, 3.0


class Place(NamedTuple):
    position: jax.Array
    step: jax.Array


def _reset(key: Any) -> Place:
    return Place(jax.random.randint(key, (), -1, 3).astype(float), jnp.zeros((), jnp.int32))


def _observe(state: Place) -> jax.Array:
    return jnp.stack([state.position, state.step.astype(float)])


def _step(state: Place, action: Any) -> Any:
    after = Place(state.position + jnp.asarray(action)[0], state.step + 1)
    reward = after.position + 0.25 * after.step
    return (after, _observe(after), reward, jnp.abs(after.position) >= WALL, after.step >= LIMIT)


CORRIDOR = Environment("Corridor-v0", 2, (-1.0,), (1.0,), LIMIT, _reset, _observe, _step)
"""Walk by -1, 0 or 1 from a place in -1..2 until a wall at +-3 (termination) or for 6 steps."""


def corridor_step(seen: Any, action: int) -> tuple[Any, float, bool, bool]:
    """The same in plain numbers, for one of three actions."""
    position, step = float(seen[0]) + action - 1, float(seen[1]) + 1
    return (position, step), position + 0.25 * step, abs(position) >= WALL, step >= LIMIT


def corridor(seed: int = 0, **options: Any) -> DeepQ:
    """An agent in a JAX environment."""
    return DeepQ(CORRIDOR, seed=seed, **{"actions": 3, **TINY, **options})


def cart_pole(seed: int = 0, **options: Any) -> DeepQ:
    """An agent in a Gymnasium environment."""
    return DeepQ("CartPole-v1", seed=seed, **{**TINY, **options})


VECTOR = {**TINY, "train_freq": 3}
"""The options of agents in two Gymnasium environments: an update after 3 steps of both."""


def cart_poles(seed: int = 0) -> DeepQ:
    """An agent in a vector environment."""
    env = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    return DeepQ(env, seed=seed, **VECTOR)


VARIANTS = [("epsilon", "hard"), ("sparse", "sparse"), ("soft", "sparse")]


def member(explore: str = "sparse", update: str = "sparse", seed: int = 0, **more: Any) -> Member:
    return Member(DeepQConfig(explore=explore, update=update, **{**TINY, **more}), seed)


def trio(alphas: Any = (0.3, 0.3, 0.3), together: bool = False) -> Fleet:
    """A fleet of one agent of each variant."""
    members = [member(*VARIANTS[i], seed=i, alpha=alphas[i]) for i in range(3)]
    return Fleet(CORRIDOR, members, actions=3, together=together)


@cache
def trained(make: Any) -> DeepQ:
    """The agent of one of these functions after 120 steps in one call; not to be changed."""
    return make().learn(steps=120)


class Episodic(gymnasium.Env):
    """Random observations and a reward of 1, in episodes of five steps; sizes of CartPole."""

    def __init__(self, observations: Any = None, actions: Any = None) -> None:
        self.observation_space = observations or Box(-1, 1, (4,))
        self.action_space = actions or Discrete(2)
        self.taken: list[Any] = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken.append(action)
        self.t += 1
        return self.observation_space.sample(), 1.0, False, self.t >= 5, {}


def leaves(tree: Any) -> list[np.ndarray]:
    """The arrays of a pytree."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def assert_same(a: Any, b: Any) -> None:
    """Two agents are equal, bit for bit: learner, memory, counters, history."""
    assert a.steps == b.steps
    for x, y in zip(leaves(a._learner), leaves(b._learner), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
    first, second = a.history.arrays(), b.history.arrays()
    assert set(first) == set(second)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)


def differ(a: Any, b: Any) -> bool:
    """Whether the networks of two agents are different."""
    pairs = zip(jax.tree.leaves(a._learner.online), jax.tree.leaves(b._learner.online))
    return any(np.any(np.asarray(x) != np.asarray(y)) for x, y in pairs)


def columns(agent: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The memory's observations, next observations, actions, rewards and flags."""
    memory = agent._learner.replay
    rows = np.asarray(memory.rows)
    return *map(np.asarray, memory.columns(memory.rows)), rows[:, -2], rows[:, -1].astype(int)


def flags(agent: Any) -> list[int]:
    """How the transitions in the memory ended."""
    return columns(agent)[-1].tolist()


def stored(agent: DeepQ) -> list[list[dict[str, Any]]]:
    """What is in the memory, in the order of time, for each environment."""
    seen, after, action, reward, ends = columns(agent)
    weight = np.asarray(agent._learner.replay.priority).ravel()
    assert agent.steps <= len(reward), "nothing may have been overwritten"
    rows = [
        {
            "seen": seen[i],
            "action": int(action[i]),
            "reward": float(reward[i]),
            "after": after[i],
            "terminated": bool(ends[i] & TERMINATED),
            "ended": bool(ends[i] & ENDED),
            "weight": float(weight[i]),
        }
        for i in range(agent.steps)
    ]
    return [rows[e :: agent.config.n_envs] for e in range(agent.config.n_envs)]


def episodes_of(trajectories: Any) -> list[tuple[int, float, int]]:
    """(step at the end, return, length) of the finished episodes, in the order of their ends."""
    n, found = len(trajectories), []
    for rows in trajectories:
        total, length = 0.0, 0
        for t, row in enumerate(rows):
            total, length = total + row["reward"], length + 1
            if row["ended"]:
                found.append(((t + 1) * n, total, length))
                total, length = 0.0, 0
    return sorted(found, key=lambda episode: episode[0])


def assert_history_is_that_of(agent: DeepQ, trajectories: Any) -> None:
    h = agent.history
    noted = list(zip(h["episode_step"], h["episode_return"], h["episode_length"]))
    expected = episodes_of(trajectories)
    assert len(noted) == len(expected)
    assert [step for step, _, _ in noted] == [step for step, _, _ in expected]
    assert sorted(noted) == [pytest.approx(episode) for episode in sorted(expected)]
