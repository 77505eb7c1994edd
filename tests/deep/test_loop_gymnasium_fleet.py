"""Agents of a fleet in Gymnasium environments learn as they would alone, and resume exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fleet_environments
from fleet_environments import Drift
from gymnasium_versions import newest
from refusals import refused
from small_agents import SMALL_DDPG, TINY, Episodic, leaves, member
from tsallax import DDPG, DDPGConfig, DeepQ, DeepQConfig, Fleet, Member
from tsallax.deep.loop import episode_seed, step_keys
from tsallax.deep.replay import ENDED, Transition
from tsallax.envs.gymnasium.environment_workers import WorkerLost
from tsallax.errors import InvalidInput

ALPHAS = (0.3, 3.0)


def pair(env: Any = "CartPole-v1", **options: Any) -> Fleet:
    """A fleet of two agents, their environments in this process."""
    members = [member(seed=i, alpha=alpha) for i, alpha in enumerate(ALPHAS)]
    return Fleet(env, members, **{"workers": 0, **options})


def assert_equal(a: Fleet, b: Fleet) -> None:
    """Two fleets are equal, bit for bit."""
    assert a.steps == b.steps
    assert [r.returns for r in a.records] == [r.returns for r in b.records]
    assert [r.running for r in a.records] == [r.running for r in b.records]
    first, second = a._loop.arrays(a.steps), b._loop.arrays(b.steps)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)


@pytest.mark.parametrize("together", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_without_overlap_an_agent_learns_what_it_would_learn_alone(together):
    fleet = pair(overlap=False, together=together).learn(steps=120)
    for i, alpha in enumerate(ALPHAS):
        alone = DeepQ("CartPole-v1", seed=i, **{**TINY, "alpha": alpha}).learn(steps=120)
        assert len(fleet.records[i].returns) > 2
        assert fleet.records[i].returns == alone.history["episode_return"].tolist()
        for found, expected in zip(
            leaves(fleet.records[i].acting_state[0]), leaves(alone._learner.online), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
        for deterministic in (True, False):
            expected = alone.evaluate(5, deterministic=deterministic)
            for agent in (
                lambda n, d, i=i: fleet.evaluate(i, n, d),
                lambda n, d, i=i: fleet.evaluate_all(n, d)[i],
                fleet.agent(i).evaluate,
            ):
                found = agent(5, deterministic)
                assert found.returns.tolist() == expected.returns.tolist()
                assert found.lengths.tolist() == expected.lengths.tolist()


def test_with_overlap_an_agent_acts_before_it_learns_from_the_step():
    """The order of the calls, written down for one agent and one environment."""
    fleet, seed, steps = pair(), 1, 60
    algorithm, hyperparameters = fleet._loop.algorithm, fleet._loop._hyperparameters[seed]
    init, act, store, learn = (
        jax.jit(getattr(algorithm, name)) for name in ("init", "act", "store", "learn")
    )
    learner = init(jax.random.PRNGKey(seed), hyperparameters)
    env, episode = gymnasium.make("CartPole-v1"), 0
    seen, _ = env.reset(seed=episode_seed(seed, 0, episode))
    action, _ = act(learner, seen[None], 0, step_keys(learner.key, 0)[0])
    taken = []
    for step in range(steps):
        taken.append(int(action[0]))
        after, reward, terminated, truncated, _ = env.step(taken[-1])
        fields = [[reward], after[None], [terminated], [truncated]]
        row = Transition(jnp.asarray(seen[None]), action, *map(jnp.asarray, fields))
        seen = after
        if terminated or truncated:
            episode += 1
            seen, _ = env.reset(seed=episode_seed(seed, 0, episode))
        following, _ = act(learner, seen[None], step + 1, step_keys(learner.key, step + 1)[0])
        learner = store(learner, row, step)
        learner, _ = learn(learner, step + 1, step_keys(learner.key, step)[1])
        if (step + 1) % TINY["target_update_interval"] == 0:
            learner = algorithm.copy(learner)
        action = following
    fleet.learn(steps=steps)
    found = fleet._loop.learners[seed]
    assert found.replay.columns(found.replay.rows)[2][:steps].tolist() == taken
    for x, y in zip(leaves(found.online), leaves(learner.online), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)
    exact = pair(overlap=False).learn(steps=steps)._loop.learners[seed]
    assert not np.allclose(exact.online.output.weight, found.online.output.weight, rtol=1e-2)


def test_results_do_not_depend_on_workers_nor_on_closing_them(tmp_path: Path):
    fleet, other = pair(fleet_environments.Drift), pair(fleet_environments.Drift, workers=2)
    fleet.learn(steps=60)
    other.learn(steps=60, callback=lambda f: f.close() if f.steps == 25 else None)
    for one, two in zip(fleet.records, other.records, strict=True):
        assert one.returns == pytest.approx(two.returns)
        assert len(one.returns) > 4
    assert other.evaluate(1, 3).returns == pytest.approx(fleet.evaluate(1, 3).returns)
    other.close()


@pytest.mark.parametrize("together", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_resumed_fleet_equals_an_uninterrupted_one_within_episodes_too(together, tmp_path: Path):
    path = tmp_path / "fleet.npz"
    whole = pair(together=together).learn(steps=100)
    part = pair(together=together)
    part.learn(steps=100, callback=lambda f: f.steps < 50, save_to=path)
    assert (part._loop.episodes.length > 0).any(), "some episode must be in progress"
    rest = Fleet.load(path)
    assert (rest.spec.name, rest.steps, rest.together) == ("CartPole-v1", 50, together)
    assert_equal(part, rest)
    assert_equal(whole, rest.learn(steps=100))


def test_an_episode_that_cannot_be_repeated_is_lost(tmp_path: Path):
    fleet = pair(fleet_environments.forgetful)
    fleet.learn(steps=100, callback=lambda f: False)
    assert (fleet.steps, fleet.records[0].running != 0) == (25, True)
    begun = fleet._loop.episodes.begun.copy()
    fleet.close()
    with pytest.warns(UserWarning, match=r"the agents \[0, 1\] could not be repeated"):
        fleet.learn(steps=100, callback=lambda f: False)
    assert fleet.steps == 50
    for i in range(2):
        row = np.asarray(fleet._loop.learners[i].replay.rows)[24]
        assert int(row[-1]) & ENDED, "the newest transition ends its episode"
        again = np.asarray(fleet._loop.learners[i].replay.rows)[25]
        assert not np.array_equal(row[4:8], again[:4])
    assert (fleet._loop.episodes.begun > begun).all()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        ("broken_step", InvalidInput, "step raised ValueError: joint 3 is broken (fleet_"),
        ("broken_reward", InvalidInput, "step returned the reward nan, after 4 steps of an"),
    ],
)
def test_an_error_of_an_environment_leaves_a_fleet_that_can_be_saved(make, error, words, tmp_path):
    path, trouble = tmp_path / "fleet.npz", getattr(fleet_environments, make)
    fleet = pair(trouble)
    with pytest.raises(error) as raised:
        fleet.learn(steps=50, save_to=path)
    assert str(raised.value).startswith(f"Drift: {words}")
    assert str(raised.value).endswith(" (environment 0)")
    assert raised.value.__notes__ == [f"the fleet of 3 steps was saved to {path}"]
    assert (fleet.steps, fleet.consistent) == (3, True)
    healthy = Fleet.load(path, Drift).learn(steps=50)
    assert_equal(healthy, pair(Drift).learn(steps=50))


def test_a_fleet_continues_after_its_workers_were_killed():
    fleet = pair(Drift, workers=1).learn(steps=100, callback=lambda f: f.steps < 25)
    fleet._loop._pool._workers[0].process.kill()
    with pytest.raises(WorkerLost, match="Drift: the process of environments 0 to 1 ended with"):
        fleet.learn(steps=50)
    assert fleet.steps == 25
    expected = pair(Drift).learn(steps=50).records[1].returns
    assert fleet.learn(steps=50).records[1].returns == pytest.approx(expected)
    fleet.close()


@pytest.mark.slow
def test_updates_follow_the_number_of_steps():
    members = [member(seed=i, train_freq=3, learning_starts=12) for i in range(2)]
    fleet = Fleet("CartPole-v1", members, workers=0, overlap=False).learn(steps=30)
    agent = DeepQ("CartPole-v1", seed=1, **{**TINY, "train_freq": 3, "learning_starts": 12})
    agent.learn(steps=30)
    assert [int(learner.adam.count) for learner in fleet._loop.learners] == [6, 6]
    assert fleet.records[1].returns == agent.history["episode_return"].tolist()


def test_finished_agents_leave_and_the_others_go_on():
    members = [member(seed=i, target_update_interval=5) for i in range(4)]
    fleet = Fleet("CartPole-v1", members, workers=0).learn(episodes=6)
    assert [len(record.returns) for record in fleet.records] == [6] * 4
    assert len({record.finished_at for record in fleet.records}) > 1
    assert len(fleet._loop.members) < 4
    last = int(fleet._loop.members[-1])
    alone = Fleet("CartPole-v1", [members[last]], workers=0).learn(episodes=6)
    assert fleet.records[last].returns == alone.records[0].returns


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_integers_and_masks_are_those_of_an_agent_alone(together, tmp_path: Path):
    """Taxi has integers as observations and masks in its infos."""
    members = [member(seed=i, buffer_size=64) for i in range(2)]
    fleet = Fleet(newest("Taxi"), members, overlap=False, workers=0, together=together)
    fleet.learn(steps=50, save_to=tmp_path / "fleet.npz")
    alone = DeepQ(newest("Taxi"), seed=1, **{**TINY, "buffer_size": 64}).learn(steps=50)
    assert alone.spec.masked
    memory = alone._learner.replay
    found = Fleet.load(tmp_path / "fleet.npz")._loop.arrays(64)
    for name in ("observations", "masks", "rows"):
        expected = np.asarray(getattr(memory, name))
        np.testing.assert_array_equal(found[f"learner.replay.{name}"][1], expected, err_msg=name)
    np.testing.assert_allclose(
        found["learner.online.output.weight"][1],
        alone._learner.online.output.weight,
        rtol=1e-3,
        atol=1e-5,
    )
    assert found["feed.mask"].shape == (2, 6)


@pytest.mark.slow
def test_factored_actions_are_those_of_an_agent_alone():
    options = {**TINY, "buffer_size": 64}
    members = [Member(DeepQConfig(**options), seed) for seed in range(2)]
    fleet = Fleet("HalfCheetah-v5", members, actions=3, overlap=False, workers=0).learn(steps=40)
    alone = DeepQ("HalfCheetah-v5", actions=3, seed=1, **options).learn(steps=40)
    assert alone.spec.factored
    found = fleet._loop.learners[1].replay.rows
    np.testing.assert_allclose(found, alone._learner.replay.rows, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
def test_a_fleet_of_ddpg_learns_what_its_agents_would_learn_alone(together, tmp_path: Path):
    members = [Member(DDPGConfig(sigma=s, **SMALL_DDPG), seed) for s, seed in ((0.1, 0), (0.3, 1))]
    fleet = Fleet("Pendulum-v1", members, together=together, overlap=False, workers=0)
    fleet.learn(steps=250, save_to=tmp_path / "fleet.npz")
    alone = DDPG("Pendulum-v1", sigma=0.3, seed=1, **SMALL_DDPG).learn(steps=250)
    assert fleet.records[1].returns == pytest.approx(alone.history["episode_return"], rel=1e-4)
    again = Fleet.load(tmp_path / "fleet.npz")
    assert again.evaluate(1, 3).returns == pytest.approx(alone.evaluate(3).returns, rel=1e-3)


def test_what_cannot_be_a_fleet_is_refused(tmp_path: Path):
    with refused("Episodic: a fleet makes an environment for each agent"):
        pair(Episodic())
    with refused("there is no such environment: did you mean CartPole"):
        pair("CartPoole-v1")
    with refused("use normalize_observations=True and"):
        pair(fleet_environments.normalized)
    for bad in ({"workers": -1}, {"workers": 1.5}, {"overlap": 1}, {"together": "yes"}):
        with refused(f"{next(iter(bad))} must be"):
            pair(**bad)
    path = tmp_path / "fleet.npz"
    pair(Drift).learn(steps=5, save_to=path)
    with refused("without a way to make its environment: give it as env"):
        Fleet.load(path)
