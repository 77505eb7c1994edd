"""The compiled loop runs Algorithm 1 in its order, and stores and logs what really happened."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from small_agents import CORRIDOR, assert_history_is_that_of, corridor, corridor_step, stored
from tsallax.deep import loop_jax
from tsallax.deep.loop import step_keys
from tsallax.deep.replay import Transition


@pytest.mark.parametrize("options", [{}, {"n_envs": 3, "train_freq": 2}], ids=str)
def test_the_memory_holds_the_trajectory_and_the_history_its_returns(options):
    agent = corridor(**options).learn(steps=90)
    trajectories = stored(agent)
    kinds: Counter[Any] = Counter()
    for rows in trajectories:
        assert rows[0]["seen"][1] == 0
        for row, following in zip(rows, [*rows[1:], None]):
            after, reward, terminated, truncated = corridor_step(row["seen"], row["action"])
            assert tuple(row["after"]) == after
            assert row["reward"] == pytest.approx(reward)
            assert row["terminated"] == terminated
            assert row["ended"] == (terminated or truncated)
            assert row["weight"] > 0
            kinds[terminated, truncated] += 1
            if following is not None and row["ended"]:
                assert following["seen"][1] == 0
                assert following["seen"][0] in (-1, 0, 1, 2)
            elif following is not None:
                assert np.array_equal(following["seen"], row["after"])
    assert kinds[True, False] > 1
    assert kinds[False, True] > 1
    assert_history_is_that_of(agent, trajectories)
    assert agent.history.lengths.sum() == sum(
        len(rows) - max((i + 1 for i, row in enumerate(rows) if row["ended"]), default=0)
        for rows in trajectories
    )


def test_environments_side_by_side_go_their_own_ways():
    a, b, c = (
        [(*row["seen"], row["action"]) for row in rows]
        for rows in stored(corridor(n_envs=3, train_freq=2).learn(steps=90))
    )
    assert a != b != c != a


def test_the_target_is_copied_every_c_steps_and_nothing_is_learned_before_the_start():
    start, train_freq = 20, 5
    agent = corridor(learning_starts=start, train_freq=train_freq)
    c = agent.config.target_update_interval

    def numbers() -> tuple[Any, Any, int]:
        learner = agent._learner
        nets = (jax.tree.map(np.array, learner.online), jax.tree.map(np.array, learner.target))
        return (*map(jax.tree.leaves, nets), int(learner.adam.count))

    def equal(a: Any, b: Any) -> bool:
        return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))

    online, target, updates = numbers()
    assert equal(online, target)
    for step in range(train_freq, 61, train_freq):
        agent.learn(steps=train_freq)
        assert agent.steps == step
        new_online, new_target, new_updates = numbers()
        learned = step > start
        assert new_updates == updates + learned
        assert equal(new_online, online) == (not learned)
        assert equal(new_target, new_online if step % c == 0 else target)
        online, target, updates = new_online, new_target, new_updates


def test_the_compiled_loop_is_algorithm_1_step_by_step():
    """Act, step, store, learn, copy, each as one plain call, with the same keys."""
    agent = corridor(seed=3)
    algorithm, learner = agent._algorithm, jax.tree.map(jnp.copy, agent._learner)
    started = loop_jax.start_episodes(CORRIDOR, 1, jax.random.fold_in(jax.random.PRNGKey(3), 1))
    state, seen = jax.tree.map(lambda x: x[0], started.state), started.observation[0]
    act, learn, add, move = map(
        jax.jit, (algorithm.act, algorithm.learn, algorithm.store, CORRIDOR.step)
    )
    actions = []
    for step in range(30):
        act_key, learn_key, reset_key = step_keys(learner.key, step)
        action, _ = act(learner, seen[None], step, act_key)
        actions.append(int(action[0]))
        state, after, reward, terminated, truncated = move(state, agent.actions[action[0]])
        row = (seen, action[0], reward, after, terminated, truncated)
        transition = Transition(*(jnp.asarray(part)[None] for part in row))
        learner = add(learner, transition, step)
        learner, _ = learn(learner, step + 1, learn_key)
        seen = after
        if terminated | truncated:
            started = loop_jax.start_episodes(CORRIDOR, 1, reset_key)
            state, seen = jax.tree.map(lambda x: x[0], started.state), started.observation[0]
        if (step + 1) % agent.config.target_update_interval == 0:
            learner = algorithm.copy(learner)
    agent.learn(steps=30)
    assert [row["action"] for row in stored(agent)[0]] == actions
    for a, b in zip(jax.tree.leaves(agent._learner), jax.tree.leaves(learner), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
