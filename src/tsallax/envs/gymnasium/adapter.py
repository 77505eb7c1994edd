"""`GymnasiumAdapter`: any Gymnasium environment with the interface that learners use.

Observations are in the form in which agents store them (`ObservationEncoding`), actions are numbers
(`ActionFormat`); termination and truncation are separate, a step returns the true last observation
of an episode, and environments do not reset themselves.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.envs.action_format import ActionFormat
from tsallax.envs.action_mask import mask_row
from tsallax.envs.discretize import Discretize
from tsallax.envs.gymnasium import spaces
from tsallax.envs.gymnasium.environment_batch import SeparateEnvironments, VectorEnvironment
from tsallax.envs.gymnasium.gymnasium_make import (
    import_gymnasium,
    make,
    makes_environments,
    name_of,
)
from tsallax.envs.gymnasium.wrapper_statistics import NormalizingWrappers, Statistics
from tsallax.envs.observation_encoding import ObservationEncoding
from tsallax.errors import InvalidInput, one_line
from tsallax.wording import plural


class GymnasiumAdapter:
    """One or several copies of a Gymnasium environment, or a vector environment.

    Args:
        env: an id, a function that makes an environment, a `gymnasium.Env`, or a
            `gymnasium.vector.VectorEnv`.
        actions: number of levels in every dimension of a Box of actions, or a list of numbers.
        n_envs: number of copies, of an environment given by its id or a function.
        continuous: take real action vectors of a Box rather than integers, and give observations
            as vectors.
        factored: number actions in each dimension; default: except for Discrete and a Box of one or
            two dimensions.
        masked: whether states say which actions they allow, in `info["action_mask"]`.
        action_mask: a function of a single environment that gives the mask instead.
        owned: whether `close` closes it; default: if it was made here.
        options: further arguments of `gymnasium.make`, such as {"render_mode": "rgb_array"}, or of
            the function.

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
        masked: bool = False,
        action_mask: Callable[[Any], Any] | None = None,
        owned: bool | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        gymnasium = import_gymnasium(str(env))
        made_here = makes_environments(env)
        self._owned = made_here if owned is None else owned
        self._vector = isinstance(env, gymnasium.vector.VectorEnv)
        n_envs = checks.count("n_envs", n_envs)
        if not made_here and (options or n_envs != 1):
            given = ", ".join([*(options or ()), *(["n_envs"] if n_envs != 1 else [])])
            problem = "only for an environment given by its id or a function, not made yet"
            raise InvalidInput(f"{given}: {problem}")
        if made_here:
            members = [make(env, options) for _ in range(n_envs)]
        elif self._vector or isinstance(env, gymnasium.Env):
            members = [env]
        else:
            raise InvalidInput(f"{env!r}: neither an id nor a Gymnasium environment")
        self.name = env if isinstance(env, str) else name_of(members[0])
        self._members = members
        if action_mask is not None and self._vector:
            problem = "action_mask is for single environments: give a vector environment with masks"
            raise InvalidInput(f'{problem} in its info["action_mask"]', source=self.name)
        self._batch: VectorEnvironment | SeparateEnvironments = (
            VectorEnvironment(self.name, env)
            if self._vector
            else SeparateEnvironments(self.name, members, action_mask)
        )
        self.masked = masked or action_mask is not None
        self.mask: NDArray[np.bool_] | None = None
        """The actions that each of the last observations allows, where it is `masked`."""
        self._action_mask = action_mask
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
        self._lengths = np.zeros(self.n_envs, np.int64)
        self._wrappers = NormalizingWrappers(members)
        self._before_reset: list[Statistics] | None = None

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
        self._before_reset = self._wrappers.read()
        observations, masks = self._batch.reset([int(seed) for seed in seeds])
        self._lengths[:] = 0
        stored = self._stored("reset", observations)
        self._set_masks("reset", masks, np.zeros(self.n_envs, np.bool_))
        return stored

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Take an action in every environment: next observations, rewards, terminated, truncated.

        An environment whose episode ended needs `reset_one` before the next step. Afterwards
        `stepped` is True where the action was taken; it is False where a vector environment used
        the step to reset itself, which is not a transition.
        """
        result = self._batch.step(self.action.decode(actions))
        observations, rewards, terminated, truncated, self.stepped, masks = result
        self._lengths += 1
        self._lengths *= self.stepped
        stored = self._stored("step", observations)
        if not np.isfinite(rewards).all():
            i = int(np.isfinite(rewards).argmin())
            problem = f"step returned the reward {rewards[i]}, {self._when(i)}"
            raise InvalidInput(problem, source=self.name)
        self._set_masks("step", masks, terminated)
        return stored, rewards, terminated, truncated

    def reset_one(self, i: int, seed: int) -> NDArray[Any]:
        """Start a new episode in environment i; return its first observation.

        A vector environment that resets itself has its own seeds and ignores this one.
        """
        self._before_reset = self._wrappers.read()
        observation, mask = self._batch.restart(i, int(seed))
        self._lengths[i] = 0
        first: NDArray[Any] = self._stored("reset", [observation])[0]
        if self.mask is not None:
            self.mask[i] = self._mask_row("reset", i, mask, terminal=False)
        return first

    def gives_masks(self) -> bool:
        """Whether resets give masks of actions; it resets the environments to find out."""
        with self._wrappers.held():
            _, masks = self._batch.reset([0] * self.n_envs)
        return any(mask is not None for mask in masks)

    def statistics(self, before_reset: bool = False) -> list[Statistics]:
        """The statistics of its normalising wrappers, now or before the newest reset.

        From those before the reset with which an episode began, it begins in the same way again.
        """
        found = self._before_reset if before_reset else None
        return self._wrappers.read() if found is None else found

    def set_statistics(self, statistics: Sequence[Statistics]) -> None:
        """Continue with the statistics of equal environments."""
        self._wrappers.write(statistics, self.name)

    def held_statistics(self) -> AbstractContextManager[None]:
        """A context in which they are not updated, and after which they are as before."""
        return self._wrappers.held()

    def follow_statistics(self, statistics: Sequence[Statistics]) -> None:
        """Use the statistics of the environments of training, and do not update them."""
        self._wrappers.follow(statistics, self.name)

    def try_out(self, look_for_masks: bool) -> bool:
        """Check what resets and a step return; return whether actions are masked.

        Where a seed does not determine the first observation, a warning says so.
        """
        if look_for_masks and self.action.choices is not None:
            self.masked |= self.gives_masks()
        first = self.reset([0] * self.n_envs)
        self.step(self._allowed_actions())
        if not self.statistics() and not np.array_equal(first, self.reset([0] * self.n_envs)):
            warnings.warn(
                f"{self.name}: reset(seed=0) twice gives different observations, so that no run "
                "can be repeated: call super().reset(seed=seed) and draw from self.np_random",
                stacklevel=6,
            )
        return self.masked

    def _allowed_actions(self) -> NDArray[Any]:
        """An action for each environment that its state allows."""
        choices, n = self.action.choices, self.n_envs
        if choices is None:
            low, high = self.action.space.low, self.action.space.high
            return np.tile(np.clip(np.zeros(len(low)), low, high), (n, 1))
        if self.mask is None:
            return np.zeros((n, len(choices)) if self.action.factored else n, np.int64)
        if not self.action.factored:
            return np.asarray(self.mask.argmax(1))
        parts = np.split(self.mask, np.cumsum(choices)[:-1], axis=1)
        return np.stack([part.argmax(1) for part in parts], 1)

    def _set_masks(self, method: str, masks: Sequence[Any], terminated: NDArray[np.bool_]) -> None:
        """Take over the masks of the observations that `method` returned."""
        if self.masked:
            pairs = enumerate(zip(masks, terminated, strict=True))
            rows = [self._mask_row(method, i, mask, bool(end)) for i, (mask, end) in pairs]
            self.mask = np.stack(rows)

    def _mask_row(self, method: str, i: int, mask: Any, terminal: bool) -> NDArray[np.bool_]:
        """The mask of an observation; all actions are allowed in a terminal state."""
        if terminal:
            return np.ones(self.n_actions or 0, np.bool_)
        given = 'info["action_mask"]' if self._action_mask is None else "action_mask(env)"
        when = self._when(i)
        if mask is None:
            remedy = "give one in every state, a function as action_mask, or masked=False"
            problem = f"{method} returned no {given} {when}: {remedy}"
            raise InvalidInput(problem, source=self.name)
        try:
            return mask_row(self.action, mask)
        except InvalidInput as error:
            problem = f"{given} of {method} {error.problem}, {when}"
            raise InvalidInput(problem, source=self.name) from None

    def _when(self, i: int) -> str:
        """The place of an error in the episode of environment i."""
        return f"after {plural(int(self._lengths[i]), 'step')} of an episode"

    def _stored(self, method: str, observations: Any) -> NDArray[Any]:
        """Observations that `method` returned as they are stored, (n, ...); finite numbers."""
        try:
            stored = self.encoding.encode(observations)
        except InvalidInput as error:
            problem = f"{method} returned an observation {error.problem}"
            raise InvalidInput(problem, source=self.name) from None
        if stored.dtype.kind == "f" and not np.isfinite(stored).all():
            problem = f"an observation contains {_first_not_finite(stored)} (float32)"
            if method == "step":
                problem += f", {self._when(int(np.isfinite(stored).all(1).argmin()))}"
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
