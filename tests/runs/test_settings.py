"""Options of a run and its algorithm: checked, converted, written and read without loss."""

from __future__ import annotations

import pytest

from refusals import refused
from tsallax.deep.learners import LEARNERS
from tsallax.files import yaml_text
from tsallax.runs.settings import Run, from_flat, to_flat, to_yaml

CHANGED = {
    "deep_q": {"env": "Reacher-v5", "actions": [5, 7], "explore": "soft", "alpha": "1:0.1:50"},
    "ddpg": {"env": "Pendulum-v1", "sigma": 0.2, "steps": 1000, "env_options": {"map": "no"}},
}


@pytest.mark.parametrize("algorithm", [*LEARNERS])
def test_settings_survive_plain_data_and_yaml(algorithm):
    settings = from_flat({"algorithm": algorithm, **CHANGED[algorithm]})
    assert settings.agent_class is LEARNERS[algorithm]
    assert from_flat(to_flat(settings)) == settings
    assert from_flat(yaml_text.parse(to_yaml(settings))) == settings


def test_defaults_are_named_where_they_were_changed():
    lines = to_yaml(from_flat({"seed": 3, "batch_size": 32})).splitlines()
    named = {line.split(":")[0] for line in lines if "(default: " in line}
    assert named == {"seed", "batch_size"}


@pytest.mark.parametrize(
    ("given", "actions"),
    [(31, 31), ("31", 31), ("31,15", (31, 15)), ([31, 15], (31, 15)), ((31,), (31,)), (None, None)],
)
def test_levels_of_actions_are_one_number_several_or_their_text(given, actions):
    assert Run(actions=given).actions == actions


def test_keys_of_nested_options_are_those_that_a_checkpoint_stores():
    assert Run(env_options={"rewards": {1: (0, 1)}}).env_options == {"rewards": {"1": [0, 1]}}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "dqn"}, "unknown algorithm 'dqn'"),
        ({"algorithm": ["deep_q"]}, "unknown algorithm"),
        ({"env": [1]}, "env must be the id"),
        ({"actions": 1}, "actions must be an integer of at least 2, got 1"),
        ({"actions": [3, "x"]}, "at least 2, got 'x'"),
        ({"env_options": 3}, "env_options must be names and values"),
        ({"env_options": {"a": object()}}, "env_options must be plain data"),
        ({"seed": -1}, "seed"),
        ({"episodes": 0}, "episodes must be an integer of at least 1"),
        ({"eval_episodes": 0}, "eval_episodes"),
        ({"save_every": 1.5}, "save_every"),
        ({"steps": 2**30}, "steps must be less than 2^30"),
        ({"tensorboard": "yes"}, "tensorboard must be True or False"),
        ({"sigma": 0.1}, "unknown option 'sigma' of deep_q"),
        ({"hidden": 8}, "net_arch"),
    ],
)
def test_an_invalid_option_is_named(options, message):
    with refused(message):
        from_flat(options)
