"""`tsallax reproduce classic` and `control`, from the command to the page."""

import csv
from pathlib import Path

import pytest

from tsallax.cli.app import run
from tsallax.cli.table_requests import suite_request
from tsallax.paper.suites.suite_jobs import agent_options
from tsallax.paper.suites.suite_rows import SUITE_ROWS

TINY = ["--steps", "200", "--seeds", "1", "--set", "net_arch=8", "--set", "learning_starts=20",
        "--set", "batch_size=8", "--set", "buffer_size=400"]  # fmt: skip


def classic(folder: Path, *more: str) -> int:
    words = ["reproduce", "classic", "--quick", "--tasks", "CartPole", "--out", str(folder)]
    return run([*words, *TINY, *more])


@pytest.mark.slow
def test_classic_goes_from_the_command_to_the_page(tmp_path: Path, capsys: pytest.CaptureFixture):
    assert classic(tmp_path, "--time-limit", "0.001") == 3
    assert "the same command continues them" in capsys.readouterr().err
    assert classic(tmp_path) == 0
    (row,) = SUITE_ROWS.read(tmp_path)
    assert (row.task, row.seed, row.steps, row.config["net_arch"]) == ("CartPole-v1", 0, 200, [8])
    with (tmp_path / "classic-returns.csv").open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert float(line["tsallax"]) == pytest.approx(row.greedy, abs=0.01)
    page = (tmp_path / "index.html").read_text()
    for text in ("Classic control", "CartPole-v1", "fewer steps", "tsallax reproduce classic"):
        assert text in page
    assert "Lee, Choi" not in page
    before = (tmp_path / "classic-returns.csv").read_bytes()
    assert run(["report", str(tmp_path), "--out", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "classic-returns.csv").read_bytes() == before


def test_classic_has_agents_with_other_alphas_that_share_the_preset():
    alone = suite_request("classic", False, {"tasks": "LunarLander"})
    assert list(alone.agents) == ["tsallax"]
    given = {"tasks": "LunarLander", "variants": "sparse,tsallax", "alphas": "1,auto"}
    several = suite_request("classic", False, given)
    assert list(several.agents) == ["tsallax", "sparse-1", "sparse-auto"]
    task = several.suite.tasks["LunarLander-v3"]
    preset, fixed, follows = (agent_options(task, own, {}) for own in several.agents.values())
    assert follows == preset
    differ = {name for name in preset if preset[name] != fixed[name]}
    assert differ == {"alpha", "support"}


def test_a_damaged_row_is_refused_before_training(tmp_path: Path, capsys: pytest.CaptureFixture):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.suite.jsonl").write_text('{"format": 1}\n')
    assert classic(tmp_path) == 2
    assert "a.suite.jsonl, line 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["classic", "figure1"], "by itself"),
        (["classic", "--levels", "3"], "--levels is for control"),
        (["classic", "--variants", "greedy"], "unknown variant 'greedy'"),
        (["classic", "--alphas", "0.1", "--set", "alpha=1"], "--set alpha"),
        (["classic", "--actions", "9"], "--actions is for reacher, pendulum"),
        (["classic", "--tasks", "Pong"], "unknown task 'Pong'"),
        (["control", "--variants", "greedy"], "unknown variant 'greedy'"),
        (["control", "--levels", "1"], "--levels 1"),
        (["control", "--alphas", "x"], "alpha must be"),
        (["control", "--set", "alpha=1"], "--set alpha"),
        (["control", "--set", "batch=1"], "batch_size"),
        (["figure1", "--tasks", "Hopper"], "--tasks is for classic, control"),
    ],
)
def test_impossible_options_are_refused(words, problem, tmp_path: Path, capsys):
    assert run(["reproduce", *words, "--out", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert problem in message
    assert message.count("\n") == 1
    assert not list(tmp_path.iterdir())
