"""Makes a Gymnasium environment by its id, or says in one line why it cannot."""

from __future__ import annotations

import difflib
import warnings
from importlib import import_module
from typing import Any

from tsallax.errors import InvalidInput


def make(name: str, **options: Any) -> Any:
    """Make a Gymnasium environment by its id, those of tsallax included.

    >>> make("tsallax/Reacher-v5").observation_space.shape
    (10,)
    >>> make("CartPoole-v1")
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: CartPoole-v1: there is no such environment: did you mean CartPole-v1?
    """
    gymnasium = gymnasium_module(name)
    from tsallax.envs.gymnasium.registration import register

    register()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return gymnasium.make(name, disable_env_checker=True, **options)
    except InvalidInput:
        raise
    except Exception as error:  # whatever the environment's own constructor raises
        raise InvalidInput(f"{name}: {_reason(name, error)}") from None


def _reason(name: str, error: Exception) -> str:
    """Say in one line why an environment cannot be made."""
    from gymnasium.error import NameNotFound

    line = one_line(error)
    if isinstance(error, NameNotFound):
        return f"there is no such environment{_nearest(name)}"
    if ("mujoco" in line.lower() or "imageio" in line) and not _importable("mujoco", "imageio"):
        same = f", or use tsallax/{name}, the same without MuJoCo" if name in _IN_JAX else ""
        return f"needs MuJoCo: pip install 'tsallax[mujoco]'{same}"
    if "Namespace ALE not found" in line:
        return "needs the Arcade Learning Environment: pip install ale-py"
    return line if line else type(error).__name__


def _nearest(name: str) -> str:
    """The registered environment whose name is most like an unknown one, as a question."""
    import gymnasium

    def bare(identity: str) -> str:
        return identity.rsplit("/", 1)[-1].rsplit("-v", 1)[0].lower()

    known = {bare(identity): identity for identity in sorted(gymnasium.registry)}
    near = difflib.get_close_matches(bare(name), list(known), 1)
    return f": did you mean {known[near[0]]}?" if near else ""


_IN_JAX = ("InvertedPendulum-v5", "Reacher-v5")


def _importable(*modules: str) -> bool:
    try:
        for module in modules:
            import_module(module)
    except Exception:  # a module may fail in its own way when it is imported
        return False
    return True


def one_line(error: Exception) -> str:
    """Give an error's message without its line breaks.

    >>> one_line(ValueError("two\\n  lines"))
    'two lines'
    """
    return " ".join(str(error).split())


def gymnasium_module(name: str) -> Any:
    """Import Gymnasium, for the sake of an environment.

    >>> gymnasium_module("CartPole-v1").__name__
    'gymnasium'
    """
    try:
        import gymnasium
        import gymnasium.vector
    except ImportError:
        raise InvalidInput(f"{name}: needs Gymnasium: pip install gymnasium") from None
    if not hasattr(gymnasium.vector, "AutoresetMode"):
        raise InvalidInput(
            f"{name}: needs Gymnasium 1.1 or newer, not {gymnasium.__version__}: "
            "pip install -U gymnasium"
        )
    return gymnasium
