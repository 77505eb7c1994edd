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
from tsallax import problems
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
