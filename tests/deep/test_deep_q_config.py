"""Options are checked when they are given, and survive being written down."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsallax.deep import linear_schedule
from tsallax.deep.deep_q_config import DeepQConfig, from_mapping, hidden_layers, to_mapping
from tsallax.deep.linear_schedule import Linear
from tsallax.errors import InvalidInput

NAN, INF = float("nan"), float("inf")

REFUSED = [
    ({"explore": "greedy"}, "unknown explore 'greedy': choose from sparse, soft, epsilon, tsallis"),
    ({"explore": "hard"}, "unknown explore 'hard'"),
    ({"update": "epsilon"}, "unknown update 'epsilon': choose from sparse, soft, hard, tsallis"),
    ({"explore": None}, "unknown explore None"),
    ({"alpha": 0}, "alpha must be positive"),
    ({"alpha": -0.1}, "alpha must be positive, at least 1e-30 in single precision, got -0.1"),
    ({"alpha": NAN}, "alpha must be a number"),
    ({"alpha": INF}, "alpha must be a number"),
    ({"alpha": "warm"}, "alpha must be a number or start:end:steps, got 'warm'"),
    ({"alpha": "1:0:500"}, "alpha must be positive"),
    ({"alpha": "1:nan:500"}, "alpha must be a number"),
    ({"alpha": "1:0.1"}, "alpha must be a number or start:end:steps"),
    ({"alpha": "1:0.1:-5"}, "alpha must be a number or start:end:steps"),
    ({"alpha": None}, "alpha must be a number"),
    ({"explore": "tsallis"}, "explore=tsallis needs explore_q"),
    ({"update": "tsallis"}, "update=tsallis needs update_q"),
    ({"explore_q": 1.5}, "explore_q is for explore=tsallis, not sparse"),
    ({"explore": "tsallis", "explore_q": 0.0}, "explore_q must be a number above 0"),
    ({"update": "tsallis", "update_q": NAN}, "update_q must be a number above 0"),
    ({"epsilon": 1.5}, "epsilon must be between 0 and 1"),
    ({"epsilon": "1:-0.1:100"}, "epsilon must be between 0 and 1"),
    ({"uniform_share": -0.2}, "uniform must be between 0 and 1"),
    ({"beta": 2.0}, "beta must be between 0 and 1"),
    ({"gamma": 1.0}, "gamma must be a number of at least 0 and below 1, got 1.0"),
    ({"gamma": NAN}, "gamma must be a number"),
    ({"learning_rate": 0}, "learning_rate must be a number above 0, got 0"),
    ({"learning_rate": "fast"}, "learning_rate must be a number above 0, got 'fast'"),
    ({"learning_rate": INF}, "learning_rate must be a number above 0"),
    ({"batch_size": 0}, "batch must be a whole number of at least 1, got 0"),
    ({"batch_size": 6.5}, "batch must be a whole number"),
    ({"batch_size": True}, "batch must be a whole number"),
    ({"learning_starts": -1}, "start must be a whole number of at least 0"),
    ({"target_update_interval": 0}, "copy_every must be a whole number"),
    ({"train_freq": 0}, "update_every must be a whole number"),
    ({"n_envs": 0}, "environments must be a whole number"),
    ({"n_step": 0}, "n_step must be a whole number"),
    ({"buffer_size": 32, "batch_size": 64}, "capacity 32 is less than a batch of 64"),
    ({"priority": -1}, "priority must be a number of at least 0"),
    ({"huber": 0}, "huber must be a number above 0"),
    ({"max_grad_norm": -1}, "clip must be a number above 0"),
    ({"max_grad_norm": NAN}, "clip must be a number above 0"),
    ({"initial_value": NAN}, "initial_value must be a number, got nan"),
    ({"output_scale": -1}, "output_scale must be a number of at least 0"),
    ({"double": "no"}, "double must be True or False, got 'no'"),
    ({"shared_value": 1}, "common must be True or False"),
    ({"net_arch": (0,)}, "hidden must be whole widths, such as (256, 256)"),
    ({"net_arch": (64, 2.5)}, "hidden must be whole widths"),
    ({"net_arch": "64"}, "hidden must be whole widths"),
    ({"alhpa": 0.1}, "unknown option 'alhpa': did you mean alpha?"),
    ({"learningrate": 0.1}, "unknown option 'learningrate': did you mean learning_rate?"),
    ({"zzz": 1}, "unknown option 'zzz': choose from explore, update"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[str(o) for o, _ in REFUSED])
def test_bad_options_are_refused_in_one_line(options, message):
    with pytest.raises(InvalidInput) as refusal:
        from_mapping(DeepQConfig, options)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


def test_every_option_says_what_it_does():
    for option in dataclasses.fields(DeepQConfig):
        assert len(option.metadata["help"]) > 4


SCHEDULES = [
    0.1, "0.1", 1, (1, 0.1, 5000), [1.0, 0.1, 5000], "1:0.1:5000", "1e-3:2e-2:1e5", Linear(1, 2, 3),
]  # fmt: skip


@pytest.mark.parametrize("value", SCHEDULES, ids=str)
def test_a_schedule_is_a_number_or_three(value):
    schedule = linear_schedule.linear(value, "alpha")
    assert isinstance(schedule.start, float)
    assert linear_schedule.linear(linear_schedule.text(schedule), "alpha") == schedule


positive = st.floats(1e-30, 1e30)


@given(positive, positive, st.integers(0, 2**31))
def test_a_written_schedule_is_read_without_loss(start, end, steps):
    schedule = linear_schedule.linear((start, end, steps), "alpha")
    assert (
        linear_schedule.linear(json.loads(json.dumps(linear_schedule.text(schedule))), "alpha")
        == schedule
    )


@pytest.mark.parametrize(("start", "end"), [(1.0, 1e-9), (1e-9, 1.0), (0.3, 0.7), (0.1, 0.1)])
def test_a_schedule_stays_between_its_ends_and_reaches_them(start, end):
    """With alpha from 1 to 1e-9, one rounding the wrong way would make it zero."""
    schedule = Linear(*(np.float32(x) for x in (start, end, 1000)))
    found = np.array([linear_schedule.at(schedule, step) for step in (0, 1, 500, 999, 1000, 2000)])
    low, high = np.float32(min(start, end)), np.float32(max(start, end))
    assert np.all((found >= low * (1 - 1e-6)) & (found <= high * (1 + 1e-6)))
    assert found[0] == np.float32(start)
    assert found[-1] == found[-2] == np.float32(end)
    middle = (1 - 0.5) * start + 0.5 * end
    assert found[2] == pytest.approx(middle, rel=1e-6)


def test_a_configuration_is_the_same_after_it_was_written_as_json():
    config = DeepQConfig(
        explore="tsallis", explore_q=1.5, update="soft", alpha=(1.0, 1 / 3, 12345), epsilon=0.07,
        net_arch=(32, 16), huber=2.0, double=True, learning_rate=1 / 3000, beta="0.123456789:1:7",
    )  # fmt: skip
    again = from_mapping(DeepQConfig, json.loads(json.dumps(to_mapping(config))))
    assert again == config
    assert hash(again) == hash(config)


def test_numbers_of_numpy_are_taken_and_stored_as_plain_ones():
    config = DeepQConfig(
        batch_size=np.int64(8), learning_rate=np.float32(0.5), net_arch=np.array([4, 4])
    )
    assert type(config.batch_size) is int
    assert type(config.learning_rate) is float
    json.dumps(to_mapping(config))


def test_the_networks_of_the_paper_are_the_defaults_for_its_tasks():
    assert hidden_layers(DeepQConfig(), "InvertedPendulum-v5") == (512, 512)
    assert hidden_layers(DeepQConfig(), "tsallax/Reacher-v5") == (256,) * 4
    assert hidden_layers(DeepQConfig(), "CartPole-v1") == (256, 256)
    assert hidden_layers(DeepQConfig(net_arch=(8,)), "Reacher-v5") == (8,)
    assert DeepQConfig(net_arch=64).hidden == (64,)
