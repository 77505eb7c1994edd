"""The compiled program of a fleet leaves inactive agents alone and starts each as if alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from small_agents import CORRIDOR, corridor, leaves, trio
from tsallax.deep import loop_fleet, loop_jax


def test_agents_start_as_they_would_alone():
    fleet, alone = trio(), corridor(seed=1, alpha=0.3)
    fields = ("key", "online", "target", "adam", "replay")
    for name in fields:
        of_all, expected = (getattr(x, name) for x in (fleet._loop.learners, alone._learner))
        for found, wanted in zip(leaves(of_all), leaves(expected), strict=True):
            np.testing.assert_array_equal(found[1], wanted)
    episodes = loop_jax.start_episodes(CORRIDOR, 1, loop_jax.first_key(1))
    for found, wanted in zip(leaves(fleet._loop.episodes), leaves(episodes), strict=True):
        np.testing.assert_array_equal(found[1], wanted)


def test_only_active_agents_run():
    fleet = trio()
    loop, active = fleet._loop, np.array([True, False, True])
    before = leaves((loop.learners, loop.episodes))
    weights = np.asarray(loop.learners.online.output.weight)
    run = loop_fleet.compiled_run_cycles(jax.default_backend())
    learners, episodes, log = run(
        loop.algorithm, CORRIDOR, True, 25, False, loop.learners, loop.episodes,
        loop.action_table, jnp.zeros((), jnp.int32), active,
    )  # fmt: skip
    assert log.loss.shape == (25, 3)
    assert np.all(np.asarray(log.loss)[:, [0, 2]] > 0)
    assert not np.asarray(log.loss)[:, 1].any()
    changed = np.any(np.asarray(learners.online.output.weight) != weights, axis=(1, 2))
    assert changed.tolist() == active.tolist()
    for old, new in zip(before, leaves((learners, episodes)), strict=True):
        np.testing.assert_array_equal(old[1], new[1])
