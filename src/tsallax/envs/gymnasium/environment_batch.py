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

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tsallax.envs.action_mask import ALL
from tsallax.envs.gymnasium import contract
from tsallax.errors import InvalidInput

MASK = "action_mask"
"""The entry of an info that says which actions the state allows."""


class StepResult(NamedTuple):
    """The result of a step; `stepped` is False where an environment only reset itself."""

    observations: Any
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    stepped: NDArray[np.bool_]
    masks: Sequence[Any]
    """The mask of each observation as the environment gives it; None where it gives none."""


class SeparateEnvironments:
    """Single environments, each reset by `restart`.

    With `action_mask`, a function of an environment, masks are its values and not in the infos.
    """

    def __init__(
        self,
        name: str,
        environments: Sequence[Any],
        action_mask: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name = name
        self.environments = list(environments)
        self.size = len(self.environments)
        self._action_mask = action_mask
        self._stepped = np.ones(self.size, np.bool_)

    def reset(self, seeds: Sequence[int]) -> tuple[Any, Sequence[Any]]:
        """Start an episode in every environment; return the first observations and masks."""
        pairs = [self.restart(i, seed) for i, seed in enumerate(seeds)]
        return [seen for seen, _ in pairs], [mask for _, mask in pairs]

    def step(self, actions: Any) -> StepResult:
        """Take one action in every environment."""
        pairs = zip(self.environments, actions, strict=True)
        results = [contract.step(self.name, env, action) for env, action in pairs]
        observations, rewards, terminated, truncated, infos = zip(*results, strict=True)
        earned = np.array([contract.reward(self.name, reward) for reward in rewards])
        ended = contract.flags(self.name, "terminated", terminated, self.size)
        cut = contract.flags(self.name, "truncated", truncated, self.size)
        masks = [self._mask(i, infos[i], bool(ended[i])) for i in range(self.size)]
        return StepResult(observations, earned, ended, cut, self._stepped, masks)

    def restart(self, i: int, seed: int) -> tuple[Any, Any]:
        """Start a new episode in environment i; return the first observation and mask."""
        observation, info = contract.reset(self.name, self.environments[i], seed=seed)
        return observation, self._mask(i, info, False)

    def _mask(self, i: int, info: Mapping[str, Any], terminal: bool) -> Any:
        """The mask of a state; the function is not asked about terminal ones."""
        if self._action_mask is None:
            return info.get(MASK)
        return None if terminal else self._action_mask(self.environments[i])


class VectorEnvironment:
    """A vector environment with any of the three autoreset modes; see `SeparateEnvironments`."""

    def __init__(self, name: str, environment: Any) -> None:
        from gymnasium.spaces import Dict, Tuple
        from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorWrapper
        from gymnasium.wrappers.vector import NormalizeObservation

        self.name = name
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
        """Whether each environment has a seed of its own."""
        self._resets_one = self._separate
        """Whether one can be reset alone, which a wrapper may refuse."""
        while isinstance(environment, VectorWrapper):
            self._resets_one &= not isinstance(environment, NormalizeObservation)
            environment = environment.env
        self._current: Any = None
        self._masks: Sequence[Any] = [None] * self.size
        self._resetting = np.zeros(self.size, np.bool_)

    def reset(self, seeds: Sequence[int]) -> tuple[Any, Sequence[Any]]:
        seed = list(seeds) if self._separate else seeds[0]
        self._resetting[:] = False
        observations, infos = contract.reset(self.name, self.environment, seed=seed)
        self._current, self._masks = self._singles(observations), _masks(infos, self.size)
        return self._current, self._masks

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
        results = contract.step(self.name, self.environment, self._together(actions))
        after, rewards, terminated, truncated, infos = results
        self._current = after = self._singles(after)
        self._masks = masks = _masks(infos, self.size)
        stepped = ~self._resetting
        ended = contract.flags(self.name, "terminated", terminated, self.size)
        cut = contract.flags(self.name, "truncated", truncated, self.size)
        over = ended | cut
        if self._mode == "SameStep" and over.any():
            last, last_masks = infos["final_obs"], _masks(infos.get("final_info", {}), self.size)
            after = [last[i] if over[i] else after[i] for i in range(self.size)]
            masks = [last_masks[i] if over[i] else masks[i] for i in range(self.size)]
        if self._mode == "NextStep":
            self._resetting = over
        earned = contract.rewards(self.name, rewards, self.size)
        return StepResult(after, earned, ended, cut, stepped, masks)

    def restart(self, i: int, seed: int) -> tuple[Any, Any]:
        """Start a new episode in environment i; return the first observation and mask.

        A NextStep environment that cannot reset one alone returns the last observation, with any
        action allowed: the first one of the new episode is that of the next step.
        """
        if self._mode == "Disabled" or (self._mode == "NextStep" and self._resets_one):
            chosen = np.arange(self.size) == i
            seeds: Any = [seed if c else None for c in chosen] if self._separate else seed
            arguments = {"seed": seeds, "options": {"reset_mask": chosen}}
            observations, infos = contract.reset(self.name, self.environment, **arguments)
            self._current = self._singles(observations)
            self._resetting &= ~chosen
            return self._current[i], _masks(infos, self.size)[i]
        return self._current[i], ALL if self._resetting[i] else self._masks[i]


def _masks(infos: Mapping[str, Any], n: int) -> list[Any]:
    """The mask of each of n environments in the infos of a vector environment."""
    stacked, present = infos.get(MASK), infos.get(f"_{MASK}")
    if stacked is None:
        return [None] * n
    return [_entry(stacked, i) if present is None or present[i] else None for i in range(n)]


def _entry(stacked: Any, i: int) -> Any:
    """The entry of one environment in an info of a vector environment."""
    if isinstance(stacked, Mapping):
        added = {f"_{key}" for key in stacked}
        return {key: _entry(value, i) for key, value in stacked.items() if key not in added}
    return tuple(_entry(x, i) for x in stacked) if isinstance(stacked, tuple) else stacked[i]
