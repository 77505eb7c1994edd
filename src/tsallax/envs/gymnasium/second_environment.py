"""A single environment like one that was given as an object, with its wrappers, to evaluate in."""

from collections.abc import Mapping
from typing import Any

from tsallax.envs.gymnasium.wrapper_statistics import normalized_by, single_wrapper
from tsallax.errors import InvalidInput, one_line


def make_again(env: Any, **options: Any) -> Any:
    """Make an environment by the registered specification of another, which may be a vector one.

    `options` are further arguments of `gymnasium.make`.
    """
    spec = getattr(env, "spec", None)
    if spec is None:
        raise InvalidInput("an environment without an id cannot be made a second time")
    import gymnasium

    try:
        if isinstance(env, gymnasium.vector.VectorEnv):
            return _single_of_vector(env, spec, options)
        return gymnasium.make(spec, **options)
    except Exception as error:  # environments raise exceptions of any type
        reason = one_line(error).split(". ")[0]
        raise InvalidInput(f"cannot be made a second time ({reason})") from None


def _single_of_vector(source: Any, spec: Any, options: Mapping[str, Any]) -> Any:
    """A single environment like those of a vector environment, with its normalising wrappers."""
    import gymnasium

    outer = []
    while isinstance(source, gymnasium.vector.VectorWrapper):
        if normalized_by(source) is None:
            raise InvalidInput(f"{type(source).__name__} wraps several environments, not one")
        outer.append(source)
        source = source.env
    given = dict(spec.kwargs)
    for name in ("num_envs", "vectorization_mode", "vector_kwargs"):
        given.pop(name, None)
    wrappers = given.pop("wrappers", None) or ()
    made = gymnasium.make(spec.id, **{**given, **options})
    for wrapper in wrappers:
        made = wrapper(made)
    for one in reversed(outer):
        made = single_wrapper(one, made)
    return made
