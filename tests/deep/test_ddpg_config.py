"""The options of `DDPG` are checked when they are given."""

from __future__ import annotations

from typing import Any

import pytest

from refusals import refused
from tsallax import DDPGConfig


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise": "white"}, "unknown noise 'white': choose from gaussian, ou, parameter"),
        ({"sigma": -0.1}, "sigma must be a number of at least 0"),
        ({"sigma": "much"}, "sigma must be a number or start:end:steps"),
        ({"tau": 0}, "tau must be a number above 0 and up to 1"),
        ({"tau": 1.5}, "tau must be a number above 0 and up to 1"),
        ({"ou_rate": 0}, "ou_rate must be"),
        ({"gamma": 1.0}, "gamma must be"),
        ({"actor_learning_rate": 0}, "actor_learning_rate must be"),
        ({"action_penalty": -1}, "action_penalty must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"batch_size": 500, "buffer_size": 100}, "buffer_size 100 is less than batch_size 500"),
        ({"beta": 2}, "beta must be a number"),
        ({"net_arch": (0,)}, "net_arch must be"),
    ],
)
def test_impossible_options_are_refused_in_one_line(options: dict[str, Any], words: str) -> None:
    with refused(words):
        DDPGConfig(**options)
