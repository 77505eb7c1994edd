"""An agent of a fleet learns what it would learn alone; fleets stop, shrink, save and resume."""

from __future__ import annotations

import math
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import tsallax
from refusals import refused
from small_agents import (
    CORRIDOR,
    SMALL_DDPG,
    TINY,
    VARIANTS,
    Episodic,
    corridor,
    leaves,
    member,
    trio,
)
from tsallax import DDPG, DDPGConfig, Diverged, Fleet, Member
from tsallax.deep import checkpoint
from tsallax.deep.loop_fleet import take
from tsallax.envs.jax.multigoal_env import multigoal
from tsallax.errors import InvalidInput


@pytest.fixture(scope="module", params=[True, False], ids=["together", "one by one"])
def fleet(request: pytest.FixtureRequest) -> Fleet:
    return trio(together=request.param).learn(steps=100)


def test_an_agent_of_a_fleet_learns_what_it_would_learn_alone(fleet):
    alone = corridor(seed=1, alpha=0.3).learn(steps=100)
    assert fleet.records[1].returns == pytest.approx(alone.history["episode_return"], rel=1e-5)
    network = fleet.records[1].acting_state[0]
    for found, expected in zip(leaves(network), leaves(alone._learner.online)):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    assert fleet.evaluate(1, 5).returns == pytest.approx(alone.evaluate(5).returns, rel=1e-3)
    assert fleet.records[0].returns != fleet.records[1].returns != fleet.records[2].returns


@pytest.mark.slow
@pytest.mark.parametrize("together", [True, False])
def test_a_fleet_of_ddpg_learns_what_its_agents_would_learn_alone(together, tmp_path: Path):
    members = [Member(DDPGConfig(sigma=s, **SMALL_DDPG), seed) for s, seed in ((0.1, 0), (0.3, 1))]
    fleet = Fleet("MultiGoal-v0", members, together=together).learn(
        steps=100, save_to=tmp_path / "fleet.npz"
    )
    alone = DDPG("MultiGoal-v0", sigma=0.3, seed=1, **SMALL_DDPG).learn(steps=100)
    assert fleet.records[1].returns == pytest.approx(alone.history["episode_return"], rel=1e-4)
    expected = alone.evaluate(5).returns
    assert fleet.evaluate(1, 5).returns == pytest.approx(expected, rel=1e-3)
    again = Fleet.load(tmp_path / "fleet.npz")
    assert again.evaluate(1, 5).returns == pytest.approx(expected, rel=1e-3)
    assert again.agent(1).evaluate(5).returns == pytest.approx(expected, rel=1e-3)


def test_a_description_that_makes_no_sense_is_refused(tmp_path: Path):
    path = tmp_path / "fleet.npz"
    Fleet("MultiGoal-v0", [member()], actions=3).save(path)
    about, arrays = checkpoint.read(path)
    wrong = {"steps": math.inf, "alive": [math.inf], "seconds": []}
    for name, value in wrong.items():
        checkpoint.write(path, {**about, name: value}, arrays)
        with refused("damaged: its description is wrong", source=path):
            Fleet.load(path)
    for changes in ({"alive": []}, {"alive": [1]}, {"finished_at": []}, {"steps": -1}):
        checkpoint.write(path, {**about, **changes}, arrays)
        with refused("damaged: its description is of another fleet"):
            Fleet.load(path)
    checkpoint.write(path, {**about, "kind": "deep_q"}, arrays)
    with refused("holds a deep_q agent, not a fleet"):
        Fleet.load(path)


def test_an_agent_can_be_taken_out_of_a_fleet(fleet, tmp_path: Path):
    agent = fleet.agent(1)
    assert (agent.steps, agent._learner.replay.capacity) == (fleet.steps, 1)
    for deterministic in (True, False):
        expected = fleet.evaluate(1, 5, deterministic).returns
        assert agent.evaluate(5, deterministic=deterministic).returns == pytest.approx(expected)
    agent.save(tmp_path / "agent.npz", replay=False)
    again = tsallax.DeepQ.load(tmp_path / "agent.npz")
    assert np.array_equal(again.policy([0.0, 1.0]), agent.policy([0.0, 1.0]))
    with refused("not learn"):
        agent.learn(steps=10)


def test_a_resumed_fleet_equals_an_uninterrupted_one_bit_for_bit(tmp_path: Path):
    whole, part = trio().learn(steps=100), trio()
    part.learn(steps=100, callback=lambda f: f.steps < 50, save_to=tmp_path / "fleet.npz")
    assert part.steps == 50
    rest = Fleet.load(tmp_path / "fleet.npz", CORRIDOR).learn(steps=100)
    assert [r.returns for r in rest.records] == [r.returns for r in whole.records]
    for found, expected in zip(leaves(rest._loop.learners), leaves(whole._loop.learners)):
        assert np.array_equal(found, expected)


def test_finished_agents_keep_their_episodes_wait_and_leave():
    """An agent that is finished learns nothing more; the arrays shrink when half are finished."""
    fleet = trio(alphas=(0.3, 30, 0.1))
    seen: dict[int, list[np.ndarray]] = {}
    waited, held = [], []

    def look(f: Fleet) -> None:
        held.append((len(f.learning), len(f._slots)))
        for slot, i in enumerate(f._slots):
            now = leaves(take(f._loop.learners, slot)._replace(target=None))
            if i in seen:
                waited.append(i)
                assert all(map(np.array_equal, now, seen[i]))
            elif f.records[i].finished_at is not None:
                seen[i] = now

    fleet.learn(episodes=60, callback=look)
    assert waited, "one must wait for the others"
    assert len({slots for _, slots in held}) > 1, "some must have left on the way"
    assert all(learning == 0 or n // 2 < learning <= n for learning, n in held)
    ends = [record.finished_at for record in fleet.records]
    assert [len(record.returns) for record in fleet.records] == [60] * 3
    assert all(end % TINY["target_update_interval"] == 0 for end in ends)
    assert fleet.steps == max(ends)
    alone = corridor(seed=1, alpha=30).learn(episodes=60)
    assert fleet.records[1].returns == pytest.approx(alone.history["episode_return"], rel=1e-5)


def test_what_a_fleet_cannot_do_is_refused(fleet):
    for bad in ({"episodes": 0}, {"steps": -5}, {"steps": 1.5}, {"steps": 9, "save_every": 0}):
        with refused("must be an integer of at least 1"):
            fleet.learn(**bad)
    with refused("no number of episodes or steps"):
        fleet.learn()
    for episodes in (0, 2.5):
        with refused("episodes must be an integer"):
            fleet.evaluate(0, episodes)
    for number in (-1, 99, "0", 1.0, None):
        with refused("has none numbered"):
            fleet.agent(number)
    steps = fleet.steps
    with refused("agent 0 of this fleet is finished, after"):
        fleet.learn(steps=steps + 50)
    assert fleet.learn(steps=steps) is fleet


def test_a_function_that_is_given_again_has_the_options_of_training(tmp_path: Path):
    def short(steps: int = 4) -> gymnasium.Env:
        return gymnasium.wrappers.TimeLimit(Episodic(), steps)

    Fleet(short, [member()], env_options={"steps": 2}, workers=0).save(tmp_path / "fleet.npz")
    again = Fleet.load(tmp_path / "fleet.npz", short)
    assert again.evaluate(0, 3).lengths.tolist() == [2, 2, 2]


def test_a_fleet_in_an_environment_without_an_id_stays_in_it(tmp_path: Path):
    still = multigoal(noise=0.0, reward_scale=5.0)
    fleet = Fleet(still, [member()], actions=3)
    fleet.save(tmp_path / "fleet.npz")
    with refused("without a way to make its environment: give it as env"):
        Fleet.load(tmp_path / "fleet.npz")
    again = Fleet.load(tmp_path / "fleet.npz", still)
    expected = fleet.evaluate(0, 5, seed=3).returns
    assert np.array_equal(again.evaluate(0, 5, seed=3).returns, expected)
    assert np.array_equal(fleet.agent(0).evaluate(5, seed=3).returns, expected)
    usual = Fleet("MultiGoal-v0", [member()], actions=3).evaluate(0, 5, seed=3).returns
    assert not np.array_equal(usual, expected), "the case must differ from the usual environment"


def test_an_agent_that_diverges_leaves_the_others_alone(tmp_path: Path):
    wild = member(*VARIANTS[1], seed=4, learning_rate=1e30)
    first, _, last = trio().members
    path = tmp_path / "fleet.npz"
    fleet = Fleet(CORRIDOR, [first, wild, last], actions=3, together=False)
    with pytest.raises(Diverged, match="agent 1 of this fleet is not finite after 25") as error:
        fleet.learn(steps=100, save_to=path)
    assert error.value.member == 1
    assert (fleet.steps, fleet.learning, fleet.diverged) == (100, [], [1])
    expected = trio(together=False).learn(steps=100)
    for i in (0, 2):
        assert fleet.records[i].returns == expected.records[i].returns
    again = Fleet.load(path, CORRIDOR)
    assert again.diverged == [1]
    _, none, last = again.evaluate_all(5)
    assert none is None
    for found in (last, again.evaluate(2, 5)):
        assert np.array_equal(found.returns, expected.evaluate(2, 5).returns)
    with refused("agent 1 of this fleet is not finite after 25"):
        again.evaluate(1, 5)


def test_a_fleet_without_an_agent_that_has_not_diverged_cannot_be_saved(tmp_path: Path):
    wild = [member(*variant, learning_rate=1e30) for variant in VARIANTS]
    fleet = Fleet(CORRIDOR, wild, actions=3)
    with pytest.raises(Diverged):
        fleet.learn(steps=300)
    with refused("cannot be saved"):
        fleet.save(tmp_path / "fleet.npz")


def test_a_file_has_no_empty_replay_rows_and_memory_is_checked_before(tmp_path: Path):
    fleet = Fleet(CORRIDOR, trio().members, actions=3).learn(steps=50)
    fleet.save(tmp_path / "fleet.npz")
    _, arrays = checkpoint.read(tmp_path / "fleet.npz")
    assert arrays["learner.replay.rows"].shape[:2] == (3, 50)
    again = Fleet.load(tmp_path / "fleet.npz", CORRIDOR)
    for found, expected in zip(leaves(again._loop.learners), leaves(fleet._loop.learners)):
        assert np.array_equal(found, expected)
    large = [member(buffer_size=10**9, seed=seed) for seed in range(100)]
    with pytest.raises(InvalidInput, match=r"of each of 100 agents, .* or train fewer agents"):
        Fleet(CORRIDOR, large, actions=3)


@pytest.mark.parametrize(
    ("asked", "found", "actions"),
    [(None, False, np.int64(3)), (True, True, np.array([3, 3])), (False, False, 3)],
)
def test_the_machine_decides_how_a_fleet_computes_unless_somebody_did(
    asked, found, actions, tmp_path
):
    """Numbers of NumPy are numbers."""
    fleet = Fleet("MultiGoal-v0", [member(seed=np.int64(3))], actions=actions, together=asked)
    fleet.save(tmp_path / "fleet.npz")
    again = Fleet.load(tmp_path / "fleet.npz")
    assert (again.together, again.members[0].seed, again.spec.n_actions) == (found, 3, 9)
