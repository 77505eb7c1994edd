"""Environments by their name, whatever Gymnasium's version, and what is new in which one."""

import gymnasium
import pytest


def newest(name: str) -> str:
    """The newest registered version of an environment; an id with a version is left as it is.

    >>> newest("CartPole"), newest("CartPole-v0")
    ('CartPole-v1', 'CartPole-v0')
    """
    return name if "-v" in name else max(k for k in gymnasium.registry if k.startswith(f"{name}-"))


def since(version: str) -> pytest.MarkDecorator:
    """Marks a test of what came with a version of Gymnasium."""
    here, needed = ([*map(int, v.split(".")[:2])] for v in (gymnasium.__version__, version))
    return pytest.mark.skipif(here < needed, reason=f"new in Gymnasium {version}")
