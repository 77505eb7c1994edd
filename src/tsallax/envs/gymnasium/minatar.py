"""The games of MinAtar as Gymnasium environments, by the JAX implementations of gymnax.

MinAtar (Young and Tian, 2019) has five Atari games on a grid of ten by ten cells, one channel for
each kind of object. As there, an action is replaced by the one before with probability 0.1, which
gymnax (Apache License 2.0) leaves out; as in gymnax, an episode is cut off after 1,000 steps, in
Freeway after 2,500. The ids are `tsallax/MinAtar-Breakout-v0` and so on, registered by
`envs.gymnasium.registration`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.errors import InvalidInput

GAMES: Mapping[str, int] = {
    "Asterix": 1000,
    "Breakout": 1000,
    "Freeway": 2500,
    "Seaquest": 1000,
    "SpaceInvaders": 1000,
}
"""The games, with the steps after which an episode is truncated."""
COLOURS = np.array(
    [
        (0, 114, 178), (213, 94, 0), (230, 159, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233),
        (240, 228, 66), (120, 120, 120), (255, 255, 255), (150, 75, 0),
    ],
    np.uint8,
)  # fmt: skip
"""The colours of the channels in pictures."""
PIXELS = 32
"""The side of a cell in pictures."""

Image = NDArray[np.uint8]


class MinAtarEnv(gymnasium.Env[Image, np.int64]):
    """A game of MinAtar; it runs on the CPU.

    An observation is an image of bytes, (10, 10, channels), with 255 where an object is. Made by
    `gymnasium.make`, the step limit is left to Gymnasium's `TimeLimit`.

    Args:
        game: a name of `GAMES`.
        sticky: the probability that the action before is taken again instead.
        render_mode: "rgb_array" to draw.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(self, game: str, sticky: float = 0.1, render_mode: str | None = None) -> None:
        if render_mode not in (None, "rgb_array"):
            raise InvalidInput(f"{game}: unknown render_mode {render_mode!r}: choose 'rgb_array'")
        self.render_mode = render_mode
        probability = checks.probability("sticky", sticky)
        self._reset, self._step, n_actions, shape = _compiled(game, probability)
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(n_actions)
        self._cpu = jax.local_devices(backend="cpu")[0]
        self._state: Any = None
        self._image: Image = np.zeros(shape, np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Image, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed, options=options)
        with jax.default_device(self._cpu):
            key = jax.random.PRNGKey(int(self.np_random.integers(2**31)))
        self._state, image = self._reset(jax.device_put(key, self._cpu))
        self._image = np.array(image)
        return self._image.copy(), {}

    def step(self, action: Any) -> tuple[Image, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        if self._state is None:
            raise InvalidInput("MinAtar: call reset() before step()")
        self._state, image, reward, terminated = self._step(self._state, np.int32(action))
        self._image = np.array(image)
        return self._image.copy(), float(reward), bool(terminated), False, {}

    def render(self) -> Image | None:  # type: ignore[override]
        """Draw the cells, each in the colour of the last channel that has an object there."""
        if self.render_mode is None:
            return None
        seen = self._image > 0
        last = seen.shape[-1] - 1 - np.argmax(seen[..., ::-1], -1)
        cells = np.where(seen.any(-1, keepdims=True), COLOURS[last], np.uint8(0))
        return cells.repeat(PIXELS, 0).repeat(PIXELS, 1)


@cache
def _compiled(game: str, sticky: float) -> tuple[Any, Any, int, tuple[int, ...]]:
    """`reset` and `step` of a game, its number of actions and the shape of its observations."""
    try:
        import gymnax
    except ImportError:
        problem = "needs gymnax: pip install gymnax six"  # which it imports without asking for it
        raise InvalidInput(problem, source=f"MinAtar-{game}") from None
    made, parameters = gymnax.make(f"{game}-MinAtar")

    def reset(key: Any) -> Any:
        first, later = jax.random.split(key)
        seen, state = made.reset_env(first, parameters)
        return (state, jnp.int32(0), later), _bytes(seen)

    def step(now: Any, action: Any) -> Any:
        state, last, key = now
        draw, move, later = jax.random.split(key, 3)
        taken = jnp.where(jax.random.uniform(draw) < sticky, last, action)
        seen, state, reward, terminated, _ = made.step_env(move, state, taken, parameters)
        return (state, taken, later), _bytes(seen), reward, terminated

    shape = tuple(int(n) for n in made.observation_space(parameters).shape)
    return jax.jit(reset), jax.jit(step), int(made.num_actions), shape


def _bytes(seen: Any) -> Any:
    return jnp.asarray(255 * seen, jnp.uint8)
