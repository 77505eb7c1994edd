"""Members of a fleet: plain numbers, and alike in all that shapes their program."""

import numpy as np
import pytest

from refusals import refused
from small_agents import CORRIDOR, member
from tsallax import DDPGConfig, Fleet, Member
from tsallax.deep.fleet_members import checked_members


def test_members_may_differ_in_the_options_of_their_learner():
    given = (member(alpha=0.1), member(explore="soft", alpha=1.0, seed=np.int64(3)))
    assert checked_members(iter(given)) == given
    assert type(checked_members(given)[1].seed) is int


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (None, "a list of Members, not None"),
        ([], "at least one member"),
        ([3], "a fleet has Members, not int"),
        ([Member({"alpha": 1}, 0)], "a DeepQConfig or DDPGConfig, not dict"),
        ([member(seed=-1)], "seed must be an integer from 0 to 2^32 - 1, got -1"),
        ([member(seed=1.5)], "seed must be an integer"),
        ([member(n_envs=2)], "one environment: leave n_envs out"),
        ([member(), member(batch_size=4)], "same batch_size, not 8 and 4"),
        ([member(), Member(DDPGConfig(), 0)], "all be of DeepQ or all of DDPG"),
        (
            [Member(DDPGConfig(), 0)],
            "actions=3 makes no sense with real actions: leave actions out",
        ),
    ],
)
def test_members_that_cannot_form_a_fleet_are_refused(members, words):
    with refused(words):
        Fleet(CORRIDOR, members, actions=3)
