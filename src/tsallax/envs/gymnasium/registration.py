"""The JAX environments as Gymnasium environments, and MinAtar's, registered by the import of this.

`gymnasium.make("tsallax.envs.gymnasium.registration:tsallax/Reacher-v5")` imports it, as does
`tsallax.envs.register()`, after which `gymnasium.make("tsallax/Reacher-v5")` is enough.
"""

from functools import cache
from typing import Any

import gymnasium
import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax.envs.gymnasium.minatar import GAMES
from tsallax.envs.jax.canvas import Picture
from tsallax.envs.jax.catalogue import BY_ID, jax_environment
from tsallax.envs.jax.environment import Environment, State
from tsallax.errors import InvalidInput

Observation = NDArray[np.float32]


class JaxEnv(gymnasium.Env[Observation, NDArray[np.float32]]):
    """A JAX environment with Gymnasium's interface; it runs on the CPU.

    Made by `gymnasium.make`, the step limit is left to Gymnasium's `TimeLimit`.

    >>> import gymnasium
    >>> env = gymnasium.make("tsallax.envs.gymnasium.registration:tsallax/Reacher-v5")
    >>> observation, _ = env.reset(seed=0)
    >>> observation.shape, env.action_space.shape, env.spec.max_episode_steps
    ((10,), (2,), 50)
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, name: str, render_mode: str | None = None) -> None:
        environment = jax_environment(name)
        if environment is None:
            known = ", ".join(BY_ID)
            raise InvalidInput(f"is not an environment in JAX; choose from {known}", source=name)
        if render_mode not in (None, "rgb_array"):
            raise InvalidInput(f"{name}: unknown render_mode {render_mode!r}: choose 'rgb_array'")
        self.environment = environment
        self.render_mode = render_mode
        self._draw = None if render_mode is None else environment.draw
        if self._draw is None and render_mode is not None:
            raise InvalidInput("cannot be drawn: leave out render_mode", source=name)
        self.metadata = {**self.metadata, "render_fps": environment.frames_per_second}
        size = (environment.observation_size,)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, size, np.float32)
        low, high = np.array([environment.action_low, environment.action_high], np.float32)
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.state: State = None
        self._reset, self._step = _compiled(environment)
        self._cpu = jax.local_devices(backend="cpu")[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed, options=options)
        with jax.default_device(self._cpu):
            key = jax.random.PRNGKey(int(self.np_random.integers(2**31)))
        self.set_state(self._reset(jax.device_put(key, self._cpu)))
        return np.array(self.environment.observe(self.state), np.float32), {}

    def step(self, action: ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        if self.state is None:
            raise InvalidInput(f"{self.environment.name}: call reset() before step()")
        given = np.asarray(action, np.float32)
        self.state, observation, reward, terminated, cut = self._step(self.state, given)
        truncated = self.spec is None and bool(cut)
        return np.array(observation, np.float32), float(reward), bool(terminated), truncated, {}

    def set_state(self, state: State) -> None:
        """Set the state; its `step` counts towards the limit."""
        self.state = jax.device_put(state, self._cpu)

    def render(self) -> Picture | None:  # type: ignore[override]
        """Draw the state, if the environment was made with render_mode="rgb_array"."""
        if self._draw is None:
            return None
        if self.state is None:
            raise InvalidInput(f"{self.environment.name}: call reset() before render()")
        return self._draw(self.state)


@cache
def _compiled(environment: Environment) -> tuple[Any, Any]:
    return jax.jit(environment.reset), jax.jit(environment.step)


def register() -> None:
    """Register the ids "tsallax/Reacher-v5", "tsallax/MinAtar-Breakout-v0" and so on.

    >>> import gymnasium
    >>> register()
    >>> gymnasium.make("tsallax/MultiGoal-v0").spec.max_episode_steps
    50
    """
    here = "tsallax.envs.gymnasium"
    jax_made = [
        (f"tsallax/{name}", f"{here}.registration:JaxEnv", environment.limit, {"name": name})
        for name, environment in BY_ID.items()
    ]
    games = [
        (f"tsallax/MinAtar-{game}-v0", f"{here}.minatar:MinAtarEnv", limit, {"game": game})
        for game, limit in GAMES.items()
    ]
    for identity, entry_point, limit, kwargs in (*jax_made, *games):
        if identity not in gymnasium.registry:
            gymnasium.register(identity, entry_point, max_episode_steps=limit, kwargs=kwargs)


register()
