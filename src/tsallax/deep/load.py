"""`load_agent`: an agent of whatever kind from a file."""

from __future__ import annotations

from os import PathLike
from typing import Any

from tsallax.deep import checkpoint
from tsallax.deep.agent import Agent
from tsallax.deep.ddpg_agent import DDPG
from tsallax.deep.deep_q_agent import DeepQ
from tsallax.errors import InvalidInput

AGENTS: dict[str, type[Agent]] = {cls.kind: cls for cls in (DeepQ, DDPG)}


def load_agent(path: str | PathLike[str], env: Any = None) -> Agent:
    """Read an agent of any kind from a file.

    >>> agent = load_agent("runs/reacher/agent.npz")  # doctest: +SKIP
    """
    about, _ = checkpoint.read(path)
    kind = str(about.get("kind"))
    if kind not in AGENTS:
        raise InvalidInput(f"{path}: holds a {kind} agent, which is not known here")
    return AGENTS[kind].load(path, env)
