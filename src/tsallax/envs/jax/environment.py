"""`Environment`: the interface of an environment written in JAX.

An environment is data and three pure functions of unbatched arguments, for `jax.vmap` and
`jax.lax.scan`. There is no automatic reset: `step` returns the last observation of an episode with
`terminated` or `truncated`, and the caller resets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from jax import Array
from jax.typing import ArrayLike

from tsallax.envs.jax.canvas import Picture

State: TypeAlias = Any
"""A named tuple of arrays, among them `step`, the number of steps taken so far (int32)."""

EnvironmentStep: TypeAlias = tuple[State, Array, Array, Array, Array]
"""state, observation, reward, terminated (by the task), truncated (by the step limit)."""


@dataclass(frozen=True)
class Environment:
    """An environment in JAX: usable as a static argument of `jax.jit`.

    >>> import jax
    >>> from tsallax.envs import Reacher
    >>> state = Reacher.reset(jax.random.key(0))
    >>> state, observation, reward, terminated, truncated = Reacher.step(state, [1.0, -1.0])
    >>> observation.shape, bool(reward < 0), bool(terminated), bool(truncated)
    ((10,), True, False, False)
    """

    name: str
    """The id of the Gymnasium environment it equals."""
    observation_size: int
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    limit: int
    """The number of steps after which an episode is truncated."""
    reset: Callable[[ArrayLike], State]
    """reset(key): draws the first state of an episode."""
    observe: Callable[[State], Array]
    """observe(state): the observation vector."""
    step: Callable[[State, ArrayLike], EnvironmentStep]
    """step(state, action): takes a real action vector, clipped to its bounds."""
    draw: Callable[[State], Picture] | None = None
    """draw(state): the picture of a state."""
    frames_per_second: int = 30
    """The number of pictures that make a second."""

    @property
    def action_size(self) -> int:
        """The number of dimensions of an action."""
        return len(self.action_low)

    def __repr__(self) -> str:
        return f"Environment({self.name!r})"
