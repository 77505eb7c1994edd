"""The random keys of a step, and the seeds of an episode, are its own."""

from __future__ import annotations

import jax
import numpy as np

from tsallax.deep.loop import episode_seed, step_keys


def test_every_step_has_three_keys_of_its_own():
    keys = [np.asarray(step_keys(jax.random.PRNGKey(0), step)) for step in range(20)]
    assert len({key.tobytes() for three in keys for key in three}) == 60


def test_episodes_have_seeds_of_their_own():
    seeds = {episode_seed(s, e, n) for s in (0, 1) for e in range(3) for n in range(50)}
    assert len(seeds) == 300
    assert all(0 <= seed < 2**31 for seed in seeds)
