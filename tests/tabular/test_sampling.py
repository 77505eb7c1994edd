"""Samples of an MDP and of an environment: episodes, ends, seeds, and what is refused."""

from __future__ import annotations

import contextlib
import math

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from gymnasium_versions import newest
from planning_problems import BY_NAME
from refusals import refused
from tabular_environments import SOME, Chain, Masked, endings
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


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_class_or_a_function_makes_the_environment(wrapped):
    made = []

    class Short(Chain):
        def __init__(self):
            super().__init__(endings(), limit=5)
            made.append(self)

    def make():
        return gymnasium.wrappers.OrderEnforcing(Short())

    options = {"discount": 0.9, "steps": 200}
    result = q_learning(make if wrapped else Short, Sparse(0.1), **options)
    expected = q_learning(Chain(endings(), limit=5), Sparse(0.1), **options)
    assert np.array_equal(result.q, expected.q)
    assert result.source == "Short"
    assert [env.closed for env in made] == [True]


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


def learn(env, **options):
    return q_learning(env, Sparse(0.1), **{"discount": 0.9, "steps": 200, **options})


def test_an_environment_is_made_by_a_function_of_a_module():
    made = learn("gymnasium.envs.toy_text:FrozenLakeEnv")
    given = learn(gymnasium.make("FrozenLake-v1").unwrapped)
    np.testing.assert_array_equal(made.q, given.q)


def test_taxi_moves_into_no_wall_unless_its_masks_are_ignored():
    env = gymnasium.make(newest("Taxi"))
    allowed = np.array([env.unwrapped.action_mask(s) for s in range(500)], bool)
    masked = learn(env, steps=3_000)
    free = learn(newest("Taxi"), steps=3_000, masked=False)
    met = masked.visits.any(1)
    assert met.sum() > 100
    assert np.array_equal(np.isfinite(masked.q[met]), allowed[met])
    assert not masked.visits[~allowed].any()
    assert not masked.policy[met][~allowed[met]].any()
    assert free.visits[~allowed].sum() > 500
    assert np.isfinite(free.q[met]).all()


def test_a_function_of_the_environment_gives_the_same_masks():
    class WithoutInfo(Masked):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0], {}

        def step(self, action):
            return *super().step(action)[:4], {}

    env = WithoutInfo(endings(), SOME, limit=9)
    by_function = learn(env, action_mask=lambda env: env.action_mask())
    assert np.array_equal(by_function.q, learn(Masked(endings(), SOME, limit=9)).q)
    with refused("is missing in state", "masked=False", source="WithoutInfo"):
        learn(env, masked=True)


def test_a_continued_run_keeps_the_masks_of_states_that_it_does_not_meet():
    once = learn(Masked(endings(), SOME, limit=9))
    again = learn(Masked(endings(), SOME, limit=9), steps=1, initial=once, seed=1)
    assert np.array_equal(np.isneginf(again.q), ~SOME)
    free = learn(Chain(endings(), limit=9), initial=once, masked=False)
    assert np.isfinite(free.q).all()
    assert free.visits[~SOME].any()
    with refused('info["action_mask"] is missing in state'):
        learn(Chain(endings()), initial=once)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ([0, 0, 0], ["allows no action"]),
        ([1, 0], ["has the shape (2,), should be (3,)"]),
        ([0.5, 0.5, 0], ["of zeros and ones"]),
        (None, ["is missing", "give one in every state"]),
    ],
    ids=str,
)
def test_a_mask_that_cannot_be_used_is_refused_with_its_state(mask, words):
    class Wrong(Masked):
        def action_mask(self):
            return [1, 1, 1] if self.state < 2 else mask

        def step(self, action):
            seen, reward, *ends, _ = Chain.step(self, action)
            return seen, reward, *ends, {"action_mask": self.action_mask()}

    env = Wrong(endings(), np.ones((4, 3)), start=5)
    env.initial = np.array([1.0, 1, 1, 1])
    with pytest.raises(InvalidInput) as caught:
        learn(env)
    assert env.state >= 2
    assert caught.value.source == "Wrong"
    for part in ('info["action_mask"]', f"in state {env.state + 5}", *words):
        assert part in str(caught.value)


def test_masks_that_change_between_visits_are_refused():
    class Changing(Masked):
        def action_mask(self):
            return np.array([len(self.record) < 20, True, True])

    env = Changing(endings(), np.ones((4, 3)))
    with refused("allowed the actions [0, 1, 2]", "depend on the state alone", "masked=False"):
        learn(env)


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        (problems.forest(), {"masked": True}, ["an MDP has no masks", "leave masked out"]),
        (problems.forest(), {"action_mask": len}, ["no masks", "leave action_mask out"]),
        ("FrozenLake-v1", {"masked": "yes"}, ["masked must be True or False"]),
        ("FrozenLake-v1", {"masked": True}, ["missing in state 0"]),
        ("Taxi-v4", {"action_mask": [1]}, ["action_mask must be a function"]),
        ("Taxi-v4", {"action_mask": len, "masked": False}, ["masked=True or None"]),
    ],
    ids=str,
)
def test_impossible_requests_for_masks_are_refused(source, options, words):
    with refused(*words):
        learn(source, **options)
