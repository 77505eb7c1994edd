"""`EnvironmentSpec`: the name and sizes of an agent's environment, and how to make it.

It is made from an id or an object (`make_spec`), or from the description in a file
(`from_description`).
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.envs.discretize import Discretize
from tsallax.envs.gymnasium.adapter import GymnasiumAdapter
from tsallax.envs.jax.catalogue import jax_environment
from tsallax.envs.jax.environment import Environment
from tsallax.envs.observation_format import ObservationFormat
from tsallax.errors import InvalidInput

BACKENDS = ("auto", "jax", "gymnasium")
SIZES = (
    "name", "observation_size", "observation_shape", "first_observation", "first_action",
    "action_shape", "n_actions", "n_envs", "limit",
)  # fmt: skip
"""The fields of a specification that a `GymnasiumAdapter` has as well."""


@dataclass(kw_only=True)
class EnvironmentSpec:
    """An environment's name and sizes, and how to make it."""

    name: str
    observation_size: int
    observation_shape: tuple[int, ...]
    first_observation: int | None = None
    """The first observation, where observations are integers."""
    n_actions: int | None
    """None where actions are continuous."""
    first_action: int = 0
    """The first action of the environment, where actions are integers."""
    action_shape: tuple[int, ...]
    low: tuple[float, ...] | None
    high: tuple[float, ...] | None
    discretize: Discretize | None
    """The grid that numbers real actions."""
    jax: Environment | None = None
    """The environment, where it is written in JAX."""
    n_envs: int = 1
    limit: int | None = None
    """The number of steps after which an episode is truncated."""
    source: Any = None
    """An id or an environment to make Gymnasium environments from; None where it is unknown."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `gymnasium.make`."""
    host: GymnasiumAdapter | None = None
    """The Gymnasium environments of training, once they are made."""

    @cached_property
    def table(self) -> NDArray[np.float32] | None:
        """The real actions by their numbers."""
        return None if self.discretize is None else self.discretize.table.astype(np.float32)

    @property
    def levels(self) -> Any:
        """The number of levels in each dimension of the grid of actions."""
        return None if self.discretize is None else self.discretize.levels

    @property
    def observation(self) -> ObservationFormat:
        """The form in which the agent sees observations."""
        return ObservationFormat.vector(self.observation_size)

    @property
    def choices(self) -> tuple[int, ...] | None:
        """The number of choices in each dimension of an action; None where actions are real."""
        if self.discretize is not None:
            return self.discretize.levels
        return None if self.n_actions is None else (self.n_actions,)

    @property
    def factored(self) -> bool:
        """Whether an action is chosen dimension by dimension rather than by one number."""
        return False

    @property
    def masked(self) -> bool:
        """Whether the environment says which actions it allows."""
        return False

    def encode(self, observation: Any) -> tuple[NDArray[np.float32], bool]:
        """Observations as rows of a matrix, and whether it was a single one."""
        if self.first_observation is not None:
            numbers = np.asarray(observation)
            n, first = self.observation_size, self.first_observation
            if numbers.dtype.kind not in "iu" or numbers.ndim > 1:
                raise InvalidInput(f"observation {observation!r}: {self.name} has integers")
            if np.any(numbers < first) or np.any(numbers >= first + n):
                last = first + n - 1
                raise InvalidInput(f"observation {observation!r}: not from {first} to {last}")
            rows = np.zeros((numbers.size, n), np.float32)
            rows[np.arange(numbers.size), numbers.reshape(-1) - first] = 1.0
            return rows, numbers.ndim == 0
        shape = self.observation_shape
        try:
            array = np.asarray(observation, np.float32)
        except (TypeError, ValueError):
            problem = f"{self.name} has numbers of shape {shape}"
            raise InvalidInput(f"observation {observation!r}: {problem}") from None
        if np.isnan(array).any():
            raise InvalidInput(f"observation {observation!r}: contains NaN")
        single = array.shape == shape
        if not single and array.shape[1:] != shape:
            raise InvalidInput(f"observation of shape {array.shape}: {self.name} has {shape}")
        return array.reshape(-1, self.observation_size), single

    def decode(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Actions as the environment takes them."""
        if self.table is not None:
            return np.asarray(self.table[actions]).reshape(-1, *self.action_shape)
        if self.n_actions is None:
            return actions.reshape(-1, *self.action_shape)
        return actions + self.first_action

    def training_environment(self) -> GymnasiumAdapter:
        """The Gymnasium environments to learn in, made at the first call."""
        if self.host is None:
            self.host = self._make(self._known_source(), self.n_envs)
        return self.host

    def is_training_environment(self, env: Any) -> bool:
        """Whether this object is the Gymnasium environment of training, or a wrapper of it."""
        if self.jax is not None or self.source is None or isinstance(self.source, str):
            return False
        return getattr(env, "unwrapped", env) is getattr(self.source, "unwrapped", self.source)

    def evaluation_environment(self, env: Any = None, **options: Any) -> GymnasiumAdapter:
        """A single Gymnasium environment to evaluate in: `env`, or one like that of training."""
        if env is not None:
            made = self._make(env, 1, **options)
            if made.n_envs != 1:
                problem = f"holds {made.n_envs} environments: give a single one to evaluate in"
                raise InvalidInput(problem, source=made.name)
            return made
        source = self._known_source()
        if isinstance(source, str):
            return self._make(source, 1, **options)
        remedy = "give one to evaluate in, evaluate(env=...) and learn(eval_env=...)"
        spec = getattr(source, "spec", None)
        if spec is None:
            problem = f"an environment without an id cannot be made a second time: {remedy}"
            raise InvalidInput(problem, source=self.name)
        import gymnasium

        try:
            if isinstance(source, gymnasium.vector.VectorEnv):
                again = _single_of_vector(source, spec, options)
            else:
                again = gymnasium.make(spec, **options)
        except Exception as error:
            reason = " ".join(str(error).split()).split(". ")[0]
            problem = f"cannot be made a second time ({reason}): {remedy}"
            raise InvalidInput(problem, source=self.name) from None
        return self._make(again, 1, owned=True)

    def rendered_environment(self) -> GymnasiumAdapter:
        """A Gymnasium environment that can be drawn; one in JAX by its registered equivalent."""
        if self.jax is None:
            return self.evaluation_environment(render_mode="rgb_array")
        if jax_environment(self.name) is not self.jax:
            raise InvalidInput("only environments with an id can be drawn", source=self.name)
        return self._make(f"tsallax/{self.name}", 1, render_mode="rgb_array")

    def describe(self) -> dict[str, Any]:
        """Plain data, for a file, from which `from_description` makes an equal specification."""
        return {
            **{name: getattr(self, name) for name in (*SIZES, "low", "high")},
            "levels": self.levels,
            "jax": self.jax is not None,
            "options": dict(self.options),
            "by_name": isinstance(self.source, str),
        }

    def _known_source(self) -> Any:
        if self.source is None:
            problem = "this agent was saved without a way to make its environment: "
            remedy = "give it as the argument env of load"
            raise InvalidInput(problem + remedy, source=self.name)
        return self.source

    def _make(
        self, source: Any, n: int, owned: bool | None = None, **options: Any
    ) -> GymnasiumAdapter:
        continuous = self.n_actions is None
        by_id = isinstance(source, str)
        made = GymnasiumAdapter(
            source,
            actions=self.levels,
            n_envs=n if by_id else 1,
            continuous=continuous,
            owned=owned,
            options={**self.options, **options} if by_id else None,
        )
        try:
            for name in ("observation_shape", "observation_size", "n_actions", "action_shape"):
                _require_same(made.name, name, getattr(made, name), getattr(self, name))
        except InvalidInput:
            made.close()
            raise
        return made


def _single_of_vector(source: Any, spec: Any, options: Mapping[str, Any]) -> Any:
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


def make_spec(
    env: Any,
    *,
    actions: int | Iterable[int] | None,
    n_envs: int,
    continuous: bool,
    backend: str = "auto",
    options: Mapping[str, Any] | None = None,
) -> EnvironmentSpec:
    """The specification of an id, a JAX environment or a Gymnasium environment."""
    checks.one_of("backend", backend, BACKENDS)
    options = {} if options is None else options
    _check_options(env, backend, options)
    if continuous and actions is not None:
        raise InvalidInput(f"actions={actions} makes no sense with real actions", omit="actions")
    found = env if isinstance(env, Environment) else None
    if isinstance(env, Environment) and backend == "gymnasium":
        raise InvalidInput("given as an environment in JAX", source=env.name, omit="backend")
    if isinstance(env, str) and backend != "gymnasium" and not options:
        found = jax_environment(env)
    if found is not None:
        return _jax_spec(found, actions=actions, n_envs=n_envs, continuous=continuous)
    if backend == "jax":
        raise InvalidInput("there is no such environment in JAX", source=str(env), omit="backend")
    n = n_envs if isinstance(env, str) else 1
    host = GymnasiumAdapter(env, actions=actions, n_envs=n, continuous=continuous, options=options)
    return EnvironmentSpec(
        **{name: getattr(host, name) for name in SIZES},
        low=host.action_low,
        high=host.action_high,
        discretize=host.discretize,
        source=env,
        options=options,
        host=host,
    )


def _check_options(env: Any, backend: str, options: Mapping[str, Any]) -> None:
    """Refuse arguments of `gymnasium.make` that cannot be passed on or saved."""
    given = f"env_options {', '.join(options)}"
    if options and not isinstance(env, str):
        raise InvalidInput("only for an environment given by its id", source=given)
    if options and backend == "jax":
        raise InvalidInput("only for an environment of Gymnasium", source=given, omit="backend")
    try:
        json.dumps(dict(options))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"env_options must be plain data, to be saved: {error}") from None


def _jax_spec(
    environment: Environment, *, actions: Any, n_envs: int, continuous: bool
) -> EnvironmentSpec:
    """The specification of a JAX environment, whose actions are real vectors."""
    grid = None
    if not continuous:
        if actions is None:
            problem = "its actions are real numbers"
            raise InvalidInput(problem, source=environment.name, add=("actions", 31))
        grid = Discretize.of(environment.action_low, environment.action_high, actions)
    by_id = jax_environment(environment.name) is environment
    return EnvironmentSpec(
        name=environment.name,
        observation_size=environment.observation_size,
        observation_shape=(environment.observation_size,),
        n_actions=None if grid is None else len(grid),
        action_shape=(environment.action_size,),
        low=environment.action_low,
        high=environment.action_high,
        discretize=grid,
        jax=environment,
        n_envs=n_envs,
        limit=environment.limit,
        source=environment.name if by_id else environment,
    )


def from_description(about: Mapping[str, Any], env: Any = None) -> EnvironmentSpec:
    """The specification that `describe` described; environments are made at their first use.

    With `env`, that of another environment, which must have the described sizes. An id that names
    a module to import is not used: a file must not choose what code runs.
    """
    if env is not None:
        return _replacement(about, env)
    low, high = (None if about[end] is None else tuple(about[end]) for end in ("low", "high"))
    name, levels = str(about["name"]), about["levels"]
    by_id = bool(about["by_name"]) and ":" not in name
    spec = EnvironmentSpec(
        name=name,
        observation_size=checks.count("observation_size", about["observation_size"]),
        observation_shape=_counts(about, "observation_shape"),
        first_observation=_integer(about, "first_observation"),
        n_actions=_integer(about, "n_actions", at_least=1),
        first_action=int(about["first_action"]),
        action_shape=_counts(about, "action_shape"),
        low=low,
        high=high,
        discretize=None if levels is None else Discretize.of(low, high, levels),  # type: ignore[arg-type]
        jax=jax_environment(name) if about["jax"] and by_id else None,
        n_envs=checks.count("n_envs", about["n_envs"]),
        limit=_integer(about, "limit", at_least=1),
        source=name if by_id else None,
        options=dict(about["options"]),
    )
    _check_sizes(spec)
    return spec


def _counts(about: Mapping[str, Any], name: str) -> tuple[int, ...]:
    return tuple(checks.count(name, n) for n in about[name])


def _integer(about: Mapping[str, Any], name: str, at_least: int = -(2**62)) -> int | None:
    return None if about[name] is None else checks.count(name, about[name], at_least)


def _check_sizes(spec: EnvironmentSpec) -> None:
    """Refuse a description whose sizes contradict each other."""
    size, shape = spec.observation_size, spec.observation_shape
    if spec.first_observation is None and size != math.prod(shape):
        raise InvalidInput(f"damaged: observations of shape {shape} and size {size}")
    if spec.discretize is not None and spec.n_actions != len(spec.discretize):
        levels = spec.discretize.levels
        raise InvalidInput(f"damaged: {spec.n_actions} actions with the levels {levels}")
    bounds = spec.low, spec.high
    if spec.n_actions is None or spec.discretize is not None:
        lengths = {-1 if bound is None else len(bound) for bound in bounds}
        if lengths != {math.prod(spec.action_shape)}:
            raise InvalidInput(f"damaged: bounds {bounds} of actions of shape {spec.action_shape}")
    if spec.jax is not None:
        of_jax = (spec.jax.observation_size, spec.jax.action_low, spec.jax.action_high)
        if of_jax != (spec.observation_size, *bounds):
            raise InvalidInput(f"damaged: its sizes are not those of {spec.name}")


def _replacement(about: Mapping[str, Any], env: Any) -> EnvironmentSpec:
    """The specification of another environment, refused if its sizes are not as described."""
    spec = make_spec(
        env,
        actions=about["levels"],
        n_envs=int(about["n_envs"]),
        continuous=about["n_actions"] is None,
        backend="auto" if about["jax"] or isinstance(env, Environment) else "gymnasium",
        options=about["options"] if env == about["name"] else {},
    )
    found = json.loads(json.dumps(spec.describe()))
    for key in ("observation_shape", "first_observation", "n_actions", "low", "high", "n_envs"):
        _require_same(spec.name, key, found[key], json.loads(json.dumps(about[key])))
    return spec


def _require_same(name: str, what: str, found: Any, expected: Any) -> None:
    """Refuse an environment that differs from the one that the agent was made for."""
    if found != expected:
        problem = f"has {what} {found}, but the agent was made for {expected}"
        raise InvalidInput(problem, source=name)
