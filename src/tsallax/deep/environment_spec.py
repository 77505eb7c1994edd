"""`EnvironmentSpec`: the name and sizes of an agent's environment, and how to make it.

`make_spec` makes it from an id or an object, `from_description` from the description in a
file.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.envs.action_format import ActionFormat
from tsallax.envs.action_mask import mask_rows
from tsallax.envs.gymnasium.adapter import GymnasiumAdapter
from tsallax.envs.gymnasium.gymnasium_make import makes_environments, names_module
from tsallax.envs.gymnasium.second_environment import make_again
from tsallax.envs.gymnasium.wrapper_statistics import Statistics
from tsallax.envs.jax.catalogue import jax_environment
from tsallax.envs.jax.environment import Environment
from tsallax.envs.observation_encoding import ObservationEncoding
from tsallax.envs.observation_format import ObservationFormat
from tsallax.envs.space_description import SpaceDescription
from tsallax.errors import InvalidInput

BACKENDS = ("auto", "jax", "gymnasium")

NO_MASK_FUNCTION = (
    "saved with a function that masks actions: load it with one, action_mask=your_function"
)
"""Why an agent or a fleet that was trained with such a function does not go on without it."""


@dataclass(kw_only=True)
class EnvironmentSpec:
    """An environment's name, the forms of its observations and actions, and how to make it."""

    name: str
    encoding: ObservationEncoding
    """The space of the observations, and how they are stored."""
    action: ActionFormat
    """The space of the actions, and how they are numbered."""
    masked: bool = False
    """Whether the environment masks actions."""
    action_mask: Callable[[Any], Any] | None = None
    """A function of an environment that returns the mask, in place of `info["action_mask"]`."""
    masked_by_function: bool = False
    """Whether there was such a function in training; a file does not hold it."""
    jax: Environment | None = None
    """The environment, where it is written in JAX."""
    n_envs: int = 1
    limit: int | None = None
    """The number of steps after which an episode is truncated."""
    source: Any = None
    """An id, a function or an environment to make others from; None where it is unknown."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `gymnasium.make`, or of the function."""
    host: GymnasiumAdapter | None = None
    """The Gymnasium environments of training, once they are made."""
    saved_statistics: list[Statistics] = field(default_factory=list)
    """Those of the normalising wrappers, from a file, until the environments are made."""

    @property
    def observation(self) -> ObservationFormat:
        """The form in which the agent sees observations."""
        return self.encoding.format

    @property
    def choices(self) -> tuple[int, ...] | None:
        """The number of choices in each dimension of an action; None where actions are real."""
        return self.action.choices

    @property
    def factored(self) -> bool:
        """Whether an action is chosen dimension by dimension rather than by one number."""
        return self.action.factored

    @property
    def n_actions(self) -> int | None:
        """The number of actions, or of all choices of factored ones; None for real ones."""
        return self.action.n_actions

    @cached_property
    def table(self) -> NDArray[np.float32] | None:
        """The real actions by their numbers; those of factored ones by dimension and number."""
        grid = self.action.discretize
        if grid is None:
            return None
        return np.asarray(grid.level_table if self.factored else grid.table, np.float32)

    def encode(self, observation: Any) -> tuple[NDArray[Any], bool]:
        """Observations as they are stored, and whether it was a single one."""
        try:
            stored, single = self.encoding.encode_given(observation)
        except InvalidInput as error:
            raise InvalidInput(f"observation {error.problem}: that of {self.name}") from None
        if stored.dtype.kind == "f" and not np.isfinite(stored).all():
            raise InvalidInput(f"observation {observation!r}: contains NaN or infinity")
        return stored, single

    def mask(self, given: Any, n: int, single: bool) -> NDArray[np.bool_] | None:
        """The masks of n observations as a caller gave them; required where actions are masked."""
        if given is None:
            if not self.masked:
                return None
            raise InvalidInput(
                "the environment masks actions: give mask=info['action_mask'], or mask='all'",
                source=self.name,
            )
        try:
            return mask_rows(self.action, [given] if single else given, n)
        except InvalidInput as error:
            raise InvalidInput(f"the mask {error.problem}", source=self.name) from None

    def __post_init__(self) -> None:
        self.masked_by_function |= self.masked and self.action_mask is not None

    @property
    def adapter_options(self) -> dict[str, Any]:
        """Arguments of `GymnasiumAdapter`, and of `make_spec`, for actions and masks like these."""
        if self.masked_by_function and self.action_mask is None:
            raise InvalidInput(NO_MASK_FUNCTION, source=self.name)
        return {
            "actions": self.action.levels or None,
            "continuous": self.n_actions is None,
            "factored": self.factored,
            "masked": self.masked,
            "action_mask": self.action_mask if self.masked else None,
        }

    def training_environment(self) -> GymnasiumAdapter:
        """The Gymnasium environments to learn in, made at the first call."""
        if self.host is None:
            self.host = self._make(self._known_source(), self.n_envs)
            self.restore_statistics(self.saved_statistics)
        return self.host

    def statistics(self, before_reset: bool = False) -> list[Statistics]:
        """The statistics of the normalising wrappers of training, now or before the last reset."""
        if self.host is None:
            return self.saved_statistics
        return self.host.statistics(before_reset)

    def restore_statistics(self, statistics: list[Statistics]) -> None:
        """Continue with the statistics of a file, which has none if it is of version 0.1."""
        self.saved_statistics = statistics
        if self.host is not None and statistics:
            self.host.set_statistics(statistics)

    def is_training_environment(self, env: Any) -> bool:
        """Whether this object is the Gymnasium environment of training, or a wrapper of it."""
        if self.jax is not None or self.source is None or makes_environments(self.source):
            return False
        return getattr(env, "unwrapped", env) is getattr(self.source, "unwrapped", self.source)

    def evaluation_environment(self, env: Any = None, **options: Any) -> GymnasiumAdapter:
        """A single Gymnasium environment to evaluate in: `env`, or one like that of training.

        Its normalising wrappers have the statistics of training, and do not update them.
        """
        made = self._evaluation_environment(env, **options)
        try:
            made.follow_statistics(self.statistics())
        except InvalidInput:
            made.close()
            raise
        return made

    def _evaluation_environment(self, env: Any, **options: Any) -> GymnasiumAdapter:
        if env is not None:
            made = self._make(env, 1, **options)
            if made.n_envs != 1:
                problem = f"holds {made.n_envs} environments: give a single one to evaluate in"
                raise InvalidInput(problem, source=made.name)
            return made
        source = self._known_source()
        if makes_environments(source):
            return self._make(source, 1, **options)
        try:
            again = make_again(source, **options)
        except InvalidInput as error:
            remedy = "give one to evaluate in, evaluate(env=...) and learn(eval_env=...), or make "
            remedy += "the agent with a function that makes it, in place of the environment"
            raise InvalidInput(f"{error.problem}: {remedy}", source=self.name) from None
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
            "name": self.name,
            "observations": self.encoding.describe(),
            "actions": self.action.describe(),
            "masked": self.masked,
            "masked_by_function": self.masked_by_function,
            "n_envs": self.n_envs,
            "limit": self.limit,
            "jax": self.jax is not None,
            "options": dict(self.options),
            "by_name": isinstance(self.source, str),
        }

    def _known_source(self) -> Any:
        if self.source is None:
            problem = "this agent was saved without a way to make its environment: load it with "
            problem += "one, such as load(path, your_function)"
            example = self.name if names_module(self.name) else "module:function"
            raise InvalidInput(problem, source=self.name, add=("env", example))
        return self.source

    def _make(
        self, source: Any, n: int, owned: bool | None = None, **options: Any
    ) -> GymnasiumAdapter:
        made_here = makes_environments(source)
        made = GymnasiumAdapter(
            source,
            n_envs=n if made_here else 1,
            owned=owned,
            options={**self.options, **options} if made_here else None,
            **self.adapter_options,
        )
        try:
            require_same(made, self)
        except InvalidInput:
            made.close()
            raise
        return made


def make_spec(
    env: Any,
    *,
    actions: int | Iterable[int] | None,
    n_envs: int,
    continuous: bool,
    backend: str = "auto",
    options: Mapping[str, Any] | None = None,
    factored: bool | None = None,
    masked: bool | None = None,
    action_mask: Callable[[Any], Any] | None = None,
    expected: EnvironmentSpec | None = None,
) -> EnvironmentSpec:
    """The specification of an id, a function that makes an environment, or an environment.

    One whose spaces are not those `expected` is refused before it is tried out.
    """
    checks.one_of("backend", backend, BACKENDS)
    options = {} if options is None else options
    _check_options(env, backend, options)
    if continuous and actions is not None:
        raise InvalidInput(f"actions={actions} makes no sense with real actions", omit="actions")
    in_jax = env if isinstance(env, Environment) else None
    if in_jax is not None and backend == "gymnasium":
        raise InvalidInput("given as an environment in JAX", source=in_jax.name, omit="backend")
    if isinstance(env, str) and backend != "gymnasium" and not options:
        in_jax = jax_environment(env)
    if action_mask is not None and (not callable(action_mask) or masked is False or continuous):
        problem = "action_mask must be a function of an environment that gives a mask"
        raise InvalidInput(f"{problem}, for DeepQ with masked=True, got {action_mask!r}")
    form: dict[str, Any] = {"actions": actions, "continuous": continuous, "factored": factored}
    if in_jax is not None:
        if masked or action_mask is not None:
            problem = "an environment in JAX has no masks"
            raise InvalidInput(problem, source=in_jax.name, omit="masked")
        return _jax_spec(in_jax, n_envs=n_envs, **form)
    if backend == "jax":
        raise InvalidInput("there is no such environment in JAX", source=str(env), omit="backend")
    n = n_envs if makes_environments(env) else 1
    form |= {"action_mask": action_mask, "options": options}
    return _gymnasium_spec(env, n, masked, expected, **form)


def _gymnasium_spec(
    env: Any,
    n_envs: int,
    masked: bool | None,
    expected: EnvironmentSpec | None,
    **arguments: Any,
) -> EnvironmentSpec:
    """The specification of a Gymnasium environment; `arguments` are those of `GymnasiumAdapter`.

    The environment is tried out: one made for it, if there is an id or a function, is reset and
    makes a step; one given as an object is reset if it is not known whether it is `masked`.
    """
    host = GymnasiumAdapter(env, n_envs=n_envs, **arguments)
    if expected is not None:
        require_same(host, expected)
    gives_masks = False
    if makes_environments(env):
        with closing(GymnasiumAdapter(env, masked=bool(masked), **arguments)) as tried:
            gives_masks = tried.try_out(masked is None)
    elif masked is None and not (host.masked or arguments["continuous"]):
        gives_masks = host.gives_masks()
    if host.encoding.is_stack_of_images and not host.encoding.flat:
        warnings.warn(
            f"{host.name}: observations of shape {host.encoding.space.shape} are flattened: an "
            "image has the shape (height, width) or (height, width, channels), with the frames of "
            "a stack as channels; gymnasium.wrappers.TransformObservation can give it this shape",
            stacklevel=5,
        )
    host.masked |= gives_masks if masked is None else masked
    host.masked &= not arguments["continuous"]
    return EnvironmentSpec(
        name=host.name,
        encoding=host.encoding,
        action=host.action,
        masked=host.masked,
        action_mask=arguments["action_mask"],
        n_envs=host.n_envs,
        limit=host.limit,
        source=env,
        options=arguments["options"],
        host=host,
    )


def _check_options(env: Any, backend: str, options: Mapping[str, Any]) -> None:
    """Refuse arguments of `gymnasium.make` that cannot be passed on or saved."""
    given = f"env_options {', '.join(options)}"
    if options and not makes_environments(env):
        raise InvalidInput("only for an environment given by its id or a function", source=given)
    if options and backend == "jax":
        raise InvalidInput("only for an environment of Gymnasium", source=given, omit="backend")
    try:
        json.dumps(dict(options))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"env_options must be plain data, to be saved: {error}") from None


def _jax_spec(
    environment: Environment, *, actions: Any, n_envs: int, continuous: bool, factored: bool | None
) -> EnvironmentSpec:
    """The specification of a JAX environment, whose actions are real vectors."""
    if not continuous and actions is None:
        problem = "its actions are real numbers"
        raise InvalidInput(problem, source=environment.name, add=("actions", 31))
    bounds = environment.action_low, environment.action_high
    space = SpaceDescription.box((environment.action_size,), *bounds)
    by_id = jax_environment(environment.name) is environment
    try:
        action = ActionFormat.of(space, actions, continuous=continuous, factored=factored)
    except InvalidInput as error:
        raise error.of(environment.name) from None
    return EnvironmentSpec(
        name=environment.name,
        encoding=ObservationEncoding(
            SpaceDescription.box((environment.observation_size,)), flat=continuous
        ),
        action=action,
        jax=environment,
        n_envs=n_envs,
        limit=environment.limit,
        source=environment.name if by_id else environment,
    )


def require_same(found: EnvironmentSpec | GymnasiumAdapter, expected: EnvironmentSpec) -> None:
    """Refuse an environment whose spaces differ from those that the agent was made for."""
    seen, wanted = (each.encoding.space for each in (found, expected))
    acts, known = (each.action.space for each in (found, expected))
    compared: dict[str, tuple[Any, Any]] = {
        "observation_shape": (seen.shape, wanted.shape),
        "observations": (seen.without_types(), wanted.without_types()),
        "observation format": (found.encoding.format, expected.encoding.format),
        "n_actions": (found.action.n_actions, expected.action.n_actions),
        "action_shape": (acts.shape, known.shape),
        "actions": (acts.without_types(), known.without_types()),
    }
    for what, (one, other) in compared.items():
        if one != other:
            problem = f"has {what} {one}, but the agent was made for {other}"
            raise InvalidInput(problem, source=found.name)
