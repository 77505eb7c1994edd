"""Presets are complete, valid, and found by the ids of their environments."""

from pathlib import Path

import gymnasium
import pytest

import tsallax
from refusals import refused
from tsallax.paper.suites.suite_cells import gather_suite
from tsallax.paper.suites.suite_jobs import agent_options
from tsallax.paper.suites.suite_rows import SUITE_ROWS
from tsallax.paper.suites.suite_tasks import CONTROL, OURS, SUITES
from tsallax.runs.preset_catalogue import (
    all_presets,
    preset_named,
    preset_of,
    read_preset,
)
from tsallax.runs.settings import from_flat

RESULT = """
result:
  mean: 221.5
  interval: [205.0, 236.0]
  seeds: 10
  steps: 100
  command: tsallax reproduce classic
"""


OF_ENVIRONMENTS = [preset for preset in all_presets() if preset.name != "general"]


@pytest.mark.parametrize("preset", all_presets(), ids=lambda preset: preset.name)
def test_a_preset_names_a_known_environment_and_known_options(preset):
    tsallax.envs.register()
    known = {*gymnasium.registry, "general"}
    assert not known.isdisjoint({preset.name, *preset.also})
    settings = from_flat({"algorithm": preset.algorithm, "steps": preset.steps, **preset.options})
    assert settings.run.steps == preset.steps


def test_a_preset_is_found_by_all_ids_of_its_environment():
    assert tsallax.preset("Taxi-v3") == tsallax.preset("Taxi-v4")
    assert preset_of("Pendulum-v1") is None
    with refused("unknown preset 'CartPole': choose from Acrobot-v1, "):
        tsallax.preset("CartPole")


def test_the_general_preset_has_no_option_that_only_some_environments_take():
    """Levels, the kind of network and its widths follow from the environment."""
    options = tsallax.preset("general")
    assert options.keys().isdisjoint({"actions", "factored", "masked", "network", "net_arch"})
    assert preset_named("general").purpose


def test_a_caller_may_change_what_it_gets():
    tsallax.preset("CartPole-v1")["gamma"] = 0.5
    assert tsallax.preset("CartPole-v1")["gamma"] != 0.5


def test_a_preset_may_have_a_result(tmp_path: Path):
    path = tmp_path / "Lander-v3.yaml"
    path.write_text(f"steps: 100\noptions: {{gamma: 0.9}}\n{RESULT}")
    preset = read_preset(path)
    assert preset.result is not None
    assert (preset.name, preset.result.mean, preset.result.interval) == (
        "Lander-v3",
        221.5,
        (205, 236),
    )


@pytest.mark.parametrize(
    "text",
    ["options: {}\n", "steps: 5\n", "steps: 0\noptions: {}\n", "steps: 5\noptions: {}\nfun: 1\n"],
)
def test_a_file_that_is_no_preset_is_named(tmp_path: Path, text):
    path = tmp_path / "Odd-v0.yaml"
    path.write_text(text)
    with refused("not a preset: ", source=path):
        read_preset(path)


def test_the_results_of_presets_are_those_of_their_runs():
    """The rows in results/ have the options of the presets, and their means are what is told."""
    rows = SUITE_ROWS.read(Path(__file__).parents[2] / "results")
    cells = {
        place: cell for name in SUITES for place, cell in gather_suite(name, rows).cells.items()
    }
    tasks = [task for suite in SUITES.values() for task in suite.tasks.values()]
    assert all(preset.result is not None for preset in OF_ENVIRONMENTS)
    for preset in OF_ENVIRONMENTS:
        task = next(task for task in tasks if task.env == preset.name)
        continuous = task.name in CONTROL.tasks
        place = (task.name, preset.options["actions"] if continuous else None)
        cell = cells[place, "sparse-auto" if continuous else OURS]
        # a replay memory that holds all steps is as good as a larger one
        size = {"buffer_size": cell.rows[0].steps} if continuous else {}
        options = agent_options(task, {}, size)
        assert all(row.config == options for row in cell.rows)
        result = preset.result
        found = cell.mean if result.steps == cell.rows[0].steps else cell.mean_at(result.steps)
        assert (result.mean, *result.interval) == pytest.approx(
            (found.value, found.low, found.high), rel=1e-3
        )
        assert result.seeds == len(cell.rows)
