"""An agent of a fleet learns what it would learn alone; fleets stop, shrink, save and resume."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import tsallax
from tsallax.deep import checkpoint
from tsallax.deep.ddpg_config import DDPGConfig
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.fleet import Fleet, Member
from tsallax.envs.jax.multigoal_env import multigoal
from tsallax.errors import InvalidInput

OPTIONS: dict[str, Any] = {
    "net_arch": (8,),
    "batch_size": 8,
    "buffer_size": 300,
    "learning_starts": 50,
    "target_update_interval": 50,
}
VARIANTS = list(product(("sparse", "soft", "epsilon"), ("sparse", "soft", "hard")))


def member(explore: str = "sparse", update: str = "sparse", seed: int = 0, **more: Any) -> Member:
    return Member(DeepQConfig(explore=explore, update=update, **OPTIONS, **more), seed)


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


@pytest.fixture(scope="module", params=[True, False], ids=["together", "in turns"])
def fleet(request: pytest.FixtureRequest) -> Fleet:
    """Nine variants and two seeds, a hundred updates each."""
    members = [member(e, u, s, alpha=0.3) for (e, u), s in product(VARIANTS, (0, 1))]
    return Fleet("Reacher-v5", members, actions=3, together=request.param).learn(steps=150)


@pytest.mark.parametrize(("explore", "update"), [VARIANTS[0], VARIANTS[4], VARIANTS[8]])
def test_an_agent_of_a_fleet_learns_what_it_would_learn_alone(fleet, explore, update):
    i = 2 * VARIANTS.index((explore, update)) + 1
    alone = tsallax.DeepQ(
        "Reacher-v5", actions=3, explore=explore, update=update, alpha=0.3, seed=1, **OPTIONS
    ).learn(steps=150)
    assert fleet.records[i].returns == pytest.approx(alone.history["episode_return"], rel=1e-5)
    network = fleet.records[i].network[0]
    for found, expected in zip(leaves(network), leaves(alone._learner.online)):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    assert fleet.evaluate(i, 5).returns == pytest.approx(alone.evaluate(5).returns, rel=1e-3)


@pytest.mark.parametrize("together", [True, False])
def test_a_fleet_of_ddpg_learns_what_its_agents_would_learn_alone(together, tmp_path: Path):
    options: dict[str, Any] = {
        "net_arch": (8,),
        "batch_size": 8,
        "buffer_size": 300,
        "learning_starts": 50,
    }
    members = [Member(DDPGConfig(sigma=s, **options), seed) for s, seed in ((0.1, 0), (0.3, 1))]
    fleet = Fleet("Reacher-v5", members, together=together).learn(
        steps=150, save_to=tmp_path / "fleet.npz"
    )
    alone = tsallax.DDPG("Reacher-v5", sigma=0.3, seed=1, **options).learn(steps=150)
    assert fleet.records[1].returns == pytest.approx(alone.history["episode_return"], rel=1e-4)
    expected = alone.evaluate(5).returns
    assert fleet.evaluate(1, 5).returns == pytest.approx(expected, rel=1e-3)
    again = Fleet.load(tmp_path / "fleet.npz")
    assert again.evaluate(1, 5).returns == pytest.approx(expected, rel=1e-3)


def test_a_description_that_makes_no_sense_is_refused(tmp_path: Path):
    path = tmp_path / "fleet.npz"
    Fleet("MultiGoal-v0", [member()], actions=3).save(path)
    about, arrays = checkpoint.read(path)
    for name, wrong in (("steps", math.inf), ("alive", [math.inf]), ("seconds", [])):
        checkpoint.write(path, {**about, name: wrong}, arrays)
        with pytest.raises(InvalidInput, match="damaged: its description is wrong"):
            Fleet.load(path)


def test_agents_of_two_kinds_are_no_fleet():
    with pytest.raises(InvalidInput, match="all be of DeepQ or all of DDPG"):
        Fleet("Reacher-v5", [member(), Member(DDPGConfig(), 0)], actions=3)


def test_an_agent_can_be_taken_out_of_a_fleet(fleet, tmp_path: Path):
    i = 2 * VARIANTS.index(("soft", "sparse"))
    agent = fleet.agent(i)
    assert agent.steps == fleet.steps
    for deterministic in (True, False):
        expected = fleet.evaluate(i, 5, deterministic).returns
        assert agent.evaluate(5, deterministic=deterministic).returns == pytest.approx(expected)
    agent.save(tmp_path / "agent.npz", replay=False)
    again = tsallax.DeepQ.load(tmp_path / "agent.npz")
    seen = np.linspace(-1, 1, 10)
    assert np.array_equal(again.policy(seen), agent.policy(seen))
    with pytest.raises(InvalidInput, match="not learn"):
        agent.learn(steps=10)
    with pytest.raises(InvalidInput, match="none numbered 18"):
        fleet.agent(18)


def test_seeds_and_variants_are_independent(fleet):
    assert all(a.returns != b.returns for a, b in zip(fleet.records[::2], fleet.records[1::2]))
    weights = [leaves(record.network[0])[0].tobytes() for record in fleet.records]
    assert len(set(weights)) == len(weights)


def test_finished_agents_keep_their_episodes_and_the_fleet_shrinks():
    members = [member(seed=seed) for seed in range(4)]
    fleet = Fleet("InvertedPendulum-v5", members, actions=3)
    fleet.learn(episodes=12)
    ends = [record.finished_at for record in fleet.records]
    assert [len(record.returns) for record in fleet.records] == [12] * 4
    assert all(end is not None and end % OPTIONS["copy_every"] == 0 for end in ends)
    assert all(end >= sum(r.returns) for end, r in zip(ends, fleet.records))
    assert fleet.steps == max(ends)
    again = Fleet("InvertedPendulum-v5", members[:1], actions=3).learn(episodes=12)
    assert again.records[0].returns == pytest.approx(fleet.records[0].returns)


def test_a_resumed_fleet_equals_an_uninterrupted_one_bit_for_bit(tmp_path: Path):
    members = [member(seed=seed, update=u) for seed, u in ((0, "sparse"), (1, "soft"))]
    whole = Fleet("Reacher-v5", members, actions=3).learn(steps=200)
    part = Fleet("Reacher-v5", members, actions=3)
    part.learn(steps=200, callback=lambda f: f.steps < 100, save_to=tmp_path / "fleet.npz")
    assert part.steps == 100
    rest = Fleet.load(tmp_path / "fleet.npz").learn(steps=200)
    assert [r.returns for r in rest.records] == [r.returns for r in whole.records]
    for found, expected in zip(leaves(rest._learner), leaves(whole._learner)):
        assert np.array_equal(found, expected)


def test_members_must_share_what_shapes_the_program():
    odd = Member(DeepQConfig(**{**OPTIONS, "batch_size": 4}), 0)
    with pytest.raises(InvalidInput, match="same batch, not 8 and 4"):
        Fleet("Reacher-v5", [member(), odd], actions=3)
    with pytest.raises(InvalidInput, match="at least one member"):
        Fleet("Reacher-v5", [], actions=3)


def test_agents_that_are_finished_leave_when_half_of_them_are():
    """Episodes of pendulums end when they fall: the arrays hold those that still learn."""
    fleet = Fleet("InvertedPendulum-v5", [member(seed=seed) for seed in range(6)], actions=3)
    held = []
    fleet.learn(episodes=30, callback=lambda f: held.append((len(f.learning), len(f._alive))))
    assert len({alive for _, alive in held}) > 1, "some must have left on the way"
    for learning, alive in held:
        assert learning == 0 or alive // 2 < learning <= alive


def test_an_agent_that_is_finished_gets_no_more_turns():
    """Until it leaves it learns and stores nothing; the others learn on as they do without it."""
    settings = DeepQConfig(**{**OPTIONS, "target_update_interval": 10})
    members = [Member(settings, seed) for seed in range(6)]
    fleet = Fleet("InvertedPendulum-v5", members, actions=3, together=False)
    seen: dict[int, list[np.ndarray]] = {}
    waited = []

    def look(f: Fleet) -> None:
        for slot, i in enumerate(f._alive):
            now = leaves(f._member(slot)._replace(target=None))
            if i in seen:
                waited.append(i)
                assert all(map(np.array_equal, now, seen[i]))
            elif f.records[i].finished_at is not None:
                seen[i] = now

    fleet.learn(episodes=40, callback=look)
    assert waited, "one must wait for the others"
    last = int(np.argmax([record.finished_at for record in fleet.records]))
    alone = Fleet("InvertedPendulum-v5", [members[last]], actions=3, together=False)
    assert alone.learn(episodes=40).records[0].returns == fleet.records[last].returns


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (None, "a list of Members, not None"),
        ([], "at least one member"),
        ([3], "a fleet has Members, not int"),
        ([Member({"alpha": 1}, 0)], "a DeepQConfig or DDPGConfig, not dict"),
        ([member(seed=-1)], "seed must be a whole number from 0 to 2^32 - 1, got -1"),
        ([member(seed=2**32)], "seed must be a whole number"),
        ([member(seed=1.5)], "seed must be a whole number"),
        ([Member(DDPGConfig(), 0)], "actions=3 makes no sense with DDPG"),
    ],
)
def test_what_is_no_fleet_is_refused(members, words):
    with pytest.raises(InvalidInput) as refusal:
        Fleet("Reacher-v5", members, actions=3)
    assert words in str(refusal.value)


def test_what_a_fleet_cannot_do_is_refused(fleet):
    for bad in ({"episodes": 0}, {"steps": -5}, {"steps": 1.5}, {"steps": 9, "save_every": 0}):
        with pytest.raises(InvalidInput, match="must be a whole number of at least 1"):
            fleet.learn(**bad)
    for episodes in (0, -1, 2.5):
        with pytest.raises(InvalidInput, match="episodes must be a whole number"):
            fleet.evaluate(0, episodes)
    for number in (-1, 99, "0", 1.0, None):
        with pytest.raises(InvalidInput, match="has none numbered"):
            fleet.agent(number)
    steps = fleet.steps
    with pytest.raises(InvalidInput, match="agent 0 of this fleet was finished, for good, after"):
        fleet.learn(steps=steps + 50)
    assert fleet.learn(steps=steps) is fleet


def test_a_fleet_in_an_environment_without_a_name_stays_in_it(tmp_path: Path):
    still = multigoal(noise=0.0, reward_scale=5.0)
    fleet = Fleet(still, [member()], actions=3).learn(steps=100)
    fleet.save(tmp_path / "fleet.npz")
    with pytest.raises(InvalidInput, match="without a way to make its environment: give it as env"):
        Fleet.load(tmp_path / "fleet.npz")
    again = Fleet.load(tmp_path / "fleet.npz", still)
    expected = fleet.evaluate(0, 5).returns
    assert expected.mean() > 10, "the case must differ from the usual environment"
    assert np.array_equal(again.evaluate(0, 5).returns, expected)
    assert np.array_equal(fleet.agent(0).evaluate(5).returns, expected)
    with pytest.raises(InvalidInput, match="only environments that go by a name can be drawn"):
        fleet.agent(0)._world.drawn()


@pytest.mark.parametrize("together", [True, False])
def test_a_fleet_stops_where_an_agent_diverges(together, tmp_path: Path):
    members = [member(seed=1), member(seed=2, learning_rate=1e30)]
    fleet = Fleet("Reacher-v5", members, actions=3, together=together)
    with pytest.raises(FloatingPointError, match="agent 1 of this fleet is not finite after 100"):
        fleet.learn(steps=300)
    with pytest.raises(InvalidInput, match="cannot be saved"):
        fleet.save(tmp_path / "fleet.npz")


def test_how_a_fleet_computes_is_for_the_machine_to_say(tmp_path):
    """A file made on a GPU has no say in it on a CPU, unless somebody wanted it so."""
    for asked, found in ((None, False), (True, True), (False, False)):
        Fleet("Reacher-v5", [member()], actions=3, together=asked).save(tmp_path / "fleet.npz")
        assert Fleet.load(tmp_path / "fleet.npz").together is found


def test_numbers_of_numpy_are_numbers(tmp_path):
    for actions in (3, np.int64(3), np.array([3, 3])):
        fleet = Fleet("Reacher-v5", [member(seed=np.int64(3))], actions=actions)
        fleet.learn(steps=np.int64(50)).save(tmp_path / "fleet.npz")
        found = Fleet.load(tmp_path / "fleet.npz")
        assert (found.members[0].seed, found.steps, found.records[0].finished_at) == (3, 50, 50)
        assert found.world.n_actions == 9
