"""Runs are opened from options and presets, resumed from their folders, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import NEW_RUN
from tsallax import DeepQConfig
from tsallax.errors import InvalidInput
from tsallax.runs import training
from tsallax.runs.run_opening import open_run


def test_options_that_are_given_override_those_of_a_file(tmp_path: Path):
    run = open_run({"seed": 4}, {**NEW_RUN, "seed": 2}, tmp_path / "run", True)
    assert (run.agent.seed, run.resumed) == (4, False)


def test_a_finished_run_of_an_earlier_version_is_opened_and_extended(old: Path):
    run = open_run({}, {}, old, True)
    assert (run.resumed, run.finished, run.agent.steps) == (True, True, 600)
    longer = open_run({"episodes": 20}, {}, old, True)
    assert (longer.limits, longer.finished) == ({"episodes": 20}, False)
    both = open_run({"episodes": 20, "steps": 700}, {}, old, True)
    assert (both.limits, both.finished) == ({"episodes": 20, "steps": 700}, False)
    assert open_run({"episodes": 20, "steps": 600}, {}, old, True).finished


def test_an_unused_epsilon_that_an_earlier_version_stored_is_left_out(old: Path):
    config = old / training.CONFIG_FILE
    config.write_text(config.read_text().replace("epsilon: 1:0.02:100000", "epsilon: 0.5"))
    assert open_run({"episodes": 20}, {}, old, True).agent.config.explore == "sparse"


def test_a_learner_of_continuous_actions_takes_no_levels(tmp_path: Path):
    with pytest.raises(InvalidInput) as caught:
        open_run({**NEW_RUN, "algorithm": "ddpg"}, {}, tmp_path / "run", False)
    assert caught.value.omit == "actions"


def test_a_preset_leaves_out_what_the_given_options_do_not_use(tmp_path: Path):
    run = open_run({"env": "CartPole-v1", "alpha": 0.5}, {}, tmp_path / "run", False)
    assert run.preset == "CartPole-v1"
    assert run.agent.config.support == DeepQConfig().support


FUNCTIONS = """
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from small_agents import Episodic


def images():
    return Episodic(Box(0, 255, (3, 36, 36), np.uint8))


def choices():
    return Episodic(Discrete(5), MultiDiscrete([3, 2]))


def torques():
    return Episodic(actions=Box(-1, 1, (3,)))
"""


SMALL = {"net_arch": 8, "batch_size": 4, "buffer_size": 64, "learning_starts": 4, "steps": 12}


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with functions that make environments."""
    (tmp_path / "general_functions.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    return "general_functions"


@pytest.mark.parametrize(
    ("name", "more"), [("images", {}), ("choices", {"n_envs": 2}), ("torques", {"actions": 3})]
)
def test_environments_of_all_spaces_take_the_general_preset(
    tmp_path: Path, functions: str, name: str, more: dict[str, int]
):
    given = {"env": f"{functions}:{name}", **SMALL, **more}
    run = open_run(given, {}, tmp_path / "run", False, preset="general")
    assert (run.preset, run.agent.config.net_arch) == ("general", (8,))
    assert (run.agent.config.layer_norm, run.agent.config.n_step) == (True, 3)


@pytest.mark.slow
def test_images_are_learned_from_with_the_general_preset(tmp_path: Path, functions: str):
    env = f"{functions}:images"
    run = open_run({"env": env, **SMALL}, {}, tmp_path / "run", True, preset="general")
    training.train(run)
    resumed = open_run({"env": env, "steps": 20}, {}, tmp_path / "run", True)
    assert (resumed.agent.steps, resumed.preset) == (12, None)
    assert resumed.agent.config == run.agent.config


def test_an_environment_without_a_preset_has_the_defaults(tmp_path: Path):
    assert open_run(NEW_RUN, {}, tmp_path / "run", False).preset is None
    asked = open_run(NEW_RUN, {}, tmp_path / "run", False, preset="general")
    assert (asked.preset, asked.agent.config.double) == ("general", True)


def test_copies_of_the_target_network_replace_the_tau_of_a_preset(tmp_path: Path):
    given = {"env": "CartPole-v1", "target_update_interval": 500}
    config = open_run(given, {}, tmp_path / "run", False).agent.config
    assert (config.tau, config.target_update_interval, config.n_step) == (None, 500, 3)
