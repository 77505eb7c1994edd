"""Small Gymnasium environments that count their steps, for tests of adapters and learners."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv


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
        self.taken.append(action if isinstance(action, tuple | dict) else int(action))
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


def spaced(observations: Any = None, actions: Any = None) -> Any:
    env = Count()
    env.observation_space = observations or env.observation_space
    env.action_space = actions or env.action_space
    return env
