"""Environments from ids, as by `gymnasium.make`, and from functions; errors of one line."""

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tsallax import checks
from tsallax.errors import InvalidInput, one_line, place_in_user_code


def makes_environments(source: Any) -> bool:
    """Whether it is an id, a function or a class, and not an environment.

    >>> import gymnasium
    >>> [makes_environments(x) for x in ("Taxi-v3", gymnasium.Env, gymnasium.make("CartPole-v1"))]
    [True, True, False]
    """
    if isinstance(source, str | type):
        return True
    return callable(source) and not hasattr(source, "step")


def names_function(source: str) -> bool:
    """Whether it has the form `module:function`, unlike an id with a version.

    >>> [names_function(x) for x in ("rooms:make_room", "rooms:Room-v0", "CartPole-v1")]
    [True, False, False]
    """
    return source.partition(":")[2].isidentifier()


def names_module(source: str | None) -> bool:
    """Whether an id or a function is that of a module to import, as in `module:Name-v0`.

    A file must not choose what code runs: what it names so is not used, but has to be given again.

    >>> [names_module(x) for x in ("rooms:Room-v0", "rooms:make_room", "CartPole-v1", None)]
    [True, True, False, False]
    """
    return source is not None and ":" in source


def name_of(env: Any) -> str:
    """The name of an environment that was made: its id, or else that of its class."""
    spec = getattr(env, "spec", None)
    return str(getattr(spec, "id", None) or type(getattr(env, "unwrapped", env)).__name__)


def make(source: Any, options: Mapping[str, Any] | None = None) -> Any:
    """Make a Gymnasium environment by its id, those of tsallax included, or by a function.

    `module:function` is a function, or a class, of a module that can be imported.

    >>> make("tsallax/Reacher-v5").observation_space.shape
    (10,)
    >>> make("gymnasium.envs.toy_text:TaxiEnv").action_space
    Discrete(6)
    >>> make("CartPoole-v1")
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: CartPoole-v1: there is no such environment: did you mean...
    """
    if not isinstance(source, str):
        return _made_by(source, getattr(source, "__name__", repr(source)), options)
    gymnasium = import_gymnasium(source)
    from tsallax.envs.gymnasium.registration import register

    register()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            function = _function_named(source)
            if function is not None:
                return _made_by(function, source, options)
            return gymnasium.make(source, **{"disable_env_checker": True, **(options or {})})
    except InvalidInput:
        raise
    except Exception as error:  # constructors raise exceptions of any type
        cause = error if place_in_user_code(error) else None
        raise InvalidInput(_reason(source, error), source=source) from cause


def _made_by(function: Callable[..., Any], name: str, options: Mapping[str, Any] | None) -> Any:
    """The environment that a function returns; what the function raises is passed on."""
    made = function(**(options or {}))
    if not isinstance(made, import_gymnasium(name).Env):
        problem = f"returned {made!r:.60}, which is not a (single) Gymnasium environment"
        raise InvalidInput(problem, source=name)
    return made


def _function_named(name: str) -> Callable[..., Any] | None:
    """What `module:function` names, or None for the id of an environment."""
    import gymnasium

    if not names_function(name):
        return None
    module, _, attribute = name.partition(":")
    import_module(module)
    found = getattr(sys.modules[module], attribute, None)
    return found if callable(found) and attribute not in gymnasium.registry else None


def check_id(name: str) -> None:
    """Refuse an id that no environment has, without making one.

    An id such as `module:Name-v0` is not looked up, as this would import the module.

    >>> check_id("CartPole-v1")
    >>> check_id("CartPoole-v1")
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: CartPoole-v1: there is no such environment: did you mean...
    """
    gymnasium = import_gymnasium(name)
    from gymnasium.envs.registration import parse_env_id

    from tsallax.envs.gymnasium.registration import register

    register()
    if names_module(name):
        return
    try:
        version = parse_env_id(name)[2]
    except gymnasium.error.Error:
        raise InvalidInput("there is no such environment", source=name) from None
    try:
        gymnasium.spec(name)
    except gymnasium.error.Error as error:
        absent = isinstance(error, gymnasium.error.UnregisteredEnv)
        if absent or version is not None:  # an id without a version is that of the latest
            raise InvalidInput(_reason(name, error), source=name) from None


def _reason(name: str, error: Exception) -> str:
    """The reason for which an environment cannot be made, in one line."""
    from gymnasium.error import NameNotFound, NamespaceNotFound

    from tsallax.envs.jax.catalogue import jax_environment

    line = one_line(error)
    module, _, bare = name.rpartition(":")
    absent = getattr(error.__cause__ or error, "name", None)
    not_found = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{absent}.")
    if module.startswith(".") or (module and not_found):
        absent = module if absent is None else absent
        return f"there is no module {absent} here: name it as Python imports it, without .py"
    if module and isinstance(error, NameNotFound):
        what = "function or class of that name" if bare.isidentifier() else "such id"
        return f"the module {module} has no {what}"
    if isinstance(error, NameNotFound):
        return f"there is no such environment{_nearest(name)}"
    if isinstance(error, NamespaceNotFound) and not module and not name.startswith("ALE/"):
        return f"there is no such environment: give the module that registers it, MODULE:{name}"
    if ("mujoco" in line.lower() or "imageio" in line) and not _importable("mujoco", "imageio"):
        in_jax = jax_environment(name) is not None
        same = f", or use tsallax/{name}, the same without MuJoCo" if in_jax else ""
        return f"needs MuJoCo: pip install mujoco imageio{same}"
    if "Namespace ALE not found" in line:
        return "needs the Arcade Learning Environment: pip install ale-py"
    place = "" if ", line " in line else place_in_user_code(error)
    return f"{type(error).__name__}: {line}{place}" if place else line or type(error).__name__


def _nearest(name: str) -> str:
    """The registered environment whose name is most like an unknown one, as a question."""
    import gymnasium

    def bare(identity: str) -> str:
        return identity.rsplit("/", 1)[-1].rsplit("-v", 1)[0].lower()

    ids = sorted(gymnasium.registry, key=lambda identity: ("/" not in identity, identity))
    known = {bare(identity): identity for identity in ids}  # ids without a namespace prevail
    near = checks.nearest(bare(name), known)
    return f": did you mean {known[near]}?" if near else ""


def _importable(*modules: str) -> bool:
    try:
        for module in modules:
            import_module(module)
    except Exception:  # an import may raise exceptions of any type
        return False
    return True


def import_gymnasium(name: str) -> Any:
    """Import Gymnasium, which the environment `name` needs.

    >>> import_gymnasium("CartPole-v1").__name__
    'gymnasium'
    """
    try:
        import gymnasium
        import gymnasium.vector
    except ImportError:
        raise InvalidInput("needs Gymnasium: pip install gymnasium", source=name) from None
    if not hasattr(gymnasium.vector, "AutoresetMode"):
        raise InvalidInput(
            f"needs Gymnasium 1.1 or newer, not {gymnasium.__version__}: pip install -U gymnasium",
            source=name,
        )
    return gymnasium
