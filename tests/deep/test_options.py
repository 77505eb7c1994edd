"""Options survive being written down; unknown ones are refused with the nearest known one."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from refusals import refused
from tsallax import DDPGConfig, DeepQConfig
from tsallax.deep.options import (
    RENAMED,
    from_file,
    from_mapping,
    hidden_layers,
    make_config,
    to_mapping,
)

CONFIGS = [DeepQConfig, DDPGConfig]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("alhpa", "did you mean alpha?"),
        ("learningrate", "did you mean learning_rate?"),
        ("lr", "use learning_rate"),
        ("exploration_fraction", "use epsilon=start:end:steps with explore=epsilon"),
        ("zzz", "choose from explore, update"),
        ("copy_every", "it is called target_update_interval now"),
    ],
)
def test_unknown_options_are_refused_with_a_hint(name, hint):
    with refused(f"unknown option '{name}'", hint):
        from_mapping(DeepQConfig, {name: 1})


def test_options_of_earlier_files_have_their_present_names():
    known = {f.name for kind in CONFIGS for f in dataclasses.fields(kind)}
    assert set(RENAMED.values()) <= known
    assert not set(RENAMED) & known
    old = {"batch": 8, "capacity": 64, "start": 0, "discount": 0.5, "alpha": 1}
    config = from_file(DeepQConfig, old)
    assert (config.batch_size, config.buffer_size, config.gamma) == (8, 64, 0.5)


def test_options_without_effect_in_earlier_files_are_left_out():
    old = {"explore": "soft", "epsilon": 0.2, "alpha": 0.1, "support": 0.3}
    assert from_file(DeepQConfig, old) == DeepQConfig(explore="soft")
    used = {"explore": "epsilon", "epsilon": 0.2, "alpha": "auto", "support": 0.3}
    assert from_file(DeepQConfig, used) == DeepQConfig(**used)


def test_options_given_by_name_replace_those_of_a_configuration():
    base = DeepQConfig(alpha=0.5, net_arch=(16,))
    changed = make_config(DeepQConfig, base, {"alpha": 0.25})
    assert (changed.alpha.start, changed.net_arch) == (0.25, (16,))
    assert make_config(DeepQConfig, {"net_arch": [4]}, {}).net_arch == (4,)
    assert make_config(DDPGConfig, None, {}) == DDPGConfig()
    with refused("config must be a DeepQConfig or a dict, not int"):
        make_config(DeepQConfig, 7, {})


@pytest.mark.parametrize(
    "config",
    [
        DeepQConfig(explore="tsallis", explore_q=1.5, alpha=(1.0, 1 / 3, 12345), huber=2.0),
        DeepQConfig(explore="epsilon", epsilon=0.07, net_arch=(32, 16), learning_rate=1 / 3000),
        DeepQConfig(batch_size=np.int64(8), learning_rate=np.float32(0.5), net_arch=np.array([4])),
        DDPGConfig(noise="ou", sigma="0.3:0.1:500", net_arch=[9, 8], actor_learning_rate=1e-4),
    ],
)
def test_a_configuration_is_the_same_after_it_was_written_as_json(config):
    again = from_file(type(config), json.loads(json.dumps(to_mapping(config))))
    assert again == config
    assert hash(again) == hash(config)


def test_the_networks_of_the_paper_are_the_defaults_for_its_tasks():
    assert hidden_layers(DeepQConfig(), "InvertedPendulum-v5") == (512, 512)
    assert hidden_layers(DeepQConfig(), "tsallax/Reacher-v5") == (256,) * 4
    assert hidden_layers(DeepQConfig(), "CartPole-v1") == (256, 256)
    assert hidden_layers(DeepQConfig(net_arch=(8,)), "Reacher-v5") == (8,)
    for given in (64, [64], "64", (64,)):
        assert DeepQConfig(net_arch=given).net_arch == (64,)
