"""The keys of a step are its own, and both loops have the interface of `Loop`."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from small_agents import cart_pole, corridor, trained
from tsallax.deep.loop import Loop, step_keys


def test_every_step_has_three_keys_of_its_own():
    keys = [np.asarray(step_keys(jax.random.PRNGKey(0), step)) for step in range(20)]
    assert len({key.tobytes() for three in keys for key in three}) == 60


@pytest.mark.parametrize("make", [corridor, cart_pole], ids=["jax", "gymnasium"])
def test_a_loop_has_the_interface_of_the_protocol(make):
    loop = trained(make)._loop
    methods = [name for name in vars(Loop) if not name.startswith("_")]
    assert all(hasattr(loop, name) for name in [*methods, *Loop.__annotations__])
    assert loop.in_progress
