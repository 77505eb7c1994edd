"""Where an agent lives: an environment in JAX, or one of Gymnasium on the host."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tsallax.envs.discretize import Discretize
from tsallax.envs.jax.catalogue import jax_environment
from tsallax.envs.jax.environment import Environment
from tsallax.errors import InvalidInput

if TYPE_CHECKING:
    from tsallax.envs.gymnasium.adapter import GymnasiumAdapter

BACKENDS = ("auto", "jax", "gymnasium")


@dataclass
class World:
    """An environment's name and sizes, and how to make it."""

    name: str
    observation_size: int
    observation_shape: tuple[int, ...]
    first_observation: int | None
    """The number of the first observation, where they are numbers."""
    n_actions: int | None
    """None where actions are continuous."""
    low: tuple[float, ...] | None
    high: tuple[float, ...] | None
    discretize: Discretize | None
    first_action: int
    action_shape: tuple[int, ...]
    jax: Environment | None
    n_envs: int = 1
    limit: int | None = None
    source: Any = None
    """What to make host environments from: an id or a Gymnasium environment; None if unknown."""
    options: Mapping[str, Any] = field(default_factory=dict)
    host: GymnasiumAdapter | None = None

    @cached_property
    def table(self) -> NDArray[np.float32] | None:
        """The real actions by their numbers."""
        return None if self.discretize is None else self.discretize.table.astype(np.float32)

    def encode(self, observation: Any) -> tuple[NDArray[np.float32], bool]:
        """Observations as rows of a matrix, and whether it was a single one."""
        if self.first_observation is not None:
            numbers = np.asarray(observation)
            n, first = self.observation_size, self.first_observation
            if numbers.dtype.kind not in "iu" or numbers.ndim > 1:
                raise InvalidInput(f"observation {observation!r}: {self.name} has whole numbers")
            if np.any(numbers < first) or np.any(numbers >= first + n):
                raise InvalidInput(
                    f"observation {observation!r}: not from {first} to {first + n - 1}"
                )
            return np.eye(n, dtype=np.float32)[np.atleast_1d(numbers) - first], numbers.ndim == 0
        try:
            seen = np.asarray(observation, np.float32)
        except (TypeError, ValueError):
            raise InvalidInput(
                f"observation {observation!r}: {self.name} has numbers of shape "
                f"{self.observation_shape}"
            ) from None
        if np.isnan(seen).any():
            raise InvalidInput(f"observation {observation!r}: has a number that is none (NaN)")
        single = seen.shape == self.observation_shape
        if not single and seen.shape[1:] != self.observation_shape:
            raise InvalidInput(
                f"observation of shape {seen.shape}: {self.name} has {self.observation_shape}"
            )
        return seen.reshape(-1, self.observation_size), single

    def decode(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Actions as the environment takes them."""
        if self.table is not None:
            return np.asarray(self.table[actions]).reshape(-1, *self.action_shape)
        if self.n_actions is None:
            return actions.reshape(-1, *self.action_shape)
        return actions + self.first_action

    def training(self) -> GymnasiumAdapter:
        """The host environments to learn in, made at the first call."""
        if self.host is None:
            self.host = self._make(self._known(), self.n_envs)
        return self.host

    def fresh(self, env: Any = None, **options: Any) -> GymnasiumAdapter:
        """Another host environment, to evaluate in: `env`, or one like that of training."""
        if env is not None:
            made = self._make(env, 1, **options)
            if made.n_envs != 1:
                raise InvalidInput(
                    f"{made.name}: holds {made.n_envs} environments: give a single one to "
                    "evaluate in"
                )
            return made
        source = self._known()
        if isinstance(source, str):
            return self._make(source, 1, **options)
        spec = getattr(source, "spec", None)
        if spec is None:
            raise InvalidInput(
                f"{self.name}: an environment without an id cannot be made a second time: give "
                "one to evaluate in, evaluate(env=...) and learn(eval_env=...)"
            )
        import gymnasium

        try:
            if isinstance(source, gymnasium.vector.VectorEnv):
                again = _one_of_several(source, spec, options)
            else:
                again = gymnasium.make(spec, **options)
        except Exception as error:
            reason = " ".join(str(error).split()).split(". ")[0]
            raise InvalidInput(
                f"{self.name}: cannot be made a second time ({reason}): give one to evaluate in, "
                "evaluate(env=...) and learn(eval_env=...)"
            ) from None
        return self._make(again, 1, owned=True)

    def learns_in(self, env: Any) -> bool:
        """Whether this object is the host's environment of training, or a wrapper of it."""
        if self.jax is not None or self.source is None or isinstance(self.source, str):
            return False
        return getattr(env, "unwrapped", env) is getattr(self.source, "unwrapped", self.source)

    def drawn(self) -> GymnasiumAdapter:
        """Another host environment, to be drawn: that of JAX by its registered twin."""
        if self.jax is None:
            return self.fresh(render_mode="rgb_array")
        if jax_environment(self.name) is not self.jax:
            raise InvalidInput(f"{self.name}: only environments that go by a name can be drawn")
        return self._make(f"tsallax/{self.name}", 1, render_mode="rgb_array")

    def describe(self) -> dict[str, Any]:
        """Plain data from which `revive` makes the world again."""
        grid = self.discretize
        return {
            "name": self.name,
            "observation_size": self.observation_size,
            "observation_shape": self.observation_shape,
            "first_observation": self.first_observation,
            "first_action": self.first_action,
            "action_shape": self.action_shape,
            "n_actions": self.n_actions,
            "low": self.low,
            "high": self.high,
            "levels": None if grid is None else grid.levels,
            "jax": self.jax is not None,
            "n_envs": self.n_envs,
            "limit": self.limit,
            "options": dict(self.options),
            "by_name": isinstance(self.source, str),
        }

    def _known(self) -> Any:
        if self.source is None:
            raise InvalidInput(
                f"{self.name}: this agent was saved without a way to make its environment; "
                "give it as the argument env of load"
            )
        return self.source

    def _make(
        self, source: Any, n: int, owned: bool | None = None, **options: Any
    ) -> GymnasiumAdapter:
        from tsallax.envs.gymnasium.adapter import GymnasiumAdapter

        levels = None if self.discretize is None else self.discretize.levels
        more = {**self.options, **options} if isinstance(source, str) else {}
        made = GymnasiumAdapter(
            source,
            actions=levels,
            n_envs=n if isinstance(source, str) else 1,
            continuous=self.n_actions is None,
            owned=owned,
            **more,
        )
        try:
            for name in ("observation_shape", "observation_size", "n_actions", "action_shape"):
                _require_same(made.name, name, getattr(made, name), getattr(self, name))
        except InvalidInput:
            made.close()
            raise
        return made


def _one_of_several(source: Any, spec: Any, options: Mapping[str, Any]) -> Any:
    """A single environment like those of a vector environment."""
    import gymnasium

    if isinstance(source, gymnasium.vector.VectorWrapper):
        raise InvalidInput(f"{type(source).__name__} wraps several environments, not one")
    given = dict(spec.kwargs)
    for name in ("num_envs", "vectorization_mode", "vector_kwargs"):
        given.pop(name, None)
    wrappers = given.pop("wrappers", None) or ()
    made = gymnasium.make(spec.id, **given, **options)
    for wrapper in wrappers:
        made = wrapper(made)
    return made


def world_of(
    env: Any,
    *,
    actions: int | Iterable[int] | None,
    n_envs: int,
    continuous: bool,
    backend: str,
    options: Mapping[str, Any],
) -> World:
    """The world of an id, a JAX environment or a Gymnasium environment."""
    if backend not in BACKENDS:
        raise InvalidInput(f"unknown backend {backend!r}: choose from {', '.join(BACKENDS)}")
    inside = env if isinstance(env, Environment) else None
    if options and not isinstance(env, str):
        given = ", ".join(options)
        raise InvalidInput(f"env_options {given}: only for an environment given by its id")
    try:
        json.dumps(dict(options))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"env_options must be plain data, to be saved: {error}") from None
    if inside is None and isinstance(env, str) and backend != "gymnasium" and not options:
        inside = jax_environment(env)
    if isinstance(env, Environment) and backend == "gymnasium":
        raise InvalidInput(f"{env.name}: given as an environment in JAX: leave backend out")
    if options and backend == "jax":
        given = ", ".join(options)
        raise InvalidInput(f"env_options {given}: only for an environment of Gymnasium")
    if inside is None and backend == "jax":
        raise InvalidInput(f"{env}: there is no such environment in JAX: leave backend out")
    if inside is not None:
        if not continuous and actions is None:
            raise InvalidInput(
                f"{inside.name}: its actions are real numbers: give `actions`, such as actions=31"
            )
        grid = None
        if not continuous and actions is not None:
            grid = Discretize.of(inside.action_low, inside.action_high, actions)
        return World(
            inside.name,
            inside.observation_size,
            (inside.observation_size,),
            None,
            None if grid is None else len(grid),
            inside.action_low,
            inside.action_high,
            grid,
            0,
            (inside.action_size,),
            inside,
            n_envs,
            inside.limit,
            inside.name if jax_environment(inside.name) is inside else inside,
        )
    from tsallax.envs.gymnasium.adapter import GymnasiumAdapter

    host = GymnasiumAdapter(
        env,
        actions=actions,
        n_envs=n_envs if isinstance(env, str) else 1,
        continuous=continuous,
        **options,
    )
    return World(
        host.name,
        host.observation_size,
        host.observation_shape,
        None if host.first_observation is None else int(host.first_observation),
        host.n_actions,
        host.action_low,
        host.action_high,
        host.discretize,
        host.first_action,
        host.action_shape,
        None,
        host.n_envs,
        host.limit,
        env,
        options,
        host,
    )


def revive(about: Mapping[str, Any], env: Any = None) -> World:
    """The world that `describe` described; environments are made when they are first used.

    An id that names a module to import is not followed: a file must not choose what code runs.
    """
    name = str(about["name"])
    if env is not None:
        return _replaced(about, env)
    grid = None
    if about["levels"] is not None:
        grid = Discretize.of(about["low"], about["high"], about["levels"])
    known = bool(about["by_name"]) and ":" not in name
    inside = jax_environment(name) if about["jax"] and known else None
    source = name if known else None
    return World(
        name,
        int(about["observation_size"]),
        tuple(about["observation_shape"]),
        about["first_observation"],
        about["n_actions"],
        None if about["low"] is None else tuple(about["low"]),
        None if about["high"] is None else tuple(about["high"]),
        grid,
        int(about["first_action"]),
        tuple(about["action_shape"]),
        inside,
        int(about["n_envs"]),
        about["limit"],
        source,
        dict(about["options"]),
    )


def _replaced(about: Mapping[str, Any], env: Any) -> World:
    """The world of another environment, which must have the sizes that were described."""
    continuous = about["n_actions"] is None
    world = world_of(
        env,
        actions=about["levels"],
        n_envs=int(about["n_envs"]),
        continuous=continuous,
        backend="auto" if about["jax"] or isinstance(env, Environment) else "gymnasium",
        options=about["options"] if env == about["name"] else {},
    )
    found = json.loads(json.dumps(world.describe()))
    for key in ("observation_shape", "first_observation", "n_actions", "low", "high", "n_envs"):
        _require_same(world.name, key, found[key], json.loads(json.dumps(about[key])))
    return world


def _require_same(name: str, what: str, found: Any, expected: Any) -> None:
    """Refuse an environment that is not of the kind that the agent was made for."""
    if found != expected:
        raise InvalidInput(f"{name}: has {what} {found}, but the agent was made for {expected}")
