"""Every learner declares what fleets, files and the command line need to know of it."""

from __future__ import annotations

import dataclasses

import pytest

from small_agents import CORRIDOR
from tsallax import DDPG, DDPGConfig, DeepQ, DeepQConfig
from tsallax.deep.environment_spec import make_spec
from tsallax.deep.learners import LEARNERS, learner_of
from tsallax.errors import InvalidInput


def test_learners_are_found_by_name_and_by_their_options():
    assert {"deep_q": DeepQ, "ddpg": DDPG} == LEARNERS
    assert learner_of(DeepQConfig()) is DeepQ
    assert learner_of(DDPGConfig()) is DDPG
    with pytest.raises(InvalidInput, match="a DeepQConfig or DDPGConfig, not dict"):
        learner_of({})


@pytest.mark.parametrize("learner", LEARNERS.values())
def test_members_of_a_fleet_share_an_algorithm_whatever_their_knobs(learner):
    options = {f.name for f in dataclasses.fields(learner.Config)}
    assert set(learner.member_options) <= options
    continuous = learner.continuous_actions
    spec = make_spec(CORRIDOR, actions=None if continuous else 3, n_envs=1, continuous=continuous)
    configs = [learner.Config(learning_rate=rate, beta=0.5) for rate in (0.1, 0.2)]
    shared, knobs = learner.build_algorithm(spec, configs)
    alone, _ = learner.build_algorithm(spec, configs[1:])
    assert shared == alone
    assert hash(shared) == hash(alone)
    assert [float(each.learning_rate) for each in knobs] == pytest.approx([0.1, 0.2])
