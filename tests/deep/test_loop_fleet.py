"""The compiled program of a fleet leaves inactive agents alone and starts each as if alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from small_agents import CORRIDOR, corridor
from tsallax.deep import loop_fleet, loop_jax


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def started(n: int):
    """`n` agents before their first step."""
    agent = corridor()
    keys = jnp.stack([jax.random.PRNGKey(seed) for seed in range(n)])
    knobs = jax.tree.map(lambda x: jnp.stack([x] * n), agent._learner.knobs)
    return agent, loop_fleet.start(agent._algorithm, CORRIDOR, keys, knobs)


def test_agents_start_as_they_would_alone():
    agent, (learners, episodes) = started(4)
    first = jax.tree.map(lambda x: x[0], (learners, episodes))
    for found, expected in zip(leaves(first[0]), leaves(agent._learner)):
        np.testing.assert_array_equal(found, expected)
    alone = loop_jax.start_episodes(CORRIDOR, 1, loop_jax.first_key(0))
    for found, expected in zip(leaves(first[1]), leaves(alone)):
        np.testing.assert_array_equal(found, expected)


def test_only_active_agents_run():
    agent, (learners, episodes) = started(4)
    before = leaves((learners, episodes))
    active = jnp.asarray([True, False, True, False])
    run = loop_fleet.compiled_run_cycles("cpu")
    learners, episodes, log = run(
        agent._algorithm, CORRIDOR, True, 25, False, learners, episodes, agent._action_table,
        jnp.zeros((), jnp.int32), active,
    )  # fmt: skip
    assert log.loss.shape == (25, 4)
    assert np.all(np.asarray(log.loss)[:, [0, 2]] > 0)
    assert not np.asarray(log.loss)[:, [1, 3]].any()
    changed = [
        (new[i] != old[i]).any()
        for i in range(4)
        for new, old in [(leaves(learners.online)[0], before[0])]
    ]
    assert changed == [True, False, True, False]
    for old, new in zip(before, leaves((learners, episodes))):
        np.testing.assert_array_equal(old[1::2], new[1::2])
