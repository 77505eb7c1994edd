"""Batches of Gymnasium environments with explicit resets.

`SeparateEnvironments` holds single environments, `VectorEnvironment` one of Gymnasium's vector
environments. Both return the last observation of an episode, and start the next one only when
`restart` is called.

A vector environment resets itself in one of three ways (`gymnasium.vector.AutoresetMode`):

- Disabled: `restart` resets the one environment, with its seed.
- SameStep: the step that ends an episode also starts the next one. The true last observation is
  taken from the step's `final_obs`, and `restart` returns the first one of the new episode.
- NextStep: the step after the end only resets. Gymnasium's own `SyncVectorEnv` and
  `AsyncVectorEnv` can reset one environment before that, and `restart` does. In any other vector
  environment that step is not a transition: `stepped` is False, and its observation is the first
  one of the new episode.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput


class StepResult(NamedTuple):
    """The result of a step; `stepped` is False where an environment only reset itself."""

    observations: Any
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    stepped: NDArray[np.bool_]


class SeparateEnvironments:
    """Single environments, each reset by `restart`."""

    def __init__(self, environments: Sequence[Any]) -> None:
        self.environments = list(environments)
        self.size = len(self.environments)
        self._stepped = np.ones(self.size, np.bool_)

    def reset(self, seeds: Sequence[int]) -> Any:
        """Start an episode in every environment; return the first observations."""
        return [self.restart(i, seed) for i, seed in enumerate(seeds)]

    def step(self, actions: Any) -> StepResult:
        """Take one action in every environment."""
        results = [env.step(a) for env, a in zip(self.environments, actions, strict=True)]
        observations, rewards, terminated, truncated, _ = zip(*results, strict=True)
        earned = np.array(rewards, np.float64).reshape(self.size)
        ended, cut = (np.array(x, np.bool_).reshape(self.size) for x in (terminated, truncated))
        return StepResult(observations, earned, ended, cut, self._stepped)

    def restart(self, i: int, seed: int) -> Any:
        """Start a new episode in environment i; return the first observation."""
        return self.environments[i].reset(seed=seed)[0]


class VectorEnvironment:
    """A vector environment with any of the three autoreset modes; see `SeparateEnvironments`."""

    def __init__(self, name: str, environment: Any) -> None:
        from gymnasium.spaces import Dict, Tuple
        from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

        self.environment = environment
        self.size = int(environment.num_envs)
        mode = environment.metadata.get("autoreset_mode")
        self._mode = str(getattr(mode, "value", mode))
        if self._mode not in ("Disabled", "SameStep", "NextStep"):
            raise InvalidInput(
                f"{name}: does not define how it resets itself; set its "
                "metadata['autoreset_mode'] to a gymnasium.vector.AutoresetMode"
            )
        observation, action = (
            getattr(environment, f"single_{what}_space", None) for what in ("observation", "action")
        )
        self._structured_observations = isinstance(observation, Dict | Tuple)
        self._structured_actions = isinstance(action, Dict | Tuple)
        self._separate = isinstance(environment.unwrapped, SyncVectorEnv | AsyncVectorEnv)
        self._current: Any = None
        self._resetting = np.zeros(self.size, np.bool_)

    def reset(self, seeds: Sequence[int]) -> Any:
        seed = list(seeds) if self._separate else seeds[0]
        self._resetting[:] = False
        self._current = self._singles(self.environment.reset(seed=seed)[0])
        return self._current

    def _singles(self, observations: Any) -> Any:
        """Stacked observations as a sequence of single ones."""
        if not self._structured_observations:
            return observations
        from gymnasium.vector.utils import iterate

        return list(iterate(self.environment.observation_space, observations))

    def _together(self, actions: Any) -> Any:
        """Single actions as the vector environment takes them."""
        if not self._structured_actions:
            return actions
        from gymnasium.vector.utils import concatenate, create_empty_array

        space = self.environment.single_action_space
        empty: Any = create_empty_array(space, self.size)
        return concatenate(space, actions, empty)

    def step(self, actions: Any) -> StepResult:
        after, rewards, terminated, truncated, infos = self.environment.step(
            self._together(actions)
        )
        self._current = after = self._singles(after)
        stepped = ~self._resetting
        terminated, truncated = np.array(terminated, np.bool_), np.array(truncated, np.bool_)
        ended = terminated | truncated
        if self._mode == "SameStep" and ended.any():
            last = infos["final_obs"]
            after = [last[i] if ended[i] else after[i] for i in range(self.size)]
        if self._mode == "NextStep":
            self._resetting = ended
        return StepResult(after, np.array(rewards, np.float64), terminated, truncated, stepped)

    def restart(self, i: int, seed: int) -> Any:
        """Start a new episode in environment i; return the first observation.

        A NextStep environment that cannot reset one alone returns the last observation: the first
        one of the new episode is that of the next step.
        """
        if self._mode == "Disabled" or (self._mode == "NextStep" and self._separate):
            chosen = np.arange(self.size) == i
            seeds: Any = [seed if c else None for c in chosen] if self._separate else seed
            options = {"reset_mask": chosen}
            observations, _ = self.environment.reset(seed=seeds, options=options)
            self._current = self._singles(observations)
            self._resetting &= ~chosen
        return self._current[i]
