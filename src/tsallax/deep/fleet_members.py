"""`Member`: an agent of a fleet, and what the members of one fleet must have in common."""

import dataclasses
from dataclasses import dataclass
from itertools import product
from typing import Any

from tsallax import checks
from tsallax.deep.ddpg_config import DDPGConfig
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.learners import LEARNERS, learner_of
from tsallax.errors import InvalidInput


@dataclass(frozen=True)
class Member:
    """One agent of a fleet: its options, of `DeepQ` or of `DDPG`, and its seed.

    >>> from tsallax import DeepQConfig
    >>> Member(DeepQConfig(alpha=0.5), seed=3).seed
    3
    """

    config: DeepQConfig | DDPGConfig
    seed: int


def checked_members(given: Any) -> tuple[Member, ...]:
    """The members of a fleet, refused where they cannot share a program."""
    try:
        members = tuple(given)
    except TypeError:
        raise InvalidInput(f"a fleet has a list of Members, not {given!r}") from None
    if not members:
        raise InvalidInput("a fleet needs at least one member")
    for member in members:
        if not isinstance(member, Member):
            raise InvalidInput(f"a fleet has Members, not {type(member).__name__}")
        learner_of(member.config)
        checks.seed(member.seed)
    first = members[0].config
    if first.n_envs != 1:
        raise InvalidInput("an agent of a fleet has one environment", omit="n_envs")
    if len({type(member.config) for member in members}) > 1:
        known = " or all of ".join(learner.__name__ for learner in LEARNERS.values())
        raise InvalidInput(f"agents of a fleet must all be of {known}")
    names = {f.name for f in dataclasses.fields(first)} - {*learner_of(first).member_options}
    for member, name in product(members, sorted(names)):
        a, b = getattr(first, name), getattr(member.config, name)
        if a != b:
            raise InvalidInput(f"agents of a fleet must have the same {name}, not {a} and {b}")
    return tuple(Member(member.config, int(member.seed)) for member in members)
