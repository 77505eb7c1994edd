"""The loops run Algorithm 1 in its order, and store and note down what really happened."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from small_agents import CORRIDOR, LIMIT, TINY, corridor_step
from tsallax import DeepQ
from tsallax.deep import loop_gymnasium, loop_jax
from tsallax.deep.history import History
from tsallax.deep.replay import ENDED, TERMINATED, Transition


def corridor(seed: int = 0, **options: Any) -> DeepQ:
    return DeepQ(CORRIDOR, actions=3, seed=seed, **{**TINY, **options})


def stored(agent: DeepQ) -> list[list[dict[str, Any]]]:
    """What is in the memory, in the order of time, for each environment."""
    memory, n = jax.tree.map(np.asarray, agent._learner.replay), agent.config.n_envs
    assert agent.steps <= len(memory.reward), "nothing may have been overwritten"
    rows = [
        {
            "seen": memory.observation[i],
            "action": int(memory.action[i]),
            "reward": float(memory.reward[i]),
            "after": memory.next_observation[i],
            "terminated": bool(memory.flags[i] & TERMINATED),
            "ended": bool(memory.flags[i] & ENDED),
            "weight": float(memory.priority.ravel()[i]),
        }
        for i in range(agent.steps)
    ]
    return [rows[e::n] for e in range(n)]


def episodes_of(trajectories: Any) -> list[tuple[int, float, int]]:
    """(step at the end, return, length) of the finished episodes, in the order of their ends."""
    n, found = len(trajectories), []
    for rows in trajectories:
        total, length = 0.0, 0
        for t, row in enumerate(rows):
            total, length = total + row["reward"], length + 1
            if row["ended"]:
                found.append(((t + 1) * n, total, length))
                total, length = 0.0, 0
    return sorted(found, key=lambda episode: episode[0])


def assert_history_is_that_of(agent: DeepQ, trajectories: Any) -> None:
    h = agent.history
    noted = list(zip(h["episode_step"], h["episode_return"], h["episode_length"]))
    expected = episodes_of(trajectories)
    assert len(noted) == len(expected)
    assert [step for step, _, _ in noted] == [step for step, _, _ in expected]
    assert sorted(noted) == [pytest.approx(episode) for episode in sorted(expected)]


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
    start, update_every = 20, 5
    agent = corridor(learning_starts=start, train_freq=update_every)
    c = agent.config.target_update_interval

    def numbers() -> tuple[Any, Any, int]:
        learner = agent._learner
        nets = (jax.tree.map(np.array, learner.online), jax.tree.map(np.array, learner.target))
        return (*map(jax.tree.leaves, nets), int(learner.adam.count))

    def equal(a: Any, b: Any) -> bool:
        return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))

    online, target, updates = numbers()
    assert equal(online, target)
    for step in range(update_every, 61, update_every):
        agent.learn(steps=update_every)
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
    feed = loop_jax.begin(CORRIDOR, 1, jax.random.fold_in(jax.random.PRNGKey(3), 1))
    state, seen = jax.tree.map(lambda x: x[0], feed.state), feed.observation[0]
    act, learn, add, move = map(
        jax.jit, (algorithm.act, algorithm.learn, algorithm.store, CORRIDOR.step)
    )
    actions = []
    for step in range(30):
        act_key, learn_key, reset_key = loop_jax.keys(learner.key, step)
        action, _ = act(learner, seen[None], step, act_key)
        actions.append(int(action[0]))
        state, after, reward, terminated, truncated = move(state, agent.actions[action[0]])
        row = (seen, action[0], reward, after, terminated, truncated)
        transition = Transition(*(jnp.asarray(part)[None] for part in row))
        learner = add(learner, transition, step)
        learner, _ = learn(learner, step + 1, learn_key)
        seen = after
        if terminated | truncated:
            feed = loop_jax.begin(CORRIDOR, 1, reset_key)
            state, seen = jax.tree.map(lambda x: x[0], feed.state), feed.observation[0]
        if (step + 1) % agent.config.target_update_interval == 0:
            learner = algorithm.copy(learner)
    agent.learn(steps=30)
    assert [row["action"] for row in stored(agent)[0]] == actions
    for a, b in zip(jax.tree.leaves(agent._learner), jax.tree.leaves(learner), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_evaluation_plays_the_greedy_policy_to_the_end():
    agent = corridor().learn(steps=50)
    possible = {}
    for start in (-1.0, 0.0, 1.0, 2.0):
        seen, total, length, over = (start, 0.0), 0.0, 0, False
        while not over:
            action = int(np.argmax(agent.q(seen)))
            seen, reward, terminated, truncated = corridor_step(seen, action)
            total, length, over = total + reward, length + 1, terminated or truncated
        possible[round(total, 3)] = length
    result = agent.evaluate(40)
    found = dict(zip(np.round(result.returns, 3).tolist(), result.lengths.tolist()))
    assert found == possible
    sampled = agent.evaluate(40, deterministic=False)
    assert not np.array_equal(sampled.returns, result.returns)
    assert sampled.lengths.max() <= LIMIT


def test_a_history_does_not_depend_on_how_much_is_recorded_at_a_time():
    rng = np.random.default_rng(0)
    rewards, ended = rng.normal(size=(300, 3)), rng.random((300, 3)) < 0.05
    whole = History(running=np.zeros(3), lengths=np.zeros(3, np.int64))
    whole.record(900, rewards.astype(np.float32), ended)
    parts = History(running=np.zeros(3), lengths=np.zeros(3, np.int64))
    cuts = [0, 1, 2, 50, 51, 177, 300]
    for begin, end in pairwise(cuts):
        parts.record(3 * end, rewards[begin:end].astype(np.float32), ended[begin:end])
    for name, column in whole.arrays().items():
        np.testing.assert_array_equal(parts.arrays()[name], column, err_msg=name)
    assert np.all(np.diff(whole["episode_step"]) >= 0)


# Gymnasium -----------------------------------------------------------------------------------


def test_cart_pole_is_stored_as_it_happened():
    """Play the stored actions again, from the seeds of the episodes."""
    agent = DeepQ("CartPole-v1", seed=5, **TINY).learn(steps=90)
    again = gymnasium.make("CartPole-v1")
    episode = 0
    (rows,) = stored(agent)
    seen, _ = again.reset(seed=loop_gymnasium.seed_of(5, 0, 0))
    for row in rows:
        assert np.array_equal(row["seen"], seen)
        seen, reward, terminated, truncated, _ = again.step(row["action"])
        assert np.array_equal(row["after"], seen)
        assert row["reward"] == reward
        assert row["terminated"] == terminated
        assert row["ended"] == (terminated or truncated)
        if row["ended"]:
            episode += 1
            seen, _ = again.reset(seed=loop_gymnasium.seed_of(5, 0, episode))
    assert episode >= 2
    assert_history_is_that_of(agent, [rows])


def test_a_time_limit_on_the_host_is_a_truncation_with_its_true_last_observation():
    env = gymnasium.make("CartPole-v1", max_episode_steps=6)
    agent = DeepQ(env, **TINY).learn(steps=30)
    (rows,) = stored(agent)
    assert list(agent.history["episode_length"]) == [6] * 5
    for t, row in enumerate(rows):
        assert row["ended"] == (t % 6 == 5)
        assert not row["terminated"]
        if t % 6 < 5:
            assert np.array_equal(row["after"], rows[t + 1]["seen"])
        elif t < 29:
            assert not np.array_equal(row["after"], rows[t + 1]["seen"])


def test_updates_on_the_host_come_every_so_many_steps_and_not_before_the_start():
    agent = DeepQ("CartPole-v1", **{**TINY, "learning_starts": 12, "n_envs": 2, "train_freq": 3})
    agent.learn(steps=30)
    assert int(agent._learner.adam.count) == (30 - 12) // 6
    same = jax.tree.map(np.array_equal, agent._learner.online, agent._learner.target)
    assert all(jax.tree.leaves(same)), "copied after 30 steps, the first time past 25"
    agent.learn(steps=6)
    same = jax.tree.map(np.array_equal, agent._learner.online, agent._learner.target)
    assert not any(jax.tree.leaves(same)), "and not again"


class Watched(gymnasium.vector.VectorWrapper):
    """Takes note of the episodes that a vector environment goes through."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.running = [[] for _ in range(env.num_envs)]
        self.episodes: list[tuple[float, int]] = []
        self.resetting = np.zeros(env.num_envs, bool)

    def step(self, actions: Any) -> Any:
        result = self.env.step(actions)
        over = result[2] | result[3]
        for e in np.flatnonzero(~self.resetting):
            self.running[e].append(float(result[1][e]))
            if over[e]:
                self.episodes.append((sum(self.running[e]), len(self.running[e])))
                self.running[e] = []
        self.resetting = over & (self.env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP)
        return result


def cart_poles(mode: AutoresetMode | None) -> Any:
    if mode is None:  # Gymnasium's own vector of cart poles, which spends a step on resetting
        return gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point")
    return SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2, autoreset_mode=mode)


@pytest.mark.parametrize("mode", [None, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED], ids=str)
def test_the_history_of_a_vector_environment_is_that_of_its_episodes(mode):
    env = Watched(cart_poles(mode))
    agent = DeepQ(env, **TINY).learn(steps=90)
    noted = zip(agent.history["episode_return"].tolist(), agent.history["episode_length"].tolist())
    assert list(noted) == env.episodes
    assert len(env.episodes) >= 2


def test_a_step_that_a_vector_environment_spends_on_resetting_is_never_drawn():
    agent = DeepQ(cart_poles(None), **TINY).learn(steps=90)
    for rows in stored(agent):
        for row, following in pairwise(rows):
            assert (following["weight"] == 0) == row["ended"]
    assert np.isfinite(
        np.concatenate([x.ravel() for x in jax.tree.leaves(agent._learner[0])])
    ).all()
