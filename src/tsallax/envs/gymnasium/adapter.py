"""`GymnasiumAdapter`: any Gymnasium environment with the interface that learners use.

Observations are in the form in which agents store them (`ObservationEncoding`), actions are numbers
(`ActionFormat`); termination and truncation are separate, a step returns the true last observation
of an episode, and environments do not reset themselves.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.envs.action_format import ActionFormat
from tsallax.envs.discretize import Discretize
from tsallax.envs.gymnasium import spaces
from tsallax.envs.gymnasium.environment_batch import SeparateEnvironments, VectorEnvironment
from tsallax.envs.gymnasium.gymnasium_make import import_gymnasium, make, one_line
from tsallax.envs.observation_encoding import ObservationEncoding
from tsallax.errors import InvalidInput


class GymnasiumAdapter:
    """One or several copies of a Gymnasium environment, or a vector environment.

    Args:
        env: an id, a `gymnasium.Env`, or a `gymnasium.vector.VectorEnv`.
        actions: number of levels in every dimension of a Box of actions, or a list of numbers.
        n_envs: number of copies, of an environment given by its id.
        continuous: take real action vectors of a Box rather than integers, and give observations
            as vectors.
        factored: number actions in each dimension; default: except for Discrete and a Box of one or
            two dimensions.
        owned: whether `close` closes it; default: if it was given by its id.
        options: further arguments of `gymnasium.make`, such as {"render_mode": "rgb_array"}.

    >>> env = GymnasiumAdapter("CartPole-v1", n_envs=2)
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
        factored: bool | None = None,
        owned: bool | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        gymnasium = import_gymnasium(str(env))
        self._owned = isinstance(env, str) if owned is None else owned
        self._vector = isinstance(env, gymnasium.vector.VectorEnv)
        self.name = env if isinstance(env, str) else _name(env)
        n_envs = checks.count("n_envs", n_envs)
        if not isinstance(env, str) and (options or n_envs != 1):
            given = ", ".join([*(options or ()), *(["n_envs"] if n_envs != 1 else [])])
            raise InvalidInput(f"{given}: only for an environment given by its id, not made yet")
        if isinstance(env, str):
            members = [make(env, options) for _ in range(n_envs)]
        elif self._vector or isinstance(env, gymnasium.Env):
            members = [env]
        else:
            raise InvalidInput(f"{env!r}: neither an id nor a Gymnasium environment")
        self._members = members
        self._batch: VectorEnvironment | SeparateEnvironments = (
            VectorEnvironment(self.name, env) if self._vector else SeparateEnvironments(members)
        )
        self.n_envs = self._batch.size
        prefix = "single_" if self._vector else ""
        observations, actions_of = (
            getattr(members[0], f"{prefix}{what}_space", None) for what in ("observation", "action")
        )
        seen = spaces.observation_space(self.name, observations)
        self.encoding = ObservationEncoding(seen, flat=continuous)
        """The form of its observations."""
        if continuous and self.encoding.is_image:
            problem = "its observations are images, which DDPG cannot learn from; use DeepQ"
            raise InvalidInput(problem, source=self.name)
        space = spaces.action_space(self.name, actions_of)
        try:
            self.action = ActionFormat.of(space, actions, continuous=continuous, factored=factored)
        except InvalidInput as error:
            raise error.of(self.name) from None
        spec = getattr(members[0], "spec", None)
        self.limit: int | None = getattr(spec, "max_episode_steps", None)
        self.stepped: NDArray[np.bool_] = np.ones(self.n_envs, np.bool_)

    @property
    def observation_size(self) -> int:
        """The length of a vector, the number of integers, or the number of bytes of an image."""
        return self.encoding.format.size

    @property
    def n_actions(self) -> int | None:
        """The number of actions, or of all choices of factored ones; None for real ones."""
        return self.action.n_actions

    @property
    def discretize(self) -> Discretize | None:
        """The grid over a Box of actions."""
        return self.action.discretize

    def reset(self, seeds: Sequence[int]) -> NDArray[Any]:
        """Start an episode in every environment; return the observations, (n_envs, ...)."""
        if len(seeds) != self.n_envs:
            raise InvalidInput(f"seeds: {len(seeds)} for {self.n_envs} environments")
        self.stepped = np.ones(self.n_envs, np.bool_)
        return self._stored(self._batch.reset([int(seed) for seed in seeds]))

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Take an action in every environment: next observations, rewards, terminated, truncated.

        An environment whose episode ended needs `reset_one` before the next step. Afterwards
        `stepped` is True where the action was taken; it is False where a vector environment used
        the step to reset itself, which is not a transition.
        """
        results = self._batch.step(self.action.decode(actions))
        observations, rewards, terminated, truncated, self.stepped = results
        if not np.isfinite(rewards).all():
            problem = f"returned the reward {_first_not_finite(rewards)}"
            raise InvalidInput(problem, source=self.name)
        return self._stored(observations), rewards, terminated, truncated

    def reset_one(self, i: int, seed: int) -> NDArray[Any]:
        """Start a new episode in environment i; return its first observation.

        A vector environment that resets itself has its own seeds and ignores this one.
        """
        first: NDArray[Any] = self._stored([self._batch.restart(i, int(seed))])[0]
        return first

    def _stored(self, observations: Any) -> NDArray[Any]:
        """Observations as they are stored, (n, ...), which must be finite."""
        try:
            stored = self.encoding.encode(observations)
        except InvalidInput as error:
            raise InvalidInput(
                f"returned an observation {error.problem}", source=self.name
            ) from None
        if stored.dtype.kind == "f" and not np.isfinite(stored).all():
            problem = f"an observation contains {_first_not_finite(stored)} (float32)"
            raise InvalidInput(problem, source=self.name)
        return stored

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the (first) environment, such as `render_fps`."""
        found: Mapping[str, Any] = self._members[0].metadata
        return found

    def frame(self) -> NDArray[np.uint8]:
        """An image (height, width, 3) of the (first) environment, with render_mode="rgb_array"."""
        if self._members[0].render_mode not in ("rgb_array", "rgb_array_list"):
            remedy = ("options", "{'render_mode': 'rgb_array'}")
            raise InvalidInput("cannot be drawn", source=self.name, add=remedy)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the error below includes them
                picture = self._members[0].render()
        except Exception as error:  # libraries raise exceptions of any type
            problem = f"cannot draw it: {one_line(error)}"
            if "mujoco" in type(self._members[0].unwrapped).__module__:
                problem += (
                    "; without a display, set MUJOCO_GL=egl, or MUJOCO_GL=osmesa, and install its "
                    "library, such as with: apt-get install libegl1 libosmesa6"
                )
            raise InvalidInput(problem, source=self.name) from None
        if isinstance(picture, list | tuple):
            picture = picture[0 if self._vector else -1]
        return np.asarray(picture, np.uint8)

    def close(self) -> None:
        """Close the environments that are owned."""
        for member in self._members if self._owned else []:
            member.close()


def _first_not_finite(numbers: NDArray[Any]) -> float:
    """The first number that is not finite."""
    return float(numbers[~np.isfinite(numbers)][0])


def _name(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(getattr(spec, "id", None) or type(getattr(env, "unwrapped", env)).__name__)
