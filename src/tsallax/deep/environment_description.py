"""The environment of an agent from its description in a file, or another one in its place."""

from collections.abc import Callable, Mapping
from typing import Any

from tsallax import checks
from tsallax.deep import old_files
from tsallax.deep.environment_spec import EnvironmentSpec, make_spec, require_same
from tsallax.envs.action_format import ActionFormat
from tsallax.envs.gymnasium.gymnasium_make import makes_environments, names_function, names_module
from tsallax.envs.jax.catalogue import jax_environment
from tsallax.envs.jax.environment import Environment
from tsallax.envs.observation_encoding import ObservationEncoding
from tsallax.errors import InvalidInput


def from_description(
    about: Mapping[str, Any], env: Any = None, action_mask: Callable[[Any], Any] | None = None
) -> EnvironmentSpec:
    """The specification that `describe` described; environments are made at their first use.

    With `env`, that of another environment, which must have the described sizes. An id that names
    a module to import is not used: a file must not choose what code runs.
    """
    about = old_files.with_spaces(about)
    if env is not None:
        return _replacement(about, env, action_mask)
    name = str(about["name"])
    by_id = bool(about["by_name"]) and not names_module(name)
    spec = EnvironmentSpec(
        name=name,
        encoding=ObservationEncoding.from_description(about["observations"]),
        action=ActionFormat.from_description(about["actions"]),
        masked=checks.flag("masked", about.get("masked", False)),
        action_mask=action_mask,
        masked_by_function=checks.flag(
            "masked_by_function", about.get("masked_by_function", False)
        ),
        jax=jax_environment(name) if about["jax"] and by_id else None,
        n_envs=checks.count("n_envs", about["n_envs"]),
        limit=None if about["limit"] is None else checks.count("limit", about["limit"]),
        source=name if by_id else None,
        options=dict(about["options"]),
    )
    if spec.jax is not None:
        of_jax = (spec.jax.observation_size, spec.jax.action_low, spec.jax.action_high)
        if of_jax != (spec.observation.size, spec.action.space.low, spec.action.space.high):
            raise InvalidInput(f"damaged: its sizes are not those of {spec.name}")
    return spec


def options_for(env: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    """The described options where they are for `env`: for the same id, or for any function.

    >>> about = {"name": "Room", "by_name": False, "options": {"size": 5}}
    >>> options_for("CartPole-v1", about), options_for("rooms:Room", about)
    ({}, {'size': 5})
    """
    name = str(about["name"])
    of_function = not about["by_name"] or names_function(name)
    is_function = names_function(env) if isinstance(env, str) else makes_environments(env)
    same = isinstance(env, str) and env == name
    return dict(about["options"]) if same or (of_function and is_function) else {}


def _replacement(
    about: Mapping[str, Any], env: Any, action_mask: Callable[[Any], Any] | None
) -> EnvironmentSpec:
    """The specification of another environment, refused if its spaces are not as described."""
    described = from_description({**about, "by_name": False}, action_mask=action_mask)
    spec = make_spec(
        env,
        n_envs=described.n_envs,
        backend="auto" if about["jax"] or isinstance(env, Environment) else "gymnasium",
        options=options_for(env, about),
        expected=described,
        **described.adapter_options,
    )
    require_same(spec, described)
    if spec.n_envs != described.n_envs:
        problem = f"has n_envs {spec.n_envs}, but the agent was made for {described.n_envs}"
        remedy = "give as many, or load it without env and give this one to evaluate(env=...)"
        raise InvalidInput(f"{problem}: {remedy}", source=spec.name)
    return spec
