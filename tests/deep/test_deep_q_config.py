"""The options of `DeepQ` are checked when they are given."""

from __future__ import annotations

import pytest

from tsallax import DeepQConfig
from tsallax.errors import InvalidInput

NAN = float("nan")

REFUSED = [
    ({"explore": "greedy"}, "unknown explore 'greedy': choose from sparse, soft, epsilon, tsallis"),
    ({"update": "epsilon"}, "unknown update 'epsilon': choose from sparse, soft, hard, tsallis"),
    ({"explore": None}, "unknown explore None"),
    ({"alpha": -0.1}, "alpha must be a number of at least 1e-30, got -0.1"),
    ({"alpha": NAN}, "alpha must be a number"),
    ({"alpha": "warm"}, "alpha must be a number or start:end:steps, got 'warm'"),
    ({"alpha": "1:0:500"}, "alpha must be a number of at least 1e-30"),
    ({"alpha": None}, "alpha must be a number"),
    (
        {"explore": "tsallis"},
        "explore=tsallis needs an entropic index: give explore_q, such as explore_q=1.5",
    ),
    ({"update": "tsallis"}, "update=tsallis needs an entropic index: give update_q"),
    ({"explore_q": 1.5}, "explore_q is for explore=tsallis, not sparse: leave explore_q out"),
    ({"explore": "tsallis", "explore_q": 0.0}, "explore_q must be a number above 0"),
    ({"update": "tsallis", "update_q": NAN}, "update_q must be a number above 0"),
    ({"epsilon": "1:-0.1:100"}, "epsilon must be a number of at least 0 and up to 1"),
    (
        {"epsilon": 0.1},
        "epsilon is for explore=epsilon, not sparse: give explore=epsilon, or un",
    ),
    ({"explore": "soft", "epsilon": "1:0.1:50"}, "epsilon is for explore=epsilon, not soft"),
    ({"support": 0.2}, "support is for alpha=auto: leave support out"),
    ({"uniform_share": -0.2}, "uniform_share must be a number"),
    ({"beta": 2.0}, "beta must be a number"),
    ({"gamma": 1.0}, "gamma must be a number of at least 0 and below 1, got 1.0"),
    ({"learning_rate": "fast"}, "learning_rate must be a number or start:end:steps, got 'fast'"),
    ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
    ({"batch_size": True}, "batch_size must be an integer"),
    ({"learning_starts": -1}, "learning_starts must be an integer of at least 0"),
    ({"target_update_interval": 0}, "target_update_interval must be an integer"),
    ({"train_freq": 0}, "train_freq must be an integer"),
    ({"n_envs": 0}, "n_envs must be an integer"),
    ({"n_step": 0}, "n_step must be an integer"),
    ({"buffer_size": 32, "batch_size": 64}, "buffer_size 32 is less than batch_size 64"),
    ({"priority": -1}, "priority must be a number of at least 0"),
    ({"huber": 0}, "huber must be a number above 0"),
    ({"max_grad_norm": -1}, "max_grad_norm must be a number above 0"),
    ({"initial_value": NAN}, "initial_value must be a number, got nan"),
    ({"output_scale": -1}, "output_scale must be a number of at least 0"),
    ({"double": "no"}, "double must be True or False, got 'no'"),
    ({"shared_value": 1}, "shared_value must be True or False"),
    ({"net_arch": (0,)}, "net_arch must be integers, such as (256, 256)"),
    ({"net_arch": "64,x"}, "net_arch must be integers"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[str(o) for o, _ in REFUSED])
def test_bad_options_are_refused_in_one_line(options, message):
    with pytest.raises(InvalidInput) as refusal:
        DeepQConfig(**options)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)
