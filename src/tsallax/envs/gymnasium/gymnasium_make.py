"""`gymnasium.make` with the environments of tsallax registered and errors of one line."""

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tsallax import checks
from tsallax.errors import InvalidInput

_JAX_NAMES = ("InvertedPendulum-v5", "Reacher-v5")
"""MuJoCo environments that tsallax also has in JAX."""


def make(name: str, options: Mapping[str, Any] | None = None) -> Any:
    """Make a Gymnasium environment by its id, those of tsallax included.

    >>> make("tsallax/Reacher-v5").observation_space.shape
    (10,)
    >>> make("CartPoole-v1")
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: CartPoole-v1: there is no such environment: did you mean...
    """
    gymnasium = import_gymnasium(name)
    from tsallax.envs.gymnasium.registration import register

    register()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return gymnasium.make(name, **{"disable_env_checker": True, **(options or {})})
    except InvalidInput:
        raise
    except Exception as error:  # constructors raise exceptions of any type
        raise InvalidInput(_reason(name, error), source=name) from None


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
    if ":" in name:
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
    from gymnasium.error import NameNotFound

    line = one_line(error)
    if isinstance(error, NameNotFound):
        return f"there is no such environment{_nearest(name)}"
    if ("mujoco" in line.lower() or "imageio" in line) and not _importable("mujoco", "imageio"):
        same = f", or use tsallax/{name}, the same without MuJoCo" if name in _JAX_NAMES else ""
        return f"needs MuJoCo: pip install mujoco imageio{same}"
    if "Namespace ALE not found" in line:
        return "needs the Arcade Learning Environment: pip install ale-py"
    return line or type(error).__name__


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


def one_line(error: Exception) -> str:
    """The message of an error without line breaks.

    >>> one_line(ValueError("two\\n  lines"))
    'two lines'
    """
    return " ".join(str(error).split())


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
