"""Gymnasium environments through the adapter: true last observations, told ends, plain refusals."""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Sequence  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import (  # noqa: E402
    AsyncVectorEnv,
    AutoresetMode,
    SyncVectorEnv,
    VectorEnv,
)

from tsallax import envs  # noqa: E402
from tsallax.envs import HostEnvironment  # noqa: E402
from tsallax.errors import InvalidInput  # noqa: E402

OURS = ["tsallax/InvertedPendulum-v5", "tsallax/Reacher-v5", "tsallax/MultiGoal-v0"]


class Count(gymnasium.Env):  # type: ignore[type-arg]
    """Counts its steps from 100·(seed): ends by itself at `end`, is cut off at `cut`."""

    def __init__(self, end: int = 3, cut: int = 99) -> None:
        self.observation_space = Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = Discrete(3, start=-1)
        self.end, self.cut, self.taken = end, cut, []

    def observation(self) -> Any:
        return np.array([self.start + self.count], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.start = 100 * (seed if seed is not None else -1)
        self.count = 0
        return self.observation(), {}

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        self.taken.append(int(action))
        self.count += 1
        ended, cut = self.count == self.end, self.count == self.cut
        return self.observation(), float(self.count), ended, cut, {}


class CountTogether(VectorEnv):  # type: ignore[type-arg]
    """Two `Count`s that cannot be reset one by one, and spend the step after an end on it."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self) -> None:
        self.inner = SyncVectorEnv([lambda: Count(end=3), lambda: Count(end=5)])
        self.num_envs = 2
        self.single_observation_space = self.inner.single_observation_space
        self.single_action_space = self.inner.single_action_space

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        assert not options
        assert seed is None or isinstance(seed, int)
        return self.inner.reset(seed=seed)

    def step(self, actions: Any) -> Any:
        return self.inner.step(actions)


def members() -> list[Any]:
    return [lambda: Count(end=3), lambda: Count(end=99, cut=2)]


SpawnedVectorEnv = partial(AsyncVectorEnv, context="spawn")


@pytest.mark.parametrize(
    ("vector", "mode"),
    [
        (SyncVectorEnv, AutoresetMode.DISABLED),
        (SyncVectorEnv, AutoresetMode.SAME_STEP),
        (SyncVectorEnv, AutoresetMode.NEXT_STEP),
        (SpawnedVectorEnv, AutoresetMode.SAME_STEP),
        (SpawnedVectorEnv, AutoresetMode.NEXT_STEP),
    ],
    ids=str,
)
def test_a_vector_environment_gives_the_true_last_observation(vector: Any, mode: Any) -> None:
    env = vector(members(), autoreset_mode=mode)
    host = HostEnvironment(env)
    assert (host.n_envs, host.observation_size, host.n_actions) == (2, 1, 3)
    np.testing.assert_array_equal(host.reset([1, 2]), [[100], [200]])
    observations, rewards, terminated, truncated = host.step([0, 1])
    np.testing.assert_array_equal(observations, [[101], [201]])
    observations, rewards, terminated, truncated = host.step([0, 1])
    np.testing.assert_array_equal(observations, [[102], [202]])  # not the reset one
    np.testing.assert_array_equal(rewards, [2, 2])
    np.testing.assert_array_equal(terminated, [False, False])
    np.testing.assert_array_equal(truncated, [False, True])
    first = -100 if mode == AutoresetMode.SAME_STEP else 700  # that one has reset itself
    np.testing.assert_array_equal(host.reset_one(1, seed=7), [first])
    observations, _, terminated, truncated = host.step([0, 1])
    np.testing.assert_array_equal(observations, [[103], [first + 1]])
    np.testing.assert_array_equal(terminated, [True, False])
    np.testing.assert_array_equal(truncated, [False, False])
    assert host.stepped.all()
    host.reset_one(0, seed=8)
    observations, *_ = host.step([0, 1])
    assert observations[1] == first + 2
    env.close()


def test_a_vector_environment_that_only_resets_on_the_next_step_says_which_step_was_lost() -> None:
    host = HostEnvironment(CountTogether())
    np.testing.assert_array_equal(host.reset([4, 9]), [[400], [500]])  # one seed for both
    for _ in range(3):
        observations, _, terminated, _ = host.step([0, 0])
        assert host.stepped.all()
    np.testing.assert_array_equal(observations, [[403], [503]])
    np.testing.assert_array_equal(terminated, [True, False])
    host.reset_one(0, seed=1)
    observations, _, terminated, _ = host.step([0, 0])
    np.testing.assert_array_equal(host.stepped, [False, True])
    np.testing.assert_array_equal(observations, [[-100], [504]])
    assert not terminated.any()
    observations, *_ = host.step([0, 0])
    assert host.stepped.all()
    np.testing.assert_array_equal(observations, [[-99], [505]])


def test_gymnasiums_own_vectorised_cartpole_can_be_used() -> None:
    host = HostEnvironment(gymnasium.make_vec("CartPole-v1", num_envs=3))
    current = host.reset([0, 0, 0])
    ends = lost = 0
    for _ in range(60):
        after, rewards, terminated, truncated = host.step(np.ones(3, int))
        np.testing.assert_array_equal(rewards, host.stepped)  # 1 a step, 0 for a reset
        lost += int((~host.stepped).sum())
        np.testing.assert_array_equal(np.abs(after[~host.stepped]) < 0.05, True)
        for i in np.flatnonzero(terminated | truncated):
            assert abs(after[i, 2]) > 0.2
            ends += 1
            current[i] = host.reset_one(i, seed=0)
    assert ends >= 9
    assert ends - 3 <= lost <= ends


def test_separate_environments_are_reset_when_told_and_have_their_seeds() -> None:
    host = HostEnvironment("CartPole-v1", n_envs=2)
    expected = [gymnasium.make("CartPole-v1").reset(seed=seed)[0] for seed in (3, 4, 5)]
    np.testing.assert_array_equal(host.reset([3, 4]), expected[:2])
    done = np.zeros(2, bool)
    while not done.any():
        observations, _, terminated, truncated = host.step([1, 0])
        done = terminated | truncated
    assert np.abs(observations[done, 2]).max() > 0.2
    np.testing.assert_array_equal(host.reset_one(int(done.argmax()), seed=5), expected[2])


def test_truncation_is_not_termination() -> None:
    host = HostEnvironment("tsallax/Reacher-v5", actions=3)
    host.reset([0])
    for step in range(50):
        _, _, terminated, truncated = host.step([4])
        assert not terminated[0]
        assert truncated[0] == (step == 49)


def test_discrete_observations_are_one_hot_and_actions_start_at_their_start() -> None:
    host = HostEnvironment("FrozenLake-v1", is_slippery=False)
    assert host.observation_size == 16
    assert host.reset([0])[0].argmax() == 0
    observations, *_ = host.step([2])
    np.testing.assert_array_equal(observations[0], np.eye(16)[1])
    env = Count()
    host = HostEnvironment(env)
    host.reset([0])
    host.step([0])
    host.step([2])
    assert env.taken == [-1, 1]


def test_box_actions_are_rows_of_the_table() -> None:
    host = HostEnvironment("Pendulum-v1", actions=5)
    assert host.n_actions == 5
    assert host.discretize is not None
    np.testing.assert_array_equal(host.discretize.table[:, 0], [-2, -1, 0, 1, 2])
    assert (host.action_low, host.action_high) == ((-2.0,), (2.0,))
    host.reset([0])
    env = gymnasium.make("Pendulum-v1")
    env.reset(seed=0)
    np.testing.assert_allclose(host.step([3])[0][0], env.step(np.array([1.0], np.float32))[0])


def test_continuous_actions_are_real_vectors() -> None:
    host = HostEnvironment("tsallax/Reacher-v5", continuous=True)
    assert host.n_actions is host.discretize is None
    assert host.action_low == (-1.0, -1.0)
    host.reset([0])
    _, rewards, *_ = host.step([[0.5, -1.0]])
    assert -2 < rewards[0] < -1.25


def test_observations_of_any_shape_are_flattened_into_a_new_array() -> None:
    class Picture(Count):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = Box(0, 255, (2, 3), np.uint8)
            self.buffer = np.zeros((2, 3), np.uint8)

        def observation(self) -> Any:
            self.buffer += 1
            return self.buffer

    host = HostEnvironment(Picture())
    first = host.reset([0])
    host.step([0])
    assert first.shape == (1, 6)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, 1)


@pytest.mark.parametrize("name", OURS)
def test_the_registered_environments_pass_gymnasiums_check(name: str) -> None:
    envs.register()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of bounds, which are as Gymnasium's own
        env = gymnasium.make(name, render_mode="rgb_array")
        check_env(env.unwrapped)
    assert env.spec.max_episode_steps == envs.jax_environment(name).limit  # type: ignore[union-attr]
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.shape[2] == 3
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 50
    env.step(env.action_space.high)
    assert (env.render() != picture).any()


@pytest.mark.parametrize("name", ["InvertedPendulum-v5", "Reacher-v5"])
def test_the_registered_environments_have_gymnasiums_spaces(name: str) -> None:
    pytest.importorskip("mujoco")
    theirs, ours = gymnasium.make(name), envs.gymnasium.make(f"tsallax/{name}")
    assert ours.action_space == theirs.action_space
    assert ours.observation_space.shape == theirs.observation_space.shape
    assert ours.metadata["render_fps"] == theirs.metadata["render_fps"]


def test_another_step_limit_may_be_asked_for() -> None:
    for limit in (3, 70):
        host = HostEnvironment("tsallax/Reacher-v5", actions=3, max_episode_steps=limit)
        assert host.limit == limit
        host.reset([0])
        ends = [host.step([4])[3][0] for _ in range(limit)]
        assert ends.index(True) == limit - 1


def test_frames_are_pictures() -> None:
    host = HostEnvironment("tsallax/Reacher-v5", actions=3, render_mode="rgb_array")
    host.reset([0])
    assert host.frame().shape == (360, 360, 3)
    assert host.frame().dtype == np.uint8


def spaced(observations: Any = None, actions: Any = None) -> Any:
    env = Count()
    env.observation_space = observations or env.observation_space
    env.action_space = actions or env.action_space
    return env


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("CartPoole-v1", {}, "CartPoole-v1: .*did you mean CartPole-v1"),
        ("ALE/Pong-v5", {}, "ALE/Pong-v5: needs the Arcade Learning Environment: pip install ale"),
        ("CartPole-v1", {"actions": 3}, "has 2 actions of its own; leave actions=3 out"),
        ("CartPole-v1", {"n_envs": 0}, "n_envs: 0, needs at least 1"),
        (
            "CartPole-v1",
            {"continuous": True},
            "its actions are numbers, not real vectors; use DeepQ",
        ),
        ("CartPole-v1", {"wheels": 4}, "unexpected keyword argument 'wheels'"),
        ("Pendulum-v1", {}, "its actions are continuous, in 1 dimension; say how many levels"),
        ("Pendulum-v1", {"actions": 1}, "Pendulum-v1: actions: 1 levels in dimension 0, needs"),
        ("Pendulum-v1", {"actions": 3, "continuous": True}, "actions=3 makes no sense with"),
        ("Blackjack-v1", {}, "Tuple observations are not supported; wrap it with gymnasium"),
        (spaced(Dict(a=Discrete(2))), {}, "Count: Dict observations are not supported; wrap it"),
        (spaced(Sequence(Discrete(2))), {}, "Sequence observations are not supported; only Box"),
        (spaced(Box(0, 1, (0,))), {}, "its observations are empty"),
        (spaced(None, MultiDiscrete([2, 2])), {}, "MultiDiscrete actions are not supported"),
        (spaced(None, Box(0, 5, (1,), np.int32)), {"actions": 2}, "a Box of int32"),
        (spaced(None, Box(-1, np.inf, (1,))), {"actions": 2}, "Count: action dimension 0: bounds"),
        (spaced(), {"n_envs": 2}, "n_envs: only for an environment given by its id"),
        (spaced(), {"render_mode": "rgb_array"}, "render_mode: only for an environment given"),
        (3, {}, "3: neither an id nor a Gymnasium environment"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused_in_one_line(env: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        HostEnvironment(env, **options)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_vector_environment_must_say_how_it_resets_itself() -> None:
    env = CountTogether()
    env.metadata = {}
    with pytest.raises(InvalidInput, match="CountTogether: does not say how it resets itself"):
        HostEnvironment(env)


def test_drawing_needs_a_render_mode_and_what_it_draws_with() -> None:
    with pytest.raises(InvalidInput, match="CartPole-v1: give it render_mode='rgb_array'"):
        HostEnvironment("CartPole-v1").frame()
    host = HostEnvironment("tsallax/Reacher-v5", actions=3, render_mode="rgb_array")
    with pytest.raises(InvalidInput, match="cannot draw it: ") as refusal:
        host.frame()
    assert "\n" not in str(refusal.value)


def test_seeds_are_one_per_environment() -> None:
    with pytest.raises(InvalidInput, match="seeds: 1 for 2 environments"):
        HostEnvironment("CartPole-v1", n_envs=2).reset([0])


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("gymnasium", "Reacher-v5: needs Gymnasium: pip install gymnasium"),
        ("mujoco", "Reacher-v5: needs MuJoCo: pip install 'tsallax[mujoco]', or use tsallax/Reac"),
    ],
)
def test_what_is_not_installed_is_named(missing: str, message: str) -> None:
    program = f"""
import sys
sys.modules[{missing!r}] = None
from tsallax import envs
assert envs.jax_environment("Reacher-v5") is envs.Reacher
try:
    envs.HostEnvironment("Reacher-v5", actions=3)
except ValueError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip().startswith(message), run.stderr
    assert run.stdout.count("\n") == 1


def test_the_environments_are_imported_without_gymnasium() -> None:
    program = """
import sys
from tsallax.envs import Discretize, InvertedPendulum, MultiGoal, Reacher
assert not {"gymnasium", "mujoco", "matplotlib"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
