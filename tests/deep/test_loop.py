"""The random keys of a step are its own."""

from __future__ import annotations

import jax
import numpy as np

from tsallax.deep.loop import step_keys


def test_every_step_has_three_keys_of_its_own():
    keys = [np.asarray(step_keys(jax.random.PRNGKey(0), step)) for step in range(20)]
    assert len({key.tobytes() for three in keys for key in three}) == 60
