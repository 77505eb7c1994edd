"""`load_agent`: an agent of any kind from a file."""

from __future__ import annotations

from os import PathLike
from typing import Any

from tsallax.deep import checkpoint
from tsallax.deep.agent import Agent
from tsallax.deep.learners import LEARNERS
from tsallax.errors import InvalidInput


def load_agent(path: str | PathLike[str], env: Any = None, max_bytes: int | None = None) -> Agent:
    """Read an agent of any kind from a file; `env` replaces its environment.

    A file that unpacks to more than `max_bytes` is refused before anything is allocated; the
    default is 256 MB or ten times the size of the file, whichever is more.

    >>> agent = load_agent("runs/reacher/agent.npz")  # doctest: +SKIP
    """
    about, _ = checkpoint.read(path, max_bytes)
    kind = str(about.get("kind"))
    if kind not in LEARNERS:
        known = ", ".join(LEARNERS)
        raise InvalidInput(f"holds a {kind} agent, not one of {known}", source=path)
    return LEARNERS[kind].load(path, env, max_bytes)
