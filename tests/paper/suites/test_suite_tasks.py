"""What suites train: environments that exist, with options that agents accept."""

from importlib.resources import files

import gymnasium
import pytest

from gymnasium_versions import since
from refusals import refused
from tsallax import envs
from tsallax.deep import options
from tsallax.deep.deep_q_agent import DeepQ
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.fleet_members import Member, checked_members
from tsallax.paper.suites.suite_jobs import agent_options
from tsallax.paper.suites.suite_tasks import (
    CONTROL,
    SUITES,
    choose,
    published_returns,
    suite_agents,
)


@since("1.3")  # Taxi-v4
@pytest.mark.parametrize("suite", SUITES.values(), ids=list(SUITES))
def test_tasks_are_registered_environments_and_their_milestones_are_on_the_way(suite):
    envs.register()
    for name, task in suite.tasks.items():
        assert name == task.name
        assert task.env in gymnasium.registry
        assert all(0 < at < task.steps for at in task.milestones)
        assert all(at % suite.eval_every == 0 for at in task.milestones)


def test_all_agents_of_control_can_be_members_of_one_fleet():
    for task in CONTROL.tasks.values():
        members = []
        for own in suite_agents(["0.1", "1", "auto"]).values():
            mapped = agent_options(task, own, {})
            config = options.from_mapping(DeepQConfig, options.without_unused(mapped))
            assert config.factored
            members.append(Member(config, 0))
        assert len(checked_members(members)) == 7


def test_agents_differ_in_exploration_update_and_alpha_alone():
    agents = suite_agents()
    assert agents["epsilon"] == {"explore": "epsilon", "update": "hard", "epsilon": "1:0.1:10000"}
    assert agents["sparse-0.1"] == {"explore": "sparse", "update": "sparse", "alpha": 0.1}
    assert agents["soft-auto"] == {"explore": "soft", "update": "soft", "alpha": "auto"}
    for own in agents.values():
        assert set(own) <= set(DeepQ.member_options)
    for wrong in ("0", "-1", "much", "nan"):
        with refused("alpha must be"):
            suite_agents([wrong])


def test_names_are_chosen_in_their_order_and_unknown_ones_refused():
    known = ["Taxi-v4", "Taxi-v4-masked", "CartPole-v1"]
    assert choose("task", None, known) == known
    assert choose("task", ["CartPole", "Taxi-v4"], known) == ["Taxi-v4", "CartPole-v1"]
    assert choose("task", ["Taxi"], known) == known[:2]
    with refused("unknown task 'Pong'", "CartPole-v1"):
        choose("task", ["Pong"], known)


def test_published_returns_are_of_tasks_of_a_suite_and_name_their_protocols():
    found = [row for suite in SUITES.values() for row in published_returns(suite)]
    assert {row["task"] for row in found} >= set(CONTROL.tasks)
    assert all(row["protocol"] and row["steps"] >= 50_000 for row in found)
    keys = [(row["task"], row["source"], row["agent"]) for row in found]
    assert len(set(keys)) == len(keys)
    lines = (files("tsallax.paper.suites") / "published.csv").read_text().splitlines()
    assert len(found) == len(lines) - 1, "every task is one of a suite"
