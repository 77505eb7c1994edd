"""`LEARNERS`, the one list of the kinds of agents, and `load_agent`, which reads any of them.

A kind of agent is a subclass of `Agent`: its class attributes are its name in files, the class of
its options, `build_algorithm`, which makes its `Algorithm`, and whether its actions are real.
"""

from collections.abc import Callable
from os import PathLike
from typing import Any

from tsallax.deep import checkpoint
from tsallax.deep.agent import Agent
from tsallax.deep.ddpg_agent import DDPG
from tsallax.deep.deep_q_agent import DeepQ
from tsallax.errors import InvalidInput

LEARNERS: dict[str, type[Agent]] = {cls.kind: cls for cls in (DeepQ, DDPG)}


def learner_of(config: Any) -> type[Agent]:
    """The learner with these options.

    >>> from tsallax import DDPGConfig
    >>> learner_of(DDPGConfig()).kind
    'ddpg'
    """
    for learner in LEARNERS.values():
        if isinstance(config, learner.Config):
            return learner
    known = " or ".join(learner.Config.__name__ for learner in LEARNERS.values())
    raise InvalidInput(f"options must be a {known}, not {type(config).__name__}")


def load_agent(
    path: str | PathLike[str],
    env: Any = None,
    max_bytes: int | None = None,
    action_mask: Callable[[Any], Any] | None = None,
) -> Agent:
    """Read an agent of any kind from a file; `env` replaces its environment.

    The function that masks actions, where there was one, is not in the file: give it again.

    A file that unpacks to more than `max_bytes` is refused before anything is allocated; the
    default is 256 MB or 250 times the size of the file, whichever is more.

    >>> agent = load_agent("runs/reacher/agent.npz")  # doctest: +SKIP
    """
    about, _ = checkpoint.read(path, max_bytes)
    kind = str(about.get("kind"))
    if kind not in LEARNERS:
        known = ", ".join(LEARNERS)
        raise InvalidInput(f"holds a {kind} agent, not one of {known}", source=path)
    return LEARNERS[kind].load(path, env, max_bytes, action_mask)
