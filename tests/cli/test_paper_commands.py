"""`tsallax reproduce` and `report` pass on what is asked for, and say what an interrupt left."""

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import assert_error, call
from small_sweeps import EPISODES, NAME, OPTIONS, finished_folder
from tsallax.cli.table_requests import sweep_request
from tsallax.paper import report
from tsallax.paper.experiments import EXPERIMENTS, FIGURE, names_of
from tsallax.paper.sweep.sweep_rows import SWEEP_ROWS

SET = " ".join(f"--set {k}={v[0] if k == 'net_arch' else v}" for k, v in OPTIONS.items())


def test_help_lists_every_experiment(capsys):
    _, out, _ = call(capsys, "reproduce --help")
    for experiment in EXPERIMENTS.values():
        assert f"{experiment.name} " in out
        assert experiment.help in out


def test_reproduce_writes_tables_and_a_page_of_rows(tmp_path: Path, capsys):
    """The folder holds all runs, so that nothing is trained."""
    finished_folder(tmp_path)
    command = f"reproduce reacher --quick --episodes {EPISODES} --steps 20000 --variants {NAME}"
    code, out, _ = call(capsys, f"{command} {SET} --out {tmp_path}")
    assert (code, out) == (0, f"The report is in {tmp_path / 'index.html'}\n")
    assert json.loads((tmp_path / "reacher.json").read_text())["quick"] is True
    assert list(tmp_path.glob("reacher*.csv"))
    assert NAME in (tmp_path / "index.html").read_text()


@pytest.mark.slow
def test_reproduce_trains_q_learning_and_ddpg(tmp_path: Path, capsys):
    command = f"reproduce reacher --quick --seeds 1 --episodes {EPISODES} --variants {NAME},DDPG"
    assert call(capsys, f"{command} {SET} --out {tmp_path}")[0] == 0
    found = SWEEP_ROWS.read(tmp_path)
    assert {(row.algorithm, row.actions) for row in found} == {(NAME, 9), ("DDPG", None)}
    ddpg = next(row for row in found if row.algorithm == "DDPG")
    assert (ddpg.explore, ddpg.update, ddpg.alpha, ddpg.episodes) == (None, None, None, EPISODES)


def test_the_steps_of_a_sweep_are_scaled_with_its_episodes():
    for episodes in (300, 3000, 30_000):
        asked = sweep_request("pendulum", False, {"episodes": episodes})
        assert (asked.episodes, asked.steps) == (episodes, 400_000 * episodes // 3000)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("theorems figure1 figure1", ["figure1", "theorems"]),
        ("all", names_of(FIGURE)),
        ("", names_of(FIGURE)),
    ],
)
def test_figures_are_computed_once_in_the_papers_order(
    monkeypatch, tmp_path: Path, capsys, words, names
):
    seen: list[Any] = []

    def reproduce(names: list[str], out: Path, *, quick: bool) -> Path:
        seen.append((names, out, quick))
        return out / "index.html"

    monkeypatch.setattr(report, "reproduce", reproduce)
    code, out, err = call(capsys, f"reproduce {words} --out {tmp_path}")
    assert (code, err) == (0, "")
    assert str(tmp_path / "index.html") in out
    assert seen == [([*names], tmp_path, False)]


def test_an_interrupt_names_the_folder_and_whether_the_command_resumes(
    monkeypatch, tmp_path: Path, capsys
):
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "reproduce", interrupted)
    monkeypatch.setattr("tsallax.paper.fleets.execution.train_missing", interrupted)
    code, out, err = call(capsys, f"reproduce figure1 --out {tmp_path}")
    assert (code, out, err.count("\n")) == (130, "", 1)
    assert str(tmp_path) in err
    assert "resumes" not in err
    code, out, err = call(capsys, f"reproduce reacher --quick --device cpu --out {tmp_path}")
    assert (code, out, err.count("\n")) == (130, "", 1)
    assert str(tmp_path) in err
    assert "resumes" in err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("reproduce figure7", ["'figure7'", *EXPERIMENTS]),
        ("reproduce figure1 --seeds 3", ["--seeds", "reacher"]),
        ("reproduce reacher --actions few", ["--actions", "few"]),
        ("reproduce reacher --processes 0", ["--processes"]),
        ("reproduce reacher --set batch", ["--set batch", "KEY=VALUE"]),
        ("report FOLDER/absent", ["absent"]),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(tmp_path: Path, capsys, line, words):
    out = tmp_path / "out"
    line = line.replace("FOLDER", str(tmp_path))
    assert_error(call(capsys, line, f"--out {out}"), *words)
    assert not out.exists()
