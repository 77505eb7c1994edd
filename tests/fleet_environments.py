"""Gymnasium environments for worker processes: quick to import, and with every kind of trouble."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


class Drift(gymnasium.Env):
    """A walk with noise of the episode's seed, in episodes of 5 to 9 steps; sizes of CartPole."""

    def __init__(self, trouble: str | None = None) -> None:
        self.observation_space = Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = Discrete(2)
        self.trouble = trouble
        self.episodes = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.episodes += 1
        if self.trouble == "reset" and self.episodes > 1:
            raise KeyError("no such\nlevel")
        self.t, self.end = 0, int(self.np_random.integers(5, 10))
        self.place = self.np_random.normal(size=4).astype(np.float32)
        if self.trouble == "forgetful":  # depends on what was before, not only on the seed
            self.place += np.float32(os.getpid() % 7 + self.episodes)
        return self.place.copy(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        if self.t == 4 and self.trouble == "step":
            raise ValueError("joint 3\nis broken")
        if self.t == 4 and self.trouble == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        self.place += (2 * int(action) - 1) * 0.1 + 0.1 * self.np_random.normal(size=4)
        self.place = self.place.astype(np.float32)
        nan = self.t == 4 and self.trouble == "reward"
        reward = float("nan") if nan else float(self.place[0])
        return (
            self.place.copy(),
            reward,
            self.t == self.end and self.t % 2 == 0,
            self.t == self.end,
            {},
        )


broken_step, broken_reset, broken_reward, killed, forgetful = (
    partial(Drift, trouble) for trouble in ("step", "reset", "reward", "killed", "forgetful")
)


def broken_make() -> Drift:
    raise RuntimeError("no licence")


def normalized() -> gymnasium.Env:
    return gymnasium.wrappers.NormalizeObservation(Drift())
