"""`tsallax plot` writes a figure and prints the last returns."""

import shutil
from pathlib import Path

import pytest

from command_line import OLD_RUN, assert_error, call


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with two runs, which differ in the seed, and an empty one."""
    folder = tmp_path / "runs"
    for seed in (3, 4):
        run = shutil.copytree(OLD_RUN, folder / f"seed-{seed}")
        config = run / "config.yaml"
        config.write_text(config.read_text().replace("seed: 3", f"seed: {seed}"))
    (tmp_path / "empty").mkdir()
    return folder


@pytest.mark.parametrize(
    ("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_a_figure_of_each_format_is_written_and_the_last_return_printed(
    runs: Path, capsys, kind, start
):
    target = runs / f"curves.{kind}"
    code, out, err = call(capsys, f"plot {runs} --out {target} --x steps --window 2")
    assert (code, err) == (0, "")
    assert target.read_bytes().startswith(start)
    row = out.splitlines()[1]
    assert "MultiGoal-v0" in row
    assert "0.9245" in row  # the mean of the last two returns
    assert str(target) in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("FOLDER/absent", "absent: no such folder"),
        ("FOLDER/empty", "empty: holds no run"),
        ("FOLDER/runs --out FOLDER/x.bmp", ".png, .svg, .pdf"),
        ("FOLDER/runs --out FOLDER/no/x.png", "there is no folder"),
        ("FOLDER/runs --x time", "--x"),
        ("FOLDER/runs --window 0", "--window"),
    ],
)
def test_what_cannot_be_plotted_is_one_line_and_writes_nothing(runs: Path, capsys, words, message):
    before = sorted(runs.parent.rglob("*"))
    assert_error(call(capsys, "plot", words.replace("FOLDER", str(runs.parent))), message)
    assert sorted(runs.parent.rglob("*")) == before
