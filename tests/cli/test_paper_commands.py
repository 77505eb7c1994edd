"""`tsallax reproduce` and `report` pass on what is asked for, and say what an interrupt left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command_line import assert_error, call
from tsallax.paper import report
from tsallax.paper.experiments import EXPERIMENTS, PLANNING


@pytest.mark.parametrize(
    ("words", "names"),
    [("theorems figure1 figure1", ["figure1", "theorems"]), ("all", PLANNING), ("", PLANNING)],
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
    monkeypatch.setattr("tsallax.paper.sweep.execution.train_sweeps", interrupted)
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
