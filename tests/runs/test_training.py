"""Runs in folders: what is written when, and the commands that continue them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from command_line import NEW_RUN, OLD_RUN
from refusals import refused
from tsallax.errors import InvalidInput
from tsallax.files.locks import locked
from tsallax.runs import logs, training
from tsallax.runs.run_opening import open_run
from tsallax.runs.training import TrainingRun, checkpoint_of


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> TrainingRun:
    """A run that has not started."""
    return open_run(NEW_RUN, {}, tmp_path_factory.mktemp("runs") / "new", False)


def with_options(run: TrainingRun, **options: object) -> TrainingRun:
    settings = run.settings
    changed = dataclasses.replace(settings.run, **options)  # type: ignore[arg-type]
    return dataclasses.replace(run, settings=dataclasses.replace(settings, run=changed))


def test_a_new_run_is_not_finished_and_writes_nothing_before_it_is_trained(new: TrainingRun):
    assert not new.resumed
    assert new.limits == {"episodes": 5}
    assert not new.finished
    assert not new.folder.exists()
    assert new.agent.config.net_arch == (8,)


def test_an_interrupt_between_two_callbacks_leaves_no_episode_out_of_the_log(
    old: Path, monkeypatch
):
    run = open_run({"episodes": 1000}, {}, old, True)
    before, learn = run.agent.history.episodes, run.agent.learn

    def interrupted(**given: object) -> None:
        learn(**{**given, "episodes": before + 2})
        raise KeyboardInterrupt

    monkeypatch.setattr(run.agent, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        training.train(run)
    assert logs.read(old / logs.EPISODES)["episode"].tolist() == [*range(1, before + 3)]


def test_a_folder_in_which_another_process_trains_is_refused(old: Path):
    pytest.importorskip("fcntl")
    run = open_run({"episodes": 1000}, {}, old, True)
    before = (old / training.AGENT_FILE).read_bytes()
    with locked(old, "", old), refused("another process trains in this folder", source=old):
        training.train(run)
    assert (old / training.AGENT_FILE).read_bytes() == before


def test_without_a_terminal_lines_show_how_far_the_training_is(old: Path, monkeypatch, capsys):
    monkeypatch.setattr("tsallax.progress.LINE_SECONDS", -1.0)
    run = open_run({"episodes": 1000}, {}, old, True)
    more = run.agent.history.episodes + 2
    training.train(with_options(run, episodes=more))
    assert "100%" in capsys.readouterr().err.splitlines()[-1]


def test_a_log_that_cannot_be_written_hides_no_other_error(old: Path, monkeypatch):
    run = open_run({"episodes": 1000}, {}, old, True)

    def fails(*_: object, **__: object) -> None:
        raise InvalidInput("the first error")

    def full(*_: object) -> None:
        raise InvalidInput("cannot be written")

    monkeypatch.setattr(run.agent, "learn", fails)
    monkeypatch.setattr(logs.Logs, "add", full)
    with refused("the first error"):
        training.train(run)


def test_commands_quote_the_folder_and_name_an_environment_with_a_module(new: TrainingRun):
    run = dataclasses.replace(new, folder=Path("a b"))
    assert run.resume_command == "tsallax train --resume --out 'a b'"
    assert run.evaluate_command == "tsallax evaluate 'a b'"
    run = with_options(run, env="my_envs:Car-v0")
    assert run.resume_command == "tsallax train my_envs:Car-v0 --resume --out 'a b'"
    assert run.evaluate_command == "tsallax evaluate 'a b' --env my_envs:Car-v0"


def test_the_command_that_extends_a_finished_run_keeps_the_kind_of_its_limits(old: Path):
    run = open_run({"episodes": 50, "steps": 600}, {}, old, True)
    assert run.resume_command.endswith(f"--out {old} --episodes 100 --steps 1200")


def test_the_command_that_extends_a_finished_run_asks_for_more_than_the_run_has(old: Path):
    run = open_run({"episodes": 5, "steps": 100}, {}, old, True)
    assert run.finished
    assert run.resume_command.endswith(f"--out {old} --episodes 24 --steps 1200")


def test_the_command_that_extends_a_finished_run_has_the_changes_that_it_was_opened_with(old: Path):
    run = open_run({"gamma": 0.5, "alpha": "1:0.1:50"}, {}, old, True)
    assert [change.option for change in run.new_changes] == ["alpha", "gamma"]
    assert run.resume_command.endswith("--set alpha=1:0.1:50 --set gamma=0.5")


def test_the_checkpoint_of_a_run_is_found_in_its_folder(tmp_path: Path):
    assert checkpoint_of(OLD_RUN) == OLD_RUN / training.AGENT_FILE
    assert checkpoint_of(tmp_path / "agent.npz") == tmp_path / "agent.npz"
    with refused(source=tmp_path):
        checkpoint_of(tmp_path)
