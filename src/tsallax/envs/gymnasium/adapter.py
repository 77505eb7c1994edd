"""`HostEnvironment`: any Gymnasium environment as a Q learner wants it.

Observations are vectors of float32, actions are numbers; termination and truncation are told
apart, the observation that ended an episode is the one returned, and nothing resets by itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax.envs.discretize import Discretize
from tsallax.envs.gymnasium.batches import Episodes, Singles, Step, Vector
from tsallax.envs.gymnasium.making import gymnasium_module, make, one_line
from tsallax.envs.gymnasium.spaces import (
    action_bounds,
    action_decoder,
    action_grid,
    observation_encoder,
)
from tsallax.errors import InvalidInput

__all__ = ["HostEnvironment", "make"]


class HostEnvironment:
    """One or several copies of a Gymnasium environment, or a vector environment.

    Args:
        env: an id, a `gymnasium.Env`, or a `gymnasium.vector.VectorEnv`.
        actions: levels of each dimension of a Box of actions, or of every dimension in turn.
        n_envs: number of copies, of an environment given by its id.
        continuous: take real action vectors, of a Box, rather than numbers.
        owned: close it when done; default: an environment that is made here, by its id.
        options: further arguments of `gymnasium.make`, such as render_mode="rgb_array".

    >>> env = HostEnvironment("CartPole-v1", n_envs=2)
    >>> env.reset([0, 1]).shape, env.n_actions, env.limit
    ((2, 4), 2, 500)
    >>> observations, rewards, terminated, truncated = env.step([0, 1])
    >>> rewards, terminated
    (array([1., 1.]), array([False, False]))
    """

    def __init__(
        self,
        env: Any,
        *,
        actions: int | Iterable[int] | None = None,
        n_envs: int = 1,
        continuous: bool = False,
        owned: bool | None = None,
        **options: Any,
    ) -> None:
        gymnasium = gymnasium_module(str(env))
        self._owned = isinstance(env, str) if owned is None else owned
        self._vector = isinstance(env, gymnasium.vector.VectorEnv)
        self.name = env if isinstance(env, str) else _name(env)
        if n_envs < 1:
            raise InvalidInput(f"n_envs: {n_envs}, needs at least 1")
        if not isinstance(env, str) and (options or n_envs != 1):
            given = ", ".join([*options, *(["n_envs"] if n_envs != 1 else [])])
            raise InvalidInput(f"{given}: only for an environment given by its id, not made yet")
        if isinstance(env, str):
            members = [make(env, **options) for _ in range(n_envs)]
        elif self._vector or isinstance(env, gymnasium.Env):
            members = [env]
        else:
            raise InvalidInput(f"{env!r}: neither an id nor a Gymnasium environment")
        self._members = members
        self._episodes: Episodes = Vector(self.name, env) if self._vector else Singles(members)
        self.n_envs = self._episodes.size
        prefix = "single_" if self._vector else ""
        observations = getattr(members[0], f"{prefix}observation_space")
        space = getattr(members[0], f"{prefix}action_space")
        self.observation_shape: tuple[int, ...] = tuple(observations.shape or ())
        self.first_observation = getattr(observations, "start", None)
        """The number of the first observation, where they are numbers."""
        self.observation_size, self._encode = observation_encoder(self.name, observations)
        self.discretize: Discretize | None = None
        self.action_low: tuple[float, ...] | None = None
        self.action_high: tuple[float, ...] | None = None
        if not continuous:
            self.discretize = action_grid(self.name, space, actions)
        elif actions is not None:
            raise InvalidInput(
                f"{self.name}: actions={actions} makes no sense with continuous=True"
            )
        if continuous or self.discretize is not None:
            low, high = action_bounds(self.name, space)
            self.action_low, self.action_high = tuple(low.tolist()), tuple(high.tolist())
        self.first_action = int(getattr(space, "start", 0))
        self.action_shape: tuple[int, ...] = tuple(space.shape or ())
        self._decode = action_decoder(space, self.discretize)
        self.n_actions: int | None = None
        if not continuous:
            self.n_actions = int(space.n) if self.discretize is None else len(self.discretize)
        spec = getattr(members[0], "spec", None)
        self.limit: int | None = getattr(spec, "max_episode_steps", None)
        self.stepped: NDArray[np.bool_] = np.ones(self.n_envs, np.bool_)

    def reset(self, seeds: Sequence[int]) -> NDArray[np.float32]:
        """Start an episode in every environment; give the observations, (n_envs, size)."""
        if len(seeds) != self.n_envs:
            raise InvalidInput(f"seeds: {len(seeds)} for {self.n_envs} environments")
        self.stepped = np.ones(self.n_envs, np.bool_)
        return self._seen(self._episodes.reset([int(seed) for seed in seeds]))

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Take an action in every environment: next observations, rewards, terminated, truncated.

        An environment whose episode ended needs `reset_one` before the next step. `stepped` then
        is True where the action was taken; False can only be in a vector environment that spends
        a step on resetting itself, and there it is no transition.
        """
        result: Step = self._episodes.step(self._decode(np.asarray(actions)))
        self.stepped = result.stepped
        if not np.isfinite(result.rewards).all():
            raise InvalidInput(f"{self.name}: gave the reward {_odd(result.rewards)}")
        return self._seen(result.observations), result.rewards, result.terminated, result.truncated

    def reset_one(self, i: int, seed: int) -> NDArray[np.float32]:
        """Start a new episode in environment i; give its first observation, (size,).

        A vector environment that resets itself has its own seeds, and leaves this one unused.
        """
        first: NDArray[np.float32] = self._seen([self._episodes.restart(i, int(seed))])[0]
        return first

    def _seen(self, observations: Any) -> NDArray[np.float32]:
        """Observations as vectors, (n, size), refused where they are not finite."""
        vectors = self._encode(observations)
        if not np.isfinite(vectors).all():
            raise InvalidInput(f"{self.name}: an observation holds {_odd(vectors)} (in float32)")
        return vectors

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the (first) environment says of itself, such as its `render_fps`."""
        found: Mapping[str, Any] = self._members[0].metadata
        return found

    def frame(self) -> NDArray[np.uint8]:
        """Draw the (first) environment, made with render_mode="rgb_array": (height, width, 3)."""
        if self._members[0].render_mode not in ("rgb_array", "rgb_array_list"):
            raise InvalidInput(f"{self.name}: give it render_mode='rgb_array' to draw it")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the error says it in one line
                picture = self._members[0].render()
        except Exception as error:  # each library has its own for a missing display
            mujoco = "mujoco" in type(self._members[0].unwrapped).__module__
            remedy = (
                "; without a display, set MUJOCO_GL=egl, or MUJOCO_GL=osmesa, and install its "
                "library, such as with: apt-get install libegl1 libosmesa6"
                if mujoco
                else ""
            )
            raise InvalidInput(f"{self.name}: cannot draw it: {one_line(error)}{remedy}") from None
        if isinstance(picture, list | tuple):
            picture = picture[0 if self._vector else -1]
        return np.asarray(picture, np.uint8)

    def close(self) -> None:
        """Close the environments, but for one that was given by who still may need it."""
        for member in self._members if self._owned else []:
            member.close()


def _odd(numbers: NDArray[Any]) -> float:
    """The first that is not finite."""
    return float(numbers[~np.isfinite(numbers)][0])


def _name(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(getattr(spec, "id", None) or type(getattr(env, "unwrapped", env)).__name__)
