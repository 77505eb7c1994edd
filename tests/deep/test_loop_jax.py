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

SEVERAL = {"n_envs": 3, "train_freq": 2, "learning_starts": 18}


@pytest.mark.parametrize("options", [{}, SEVERAL], ids=["one", "several"])
def test_the_memory_holds_the_trajectory_and_the_history_its_returns(options):
    agent = corridor(**options).learn(steps=90)
    trajectories = stored(agent)
    ways = {tuple((*row["seen"], row["action"]) for row in rows) for rows in trajectories}
    assert len(ways) == agent.config.n_envs, "environments side by side go their own ways"
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


def test_the_target_is_copied_every_c_steps_and_nothing_is_learned_before_the_start():
    start, c, cycle = 18, 25, 6
    agent = corridor(**SEVERAL)

    def state() -> tuple[Any, Any, int]:
        learner = jax.tree.map(np.array, agent._learner)
        return *map(jax.tree.leaves, (learner.online, learner.target)), int(learner.adam.count)

    def equal(a: Any, b: Any) -> bool:
        return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))

    online, target, updates = state()
    assert equal(online, target)
    for step in range(cycle, 61, cycle):
        agent.learn(steps=step)
        assert agent.steps == step
        new_online, new_target, new_updates = state()
        learned = step > start
        assert new_updates == updates + learned
        assert equal(new_online, online) == (not learned)
        copied = step // c > (step - cycle) // c
        assert equal(new_target, new_online if copied else target)
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
