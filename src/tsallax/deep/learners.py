"""`LEARNERS`: the kinds of agents by name, the one list of them.

What else differs between learners (options, algorithm, kind of actions) are class attributes of
the agents, see `Agent`.
"""

from __future__ import annotations

from typing import Any

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
