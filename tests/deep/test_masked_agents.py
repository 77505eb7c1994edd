"""Agents never take an action that its state does not allow, and learn from the allowed ones."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gymnasium_versions import newest
from refusals import refused
from small_agents import TINY, Episodic, assert_same
from tsallax import DeepQ
from tsallax.deep.learners import load_agent

MASKED = {**TINY, "uniform_share": 0.5}
"""Half of the actions are uniform among those that are allowed."""


class Masked(Episodic):
    """Allows in each state some choices of each dimension, and none in terminal states."""

    def __init__(self, actions: Any = None, in_info: bool = True) -> None:
        super().__init__(None, actions or Discrete(6))
        self.in_info = in_info

    def sizes(self) -> list[int]:
        if isinstance(self.action_space, Dict):
            return [2, 3]
        space = self.action_space
        return [int(space.n)] if isinstance(space, Discrete) else space.nvec.tolist()

    def masks(self) -> list[Any]:
        """A mask of each dimension, with at least one choice; the sole one of each in a third."""
        rng = np.random.default_rng([len(self.taken), self.t])
        rows = [rng.integers(0, 2, n).astype(np.int8) for n in self.sizes()]
        for row in rows:
            if self.t % 3 == 0:
                row[:] = 0
            row[rng.integers(len(row))] = 1
        return rows

    def action_mask(self, terminal: bool = False) -> Any:
        rows = [(1 - terminal) * row for row in self.masks()]
        if isinstance(self.action_space, Dict):
            return {"gear": rows[0], "turn": rows[1]}
        return rows[0] if isinstance(self.action_space, Discrete) else tuple(rows)

    def info(self) -> dict[str, Any]:
        return {"action_mask": self.action_mask()} if self.in_info else {}

    def reset(self, *, seed=None, options=None):
        seen, _ = super().reset(seed=seed)
        return seen, self.info()

    def step(self, action):
        numbers = action.values() if isinstance(action, dict) else np.atleast_1d(action)
        for row, number in zip(self.masks(), numbers, strict=True):
            assert row[number], f"{action} is not allowed"
        seen, reward, _, cut, _ = super().step(action)
        info = self.info()
        if cut and len(self.taken) % 2:
            return seen, reward, True, False, {"action_mask": self.action_mask(terminal=True)}
        return seen, reward, False, cut, info


SPACES = {
    "discrete": Discrete(6),
    "factored": MultiDiscrete([2, 3, 4]),
    "dict": Dict(gear=Discrete(2), turn=Discrete(3)),
}


@pytest.mark.parametrize(
    "case", ["discrete", "factored", pytest.param("dict", marks=pytest.mark.slow)]
)
def test_no_action_is_taken_that_is_not_allowed(case):
    agent = DeepQ(Masked(SPACES[case]), **MASKED).learn(steps=60)
    assert agent.spec.masked
    assert "masked" in repr(agent)
    other = Masked(SPACES[case])
    for deterministic in (True, False):
        assert agent.evaluate(4, deterministic, env=other).lengths.tolist() == [5] * 4
    assert np.isfinite(agent.history["trace_value"]).all()


def test_predictions_need_a_mask_and_follow_it():
    agent = DeepQ(Masked(), **MASKED).learn(steps=20)
    seen = np.random.default_rng(0).normal(size=(40, 4))
    with refused("Masked: the environment masks actions: give mask=info['action_mask']"):
        agent.predict(seen[0])
    with refused("Masked: the environment masks actions"):
        agent.policy(seen)
    assert agent.predict(seen[0], mask="all") == np.argmax(agent.q(seen[0]))
    mask = np.random.default_rng(1).integers(0, 2, (40, 6)).astype(np.int8)
    mask[:, 2] = 1
    q = agent.q(seen)
    best = np.argmax(np.where(mask == 1, q, -np.inf), -1)
    assert np.array_equal(agent.predict(seen, mask=mask), best)
    assert agent.predict(seen[3], mask=mask[3]) == best[3]
    for _ in range(5):
        drawn = agent.predict(seen, deterministic=False, mask=mask)
        assert mask[np.arange(40), drawn].all()
    p = agent.policy(seen, mask)
    assert (p[mask == 0] == 0).all()
    np.testing.assert_allclose(p.sum(-1), 1, rtol=1e-5)
    with refused("Masked: the mask has the shape (3,), should be (6,)"):
        agent.predict(seen[0], mask=[1, 0, 1])
    with refused("Masked: the mask allows no action"):
        agent.predict(seen[0], mask=np.zeros(6, np.int8))


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(mode, marks=[pytest.mark.slow] * (mode is not AutoresetMode.SAME_STEP))
        for mode in AutoresetMode
    ],
)
def test_vector_environments_have_masks(mode):
    env = SyncVectorEnv([Masked] * 2, autoreset_mode=mode)
    agent = DeepQ(env, **{**MASKED, "train_freq": 3}).learn(steps=60)
    assert agent.spec.masked
    assert agent.history.episodes >= 8


def test_taxi_is_masked_unless_that_is_refused():
    """The masks of Taxi forbid actions that leave the state as it is, which are counted here."""
    taxi = newest("Taxi")
    plain = DeepQ(taxi, masked=False, **MASKED)
    assert not plain.spec.masked
    agent = DeepQ(taxi, **MASKED).learn(steps=60)
    assert agent.spec.masked
    table = gymnasium.make(taxi).unwrapped
    memory = agent._learner.replay
    seen = np.asarray(memory.observations)[:60]
    actions = np.asarray(memory.rows)[:60, 0].astype(int)
    following = np.unpackbits(np.asarray(memory.masks)[:60], axis=1, count=6)
    for (state, after), action, mask in zip(seen, actions, following):
        assert table.action_mask(state)[action]
        assert np.array_equal(mask, table.action_mask(after))


def test_a_function_gives_the_mask_of_an_environment(tmp_path):
    def function(env):
        return env.unwrapped.action_mask()

    made = DeepQ(Masked(), **MASKED).learn(episodes=4)
    agent = DeepQ(Masked(in_info=False), action_mask=function, **MASKED).learn(episodes=4)
    assert_same(made, agent)
    agent.save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent", Masked(in_info=False), action_mask=function)
    other = Masked(in_info=False)
    assert again.evaluate(2, env=other).lengths.tolist() == [5, 5]
    with refused("agent: Masked: saved with a function that masks actions", "action_mask="):
        DeepQ.load(tmp_path / "agent", Masked())
    forgotten = DeepQ.load(tmp_path / "agent")
    assert forgotten.predict(np.zeros(4), mask=[0, 0, 1, 0, 0, 0]) == 2
    forgotten.save(tmp_path / "agent")
    with refused("Masked: saved with a function that masks actions: load it with one, action_mask"):
        DeepQ.load(tmp_path / "agent").evaluate(env=Masked())
    loaded = load_agent(tmp_path / "agent", action_mask=function)
    assert loaded.evaluate(1, env=other).lengths == [5]
    without = DeepQ(Masked(in_info=False), masked=True, **MASKED)
    with refused('Masked: reset returned no info["action_mask"]', "a function as action_mask"):
        without.learn(steps=5)
    with refused("action_mask is for single environments"):
        DeepQ(SyncVectorEnv([Masked] * 2), action_mask=function, **MASKED)
    with refused("action_mask must be a function"):
        DeepQ(Masked(), action_mask=7, **MASKED)


def test_a_function_for_an_agent_that_was_saved_without_masks_is_not_used(tmp_path):
    DeepQ("CartPole-v1", **TINY).save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent", action_mask=lambda env: pytest.fail("was called"))
    assert again.evaluate(1).lengths[0] > 0


def test_a_masked_agent_goes_on_from_a_file_as_if_it_had_not_stopped(tmp_path):
    class Seeded(Masked):
        """Masks that depend on the step of the episode alone."""

        def masks(self):
            number, self.taken = self.taken, [0] * self.t
            found = super().masks()
            self.taken = number
            return found

        def step(self, action):
            seen, reward, _, cut, _ = super().step(action)
            return seen, reward, False, cut or self.t >= 5, self.info()

    agent = DeepQ(Seeded(), **MASKED).learn(episodes=3)
    agent.save(tmp_path / "agent")
    again = DeepQ.load(tmp_path / "agent", Seeded())
    assert_same(again.learn(episodes=6), agent.learn(episodes=6))


WRONG = {
    "shape": (np.ones(5, np.int8), "has the shape (5,), should be (6,), after 3 steps"),
    "type": (np.full(6, 0.5), "should be of zeros and ones (int8), after 3 steps"),
    "nothing": (np.zeros(6, np.int8), "allows no action, after 3 steps of an episode"),
    "missing": (None, 'step returned no info["action_mask"] after 3 steps'),
}


@pytest.mark.parametrize("case", WRONG)
def test_masks_that_are_wrong_are_named_with_their_step(case):
    mask, message = WRONG[case]

    class Wrong(Masked):
        def step(self, action):
            seen, reward, ended, cut, info = super().step(action)
            return seen, reward, ended, cut, {"action_mask": mask} if self.t == 3 else info

    with refused("Wrong: ", message):
        DeepQ(Wrong(), **MASKED).learn(steps=10)


def test_masks_that_are_asked_for_must_be_there():
    with refused('CartPole-v1: reset returned no info["action_mask"]'):
        DeepQ("CartPole-v1", masked=True, **TINY)
    with refused("MultiGoal-v0: an environment in JAX has no masks"):
        DeepQ("MultiGoal-v0", actions=3, masked=True, **TINY)
