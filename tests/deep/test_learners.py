"""Every learner declares what fleets, files and the command line need; `load_agent` reads all."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from refusals import refused
from small_agents import CORRIDOR, corridor
from tsallax import DDPG, DDPGConfig, DeepQ, DeepQConfig, Fleet, load_agent
from tsallax.deep import checkpoint
from tsallax.deep.environment_spec import make_spec
from tsallax.deep.learners import LEARNERS, learner_of
from tsallax.errors import InvalidInput

DATA = Path(__file__).parents[1] / "data"


def test_learners_are_found_by_name_and_by_their_options():
    assert {"deep_q": DeepQ, "ddpg": DDPG} == LEARNERS
    assert learner_of(DeepQConfig()) is DeepQ
    assert learner_of(DDPGConfig()) is DDPG
    with refused("a DeepQConfig or DDPGConfig, not dict"):
        learner_of({})


@pytest.mark.parametrize("learner", LEARNERS.values())
def test_members_of_a_fleet_share_an_algorithm_whatever_their_hyperparameters(learner):
    options = {f.name for f in dataclasses.fields(learner.Config)}
    assert set(learner.member_options) <= options
    continuous = learner.continuous_actions
    spec = make_spec(CORRIDOR, actions=None if continuous else 3, n_envs=1, continuous=continuous)
    configs = [learner.Config(learning_rate=rate, beta=0.5) for rate in (0.1, 0.2)]
    shared, hyperparameters = learner.build_algorithm(spec, configs)
    alone, _ = learner.build_algorithm(spec, configs[1:])
    assert shared == alone
    assert hash(shared) == hash(alone)
    rates = [float(jax.tree.leaves(each.learning_rate)[0]) for each in hyperparameters]
    assert rates == pytest.approx([0.1, 0.2])


def test_the_kind_in_the_file_decides(tmp_path):
    corridor().save(tmp_path / "agent")
    assert type(load_agent(tmp_path / "agent")) is DeepQ
    about, arrays = checkpoint.read(tmp_path / "agent")
    for kind in ("sarsa", []):
        checkpoint.write(tmp_path / "other", {**about, "kind": kind}, arrays)
        for read in (load_agent, DeepQ.load):
            with pytest.raises(InvalidInput) as refusal:
                read(tmp_path / "other")
            assert f"holds a {kind} agent" in refusal.value.problem
            assert refusal.value.source == str(tmp_path / "other")


EXPECTED = json.loads((DATA / "files_0_1.json").read_text())
"""What version 0.1 recorded: predictions, and returns after it had loaded and learned on."""
X = [[0.5, -1.0], [2.0, 3.0]]


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("kind", "method"), [("deep_q", "q"), ("ddpg", "predict")])
def test_an_agent_of_version_0_1_predicts_and_learns_on(kind, method):
    agent, expected = load_agent(DATA / f"{kind}_0_1.npz"), EXPECTED[kind]
    assert (agent.kind, agent.steps) == (kind, 60)
    close(getattr(agent, method)(X), expected["q" if method == "q" else "action"])
    agent.learn(steps=100)
    close(getattr(agent, method)(X), expected["after"])
    close(agent.history["episode_return"], expected["returns"])


@pytest.mark.slow
def test_an_agent_of_version_0_1_in_gymnasium_continues_with_the_same_episodes():
    agent, expected = load_agent(DATA / "deep_q_gymnasium_0_1.npz"), EXPECTED["gymnasium"]
    agent.learn(episodes=agent.history.episodes + 2)
    assert agent.history["episode_return"].tolist() == expected["returns"]


@pytest.mark.slow
def test_a_fleet_of_version_0_1_evaluates_and_learns_on():
    fleet, expected = Fleet.load(DATA / "fleet_0_1.npz"), EXPECTED["fleet"]
    assert fleet.steps == expected["steps"]
    close(fleet.evaluate(1, 3).returns, expected["evaluation"])
    fleet.learn(steps=100)
    for record, returns in zip(fleet.records, expected["returns"], strict=True):
        close(record.returns, returns)
