"""Samples of an MDP and of an environment: episodes, ends, seeds, and what is refused."""

from __future__ import annotations

import contextlib
import math

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from planning_problems import BY_NAME
from tabular_environments import Chain, endings
from tsallax import problems, solve
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP
from tsallax.regularizer import Hard, Sparse
from tsallax.tabular.learning import q_learning


def test_truncation_bootstraps_and_termination_does_not():
    for_ever = MDP([[[1.0]]], [[1.0]], 0.9)
    cut = q_learning(Chain(for_ever, limit=5), Hard(), discount=0.9, steps=20_000)
    assert cut.q[0, 0] == pytest.approx(10.0, rel=0.01)
    assert np.all(cut.returns == 5)
    over = MDP([[[0.0]]], [[1.0]], 0.9, termination=[[1.0]])
    ended = q_learning(Chain(over), Hard(), discount=0.9, steps=100)
    assert ended.q[0, 0] == 1.0
    assert ended.episodes == 100


def test_an_environment_is_seeded_once_and_closed_only_if_it_was_made_here(monkeypatch):
    env = Chain(endings(), limit=5)
    q_learning(env, Sparse(0.1), discount=0.9, steps=100, seed=7)
    assert env.resets[0] == 7
    assert set(env.resets[1:]) == {None}
    assert not env.closed
    monkeypatch.setattr(gymnasium, "make", lambda name, **options: env)
    q_learning("Chain-v0", Sparse(0.1), discount=0.9, steps=100)
    assert env.closed


def test_how_a_run_is_divided_into_chunks_does_not_change_it(monkeypatch):
    whole = q_learning(problems.forest(), Sparse(0.5), steps=10_000)
    monkeypatch.setattr("tsallax.tabular.sampling.MAX_CHUNK", 300)
    cut = q_learning(problems.forest(), Sparse(0.5), steps=10_000)
    assert np.array_equal(whole.q, cut.q)
    assert np.array_equal(whole.returns, cut.returns)


def test_episodes_end_at_the_limit_and_earn_their_rewards():
    ladder = BY_NAME["ladder-5"].mdp(initial=0)
    result = q_learning(ladder, Hard(), steps=4_000)
    assert np.all(result.returns == 1)
    assert np.all(result.lengths == 4)
    assert result.episodes == 1_000
    forest = problems.forest()
    assert np.all(q_learning(forest, Hard(), steps=5_000, limit=50).lengths == 50)
    assert np.all(q_learning(forest, Hard(), steps=5_000).lengths == 100)
    assert np.all(q_learning(forest, Hard(), discount=0.99, steps=5_000).lengths == 300)
    assert q_learning(forest, Hard(), steps=5_000, limit=math.inf).episodes == 0


def test_states_that_an_earlier_run_left_are_not_taken_for_ends():
    """In state 1 an episode may end or go on; a short run may see nothing but the end."""

    class Doubtful(gymnasium.Env):
        observation_space, action_space = Discrete(3), Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.state = 0
            return 0, {}

        def step(self, action):
            self.state += 1
            ended = self.state == 2 or self.np_random.random() < 0.5
            return self.state, 1.0, ended, False, {}

    once = q_learning(Doubtful(), Sparse(0.1), discount=0.9, steps=300)
    assert np.isfinite(once.q[1]).all()
    assert once.value[1] > 0.5
    for seed in range(6):
        more = q_learning(Doubtful(), Sparse(0.1), discount=0.9, steps=1, seed=seed, initial=once)
        assert more.steps == 301
        assert more.value[1] == pytest.approx(once.value[1])


def test_a_large_mdp_is_sampled_sparsely():
    mdp = problems.garnet(20_000, 10, 5)
    assert q_learning(mdp, Sparse(0.1), steps=10_000).steps == 10_000


def test_vector_environments_and_broken_ones_are_refused():
    vector = gymnasium.make_vec("FrozenLake-v1", num_envs=2)
    with contextlib.closing(vector), pytest.raises(InvalidInput, match="give one environment"):
        q_learning(vector, Hard(), discount=0.9)
    env = Chain(endings())
    env.observation_space = Discrete(2)
    with pytest.raises(InvalidInput, match="not in its observation space"):
        q_learning(env, Hard(), discount=0.9, steps=1_000)
    env = Chain(endings())
    env.step = lambda action: (0, math.nan, False, False, {})
    with pytest.raises(InvalidInput, match=r"the reward of action \d in state \d is nan"):
        q_learning(env, Hard(), discount=0.9, steps=10)


MASK = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 1], [0, 1, 1]], np.int8)


class Masked(Chain):
    """A chain whose states allow some actions."""

    mask = MASK

    def reset(self, *, seed=None, options=None):
        seen, _ = super().reset(seed=seed)
        return seen, {"action_mask": self.mask[self.state]}

    def step(self, action):
        *result, _ = super().step(action)
        return *result, {"action_mask": self.mask[self.state]}


@pytest.mark.parametrize("explore", [None, "epsilon", "uniform"])
def test_actions_that_a_state_does_not_allow_are_neither_taken_nor_in_the_target(explore):
    """The oracle solves the MDP in which such actions cost so much that they have probability 0."""
    whole, regularizer = endings(), Sparse(0.1)
    costs = np.where(MASK == 1, np.asarray(whole.rewards).reshape(4, 3), -1000.0)
    exact = solve(
        MDP(
            whole.transitions.toarray().reshape(4, 3, 4),
            costs,
            whole.discount,
            termination=np.asarray(whole.termination).reshape(4, 3),
        ),
        regularizer,
    )
    env = Masked(whole)
    found = q_learning(env, regularizer, discount=0.8, steps=20_000, epsilon=0.3, explore=explore)
    assert all(MASK[s, a] for s, a, *_ in env.record)
    assert np.array_equal(found.q == -np.inf, MASK == 0)
    assert np.array_equal(found.policy[MASK == 0], np.zeros(np.sum(MASK == 0)))
    assert np.abs(found.q - exact.q)[MASK == 1].max() < 0.15
    assert np.abs(found.value - exact.value).max() < 0.15
    more = q_learning(env, regularizer, discount=0.8, steps=50, initial=found, seed=1)
    assert more.steps == 20_050
    assert np.array_equal(more.q == -np.inf, MASK == 0)


def test_masks_of_tables_are_ignored_required_or_refused():
    env = Masked(endings())
    ignored = q_learning(env, Sparse(0.1), discount=0.8, steps=200, masked=False)
    assert np.isfinite(ignored.q).all()
    with pytest.raises(InvalidInput, match=r'Chain: gave no info\["action_mask"\] in state'):
        q_learning(Chain(endings()), Sparse(0.1), discount=0.8, steps=10, masked=True)
    with pytest.raises(InvalidInput, match="an MDP has the actions of each state"):
        q_learning(endings(), Sparse(0.1), steps=10, masked=True)
    for wrong, message in ((np.zeros((4, 3), int), "at least a one"), (np.ones((4, 2)), "3 zeros")):
        env.mask = wrong
        with pytest.raises(InvalidInput, match=message):
            q_learning(env, Sparse(0.1), discount=0.8, steps=10)

    class Changing(Masked):
        def step(self, action):
            self.mask = 1 - (1 - MASK) * (len(self.record) % 2)
            return super().step(action)

    with pytest.raises(InvalidInput, match="not always the same: use DeepQ, or masked=False"):
        q_learning(Changing(endings()), Sparse(0.1), discount=0.8, steps=100)
