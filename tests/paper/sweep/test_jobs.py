"""Sweeps: every run once, whatever happens on the way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import tsallax
from small_sweeps import EPISODES, OPTIONS, PIECES, Pieces, outcome, small
from tsallax.cli import app
from tsallax.cli.paper_commands import _sweep
from tsallax.errors import InvalidInput
from tsallax.paper.sweep import jobs, rows, status_table
from tsallax.paper.sweep.execution import learned
from tsallax.paper.sweep.jobs import Job, Run, plan, runs_of, sweep_of
from tsallax.paper.sweep.processes import train_side_by_side
from tsallax.paper.sweep.tasks import DDPG, TASKS, Variant, choose

HERE = Path(__file__).parents[2]
NAME = "Sparse+SparseBellman-0.1"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of two seeds in one fleet that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    learned([small()], folder, at_once=2, progress=False)
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Pieces:
    return Pieces(monkeypatch)


def files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def checkpoints(folder: Path) -> list[Path]:
    return sorted((folder / "fleets").glob("*.npz"))


def interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, after: int, **how: Any) -> None:
    """Begin a sweep that Ctrl-C ends after so many pieces."""
    told = iter(range(after - 1))

    def draw() -> None:
        if next(told, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "TOLD_SECONDS", -1.0)
        patch.setattr("tsallax.paper.sweep.execution.live", lambda *_: nullcontext(draw))
        with pytest.raises(KeyboardInterrupt):
            learned([small()], folder, progress=False, **how)


# What is trained


def test_a_row_is_what_an_agent_alone_gives(whole: Path):
    assert set(outcome(whole)) == {("reacher", NAME, 9, 0), ("reacher", NAME, 9, 1)}
    row = next(row for row in rows.read(whole) if row.seed == 1)
    alone = tsallax.DeepQ("Reacher-v5", actions=3, alpha=0.1, seed=1, **OPTIONS)
    alone.learn(episodes=EPISODES)
    returns = alone.history["episode_return"].tolist()
    assert row.returns == pytest.approx(rows.compact(returns), rel=1e-4)
    assert len(row.returns) == 2
    assert (row.episodes, row.steps, row.agents) == (EPISODES, 50 * EPISODES, 2)
    assert row.final == pytest.approx(sum(returns) / EPISODES, rel=1e-4)
    for found, error, deterministic in (
        (row.greedy, row.greedy_error, True),
        (row.sampled, row.sampled_error, False),
    ):
        expected = alone.evaluate(20, deterministic=deterministic)
        assert found == pytest.approx(expected.mean, rel=1e-3)
        assert error == pytest.approx(expected.standard_error, rel=1e-2)
    assert row.greedy != row.sampled
    assert row.config["hidden"] == [8]
    assert row.config["alpha"] == 0.1


def test_fleets_of_any_size_give_the_same_rows(whole: Path, tmp_path: Path):
    learned([small()], tmp_path, at_once=1, progress=False)
    found, expected = outcome(tmp_path), outcome(whole)
    assert set(found) == set(expected)
    for key, row in found.items():
        assert row["returns"] == pytest.approx(expected[key]["returns"], rel=1e-4)
        assert row["agents"] == 1


def test_epsilon_greedy_with_the_plain_update_has_other_seeds_for_every_alpha():
    names = ["EpsGrdy+Bellman", NAME, "DDPG"]
    made = small(variants=tuple(choose(names)), actions=(9, 121))
    seeds: dict[str, list[int]] = {}
    for run in runs_of(made):
        seeds.setdefault(run.variant.name, []).append(run.seed)
        assert (run.actions is None) == (run.variant == DDPG)
    assert seeds == {
        NAME: [0, 1] * 2,
        "EpsGrdy+Bellman-1": [0, 1] * 2,
        "EpsGrdy+Bellman-0.1": [1000, 1001] * 2,
        "EpsGrdy+Bellman-0.01": [2000, 2001] * 2,
        "DDPG": [0, 1],
    }


def test_seeds_do_not_depend_on_the_other_alphas_of_a_sweep():
    def seeds(*alphas: float) -> dict[str, int]:
        found = choose(["EpsGrdy+Bellman"], alphas)
        return {run.variant.name: run.seed for run in runs_of(small(1, variants=tuple(found)))}

    one, more = seeds(0.5), seeds(0.2, 0.5, 0.1, 7.0)
    assert one["EpsGrdy+Bellman-0.5"] == more["EpsGrdy+Bellman-0.5"] >= 3000
    assert len(set(more.values())) == 4


def test_small_alphas_have_names():
    assert [v.name for v in choose(["Sparse+SparseBellman"], [1e-5])] == [
        "Sparse+SparseBellman-1e-05"
    ]


def test_a_run_that_diverges_is_named(tmp_path: Path):
    made = tuple(choose(["Soft+SoftBellman-1"]))
    options = {**OPTIONS, "learning_rate": 1e30}
    (job,) = plan(small(1, variants=made, options=options), tmp_path, at_once=1)
    with pytest.raises(InvalidInput, match=r"Soft\+SoftBellman-1, seed 0: Reacher-v5: the loss of"):
        jobs.train(job)


def test_what_is_named_twice_is_trained_once(tmp_path: Path):
    made = small(actions=(9, 9), variants=tuple(choose([NAME])) * 2)
    jobs = plan(made, tmp_path, at_once=1)
    assert len(jobs) == len({job.name for job in jobs}) == 2


def test_workers_elsewhere_are_told_the_whole_path(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {job.folder for job in plan(small(), Path("here"), at_once=1)} == {f"{tmp_path}/here"}


@pytest.mark.parametrize("task", ["reacher", "pendulum"])
def test_the_papers_sweep_has_all_its_runs(task: str, tmp_path: Path):
    jobs = plan(sweep_of(TASKS[task]), tmp_path, at_once=81)
    assert [len(job.runs) for job in jobs] == [81, 81, 81, 81, 3]
    assert {job.actions for job in jobs} == {*TASKS[task].actions, None}
    assert len({job.key(run) for job in jobs for run in job.runs}) == 81 * 4 + 3


# What happens on the way


def test_a_second_time_nothing_is_trained(copy: Path, monkeypatch: pytest.MonkeyPatch):
    before = files(copy)
    monkeypatch.setattr(jobs, "Fleet", None)
    learned([small()], copy, at_once=2, progress=False)
    learned([small(seeds=1)], copy, at_once=1, progress=False)
    assert files(copy) == before


@pytest.mark.parametrize("at_once", [2, 1])
def test_an_interrupted_sweep_goes_on(at_once: int, whole, tmp_path, monkeypatch, pieces):
    interrupted(tmp_path, monkeypatch, after=7, at_once=2)
    assert pieces.count == 7
    assert not outcome(tmp_path)
    assert len(checkpoints(tmp_path)) == 1
    about = json.loads(next((tmp_path / "fleets").glob("*.json")).read_text())
    assert about["share"] == pytest.approx(7 / EPISODES)
    learned([small()], tmp_path, at_once=at_once, progress=False)
    assert pieces.count == PIECES
    assert outcome(tmp_path) == outcome(whole)
    assert not checkpoints(tmp_path)


@pytest.mark.parametrize(("save_seconds", "again"), [(1e9, 8), (-1.0, 1)])
def test_what_is_cut_off_within_a_piece_is_not_saved(
    save_seconds: float, again: int, whole, tmp_path, pieces
):
    """A second Ctrl-C ends a piece half way: the last whole state counts."""
    pieces.interrupted = 8
    with pytest.raises(KeyboardInterrupt):
        learned([small()], tmp_path, at_once=2, save_seconds=save_seconds, progress=False)
    assert len(checkpoints(tmp_path)) == (save_seconds < 0)
    learned([small()], tmp_path, at_once=2, progress=False)
    assert pieces.count == PIECES + again
    assert outcome(tmp_path) == outcome(whole)


def test_a_row_that_was_written_before_an_end_is_not_written_again(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: Pieces
):
    append, written = rows.append, []

    def once(row: rows.Row, path: Path) -> None:
        if written:
            raise KeyboardInterrupt
        append(row, path)
        written.append(row.seed)

    with monkeypatch.context() as patch:
        patch.setattr(rows, "append", once)
        with pytest.raises(KeyboardInterrupt):
            learned([small()], tmp_path, at_once=2, progress=False)
    assert [row.seed for row in rows.read(tmp_path)] == written == [0]
    learned([small()], tmp_path, at_once=2, progress=False)
    assert pieces.count == PIECES
    assert outcome(tmp_path) == outcome(whole)


SCRIPT = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from small_sweeps import small
from tsallax.paper.sweep.execution import learned
learned([small()], sys.argv[1], at_once=2, save_seconds=-1.0, progress=False)
"""


def test_a_sweep_that_is_killed_goes_on(whole: Path, tmp_path: Path, pieces: Pieces):
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], env={**os.environ})
    seen = set[int]()
    end = time.monotonic() + 90
    while len(seen) < 3:
        assert process.poll() is None
        assert time.monotonic() < end
        seen |= {path.stat().st_mtime_ns for path in checkpoints(tmp_path)}
    process.kill()
    process.wait()
    assert not outcome(tmp_path)
    assert len(checkpoints(tmp_path)) == 1
    (tmp_path / "fleets" / f".{checkpoints(tmp_path)[0].name}.0123.partial").write_text("cut o")
    learned([small()], tmp_path, at_once=2, progress=False)
    assert 0 < pieces.count <= PIECES - 3
    assert outcome(tmp_path) == outcome(whole)
    assert [path.suffix for path in (tmp_path / "fleets").iterdir()] == [".json"]


def test_a_checkpoint_that_is_no_longer_needed_is_removed(copy: Path, monkeypatch, tmp_path):
    interrupted(tmp_path / "other", monkeypatch, after=3, at_once=2)
    left = checkpoints(tmp_path / "other")[0]
    shutil.copy(left, copy / "fleets")
    monkeypatch.setattr(jobs, "Fleet", None)
    learned([small()], copy, at_once=2, progress=False)
    assert not checkpoints(copy)


def test_of_more_seeds_only_the_new_ones_are_trained(copy: Path, pieces: Pieces):
    before = files(copy)
    learned([small(seeds=3)], copy, at_once=2, progress=False)
    assert pieces.count == PIECES
    after = files(copy)
    assert {name: after[name] for name in before} == before
    assert sorted(row.seed for row in rows.read(copy)) == [0, 1, 2]
    assert next(row for row in rows.read(copy) if row.seed == 2).agents == 1


OTHER = [
    ({"options": {**OPTIONS, "batch_size": 4}}, "batch 8, not 4"),
    ({"options": {**OPTIONS, "net_arch": 4}}, r"hidden \[8\], not \[4\]"),
    ({"episodes": EPISODES + 1}, f"{EPISODES}.* not .*{EPISODES + 1}"),
    ({"episodes": EPISODES - 1}, f"{EPISODES}.* not .*{EPISODES - 1}"),
    ({"episodes": 20, "steps": 50 * EPISODES}, f"{EPISODES}.* not .*20"),
    ({"steps": 500}, "not .*500"),
    ({"evaluated": 5}, "evaluated 20, not 5"),
]


@pytest.mark.parametrize(("changes", "words"), OTHER)
def test_another_protocol_is_refused_beside_rows(changes: Any, words: str, whole: Path):
    before = files(whole)
    with pytest.raises(InvalidInput, match=f"holds runs .*{words}.*: use another --out"):
        learned([small(seeds=3, **changes)], whole, at_once=2, progress=False)
    assert files(whole) == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"options": {**OPTIONS, "batch_size": 16}}, "batch"),
        ({"episodes": EPISODES + 1}, "episodes"),
    ],
)
def test_another_protocol_is_refused_beside_rows_of_other_variants(changes, words, whole: Path):
    """None of the runs that it asks for is there yet."""
    other = {"variants": tuple(choose(["Soft+SoftBellman-0.1"])), "actions": (121,), **changes}
    with pytest.raises(InvalidInput, match=f"holds runs .*{words}.*: use another --out"):
        plan(small(**other), whole, at_once=2)


def test_what_another_command_has_finished_meanwhile_is_not_written_twice(
    whole, tmp_path, monkeypatch
):
    """Two commands that cut the same runs into other fleets."""
    monkeypatch.setattr(jobs, "TOLD_SECONDS", -1.0)
    (job,) = plan(small(), tmp_path, at_once=2)
    done = [line for file in (whole / "rows").iterdir() for line in file.read_text().splitlines()]
    (tmp_path / "rows").mkdir(parents=True)

    def finished_elsewhere() -> None:
        (tmp_path / "rows" / "other.jsonl").write_text(done[0] + "\n")

    jobs.train(job, told=finished_elsewhere)
    assert len(rows.read_file(job.rows)) == 1
    assert len(rows.read(tmp_path)) == 2


@pytest.mark.parametrize("episodes", [300, 3000, 30_000])
def test_the_steps_of_a_sweep_go_with_its_episodes(episodes):
    asked = _sweep("pendulum", None, None, None, None, episodes, None, None, False)
    assert (asked.episodes, asked.steps) == (episodes, 400_000 * episodes // 3000)


def test_another_protocol_is_refused_with_a_fleet_under_way(tmp_path: Path, monkeypatch):
    interrupted(tmp_path, monkeypatch, after=2, at_once=2)
    for changes, words in OTHER:
        with pytest.raises(InvalidInput, match=f"holds runs .*{words}.*: use another --out"):
            plan(small(**changes), tmp_path, at_once=2)
    same = {**OPTIONS, "net_arch": 8, "gamma": 0.99}
    assert len(plan(small(options=same), tmp_path, at_once=2)) == 1
    about = next((tmp_path / "fleets").glob("*.json"))
    about.write_text(about.read_text()[:-30])
    with pytest.raises(InvalidInput, match=f"{about}: damaged: remove it"):
        plan(small(), tmp_path, at_once=2)


# Rows


def test_a_row_that_was_cut_off_is_trained_again(copy: Path, whole: Path, pieces: Pieces):
    path = next(copy.rglob("*.jsonl"))
    path.write_bytes(path.read_bytes()[:-40])
    learned([small()], copy, at_once=2, progress=False)
    assert pieces.count == PIECES
    found, expected = outcome(copy), outcome(whole)
    assert set(found) == set(expected)
    for key, row in found.items():
        assert row["returns"] == pytest.approx(expected[key]["returns"], rel=1e-4)


@pytest.mark.parametrize("cut", [1, 40, 10_000])
def test_a_row_is_appended_to_whole_lines(cut: int, copy: Path):
    path = next(copy.rglob("*.jsonl"))
    one, two = rows.read_file(path)
    text = path.read_bytes()
    path.write_bytes(text[: max(text.index(b"\n") + 1, len(text) - cut)])
    assert rows.read_file(path) == [one]
    rows.append(two, path)
    assert path.read_bytes() == text


def test_a_line_that_is_damaged_is_refused(copy: Path):
    path = next(copy.rglob("*.jsonl"))
    lines = path.read_text().split("\n")
    row = json.loads(lines[0])
    damaged = ["", lines[0][:-1], "[]", json.dumps({**row, "format": 0})]
    wrong = {"returns": ["x"], "actions": [9], "seed": None, "final": "high", "greedy": None}
    damaged += [json.dumps({**row, name: value}) for name, value in wrong.items()]
    damaged += [json.dumps({k: v for k, v in row.items() if k != "seed"})]
    for line in damaged:
        path.write_text("\n".join([lines[1], line, lines[0], ""]))
        with pytest.raises(InvalidInput, match=f"{path}, line 2: "):
            learned([small()], copy, at_once=2, progress=False)


def test_two_different_rows_of_a_run_are_refused(copy: Path):
    path = next(copy.rglob("*.jsonl"))
    other = path.with_name("other.jsonl")
    other.write_text(path.read_text())
    assert len(rows.read(copy)) == 2
    other.write_text(path.read_text().replace('"seconds": ', '"seconds": 1'))
    assert len(rows.read(copy)) == 2, "the same run, made twice"
    other.write_text(path.read_text().replace('"greedy": -', '"greedy": -1'))
    with pytest.raises(InvalidInput, match=r"hold different runs of .*, 9 actions, seed 0"):
        rows.read(copy)


@pytest.mark.parametrize(
    "change",
    [
        {"explore": "foo"},
        {"update": None},
        {"alpha": "x"},
        {"alpha": 0.5},
        {"reached": 0},
        {"reached": 10**6},
        {"every": 0},
        {"every": 3},
        {"episodes": -5},
        {"evaluated": "x"},
        {"agents": "x"},
        {"provenance": []},
        {"final": 10**400},
        {"greedy": True},
        {"greedy_error": -1.0},
        {"actions": -3},
        {"task": "dance"},
        {"returns": [[]]},
        {"returns": []},
    ],
    ids=str,
)
def test_a_row_with_what_cannot_be_is_refused(copy: Path, change: dict[str, Any]):
    path = next(copy.rglob("*.jsonl"))
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), **change}), *rest]) + "\n")
    with pytest.raises(InvalidInput, match=r"\.jsonl, line 1: \w+ is .*, which cannot be"):
        rows.read(copy)


def test_a_fleet_that_another_process_trains_is_left_to_it(tmp_path: Path):
    fcntl = pytest.importorskip("fcntl")
    (job,) = plan(small(), tmp_path, at_once=2)
    job.rows.parent.mkdir(parents=True)
    with job.rows.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InvalidInput, match="another process trains"):
            jobs.train(job)


# The command


def called(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    capsys.readouterr()
    code = app.run([part for word in words for part in str(word).split()])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


SET = " ".join(f"--set {k}={v[0] if k == 'hidden' else v}" for k, v in OPTIONS.items())


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduced")
    command = f"reproduce reacher --quick --seeds 1 --episodes {EPISODES} --variants {NAME},DDPG"
    assert app.run([*f"{command} {SET} --out {folder}".split()]) == 0
    return folder


def test_reproduce_writes_rows_tables_and_a_page(reproduced: Path, whole: Path, capsys):
    found = rows.read(reproduced)
    assert {(row.algorithm, row.actions) for row in found} == {(NAME, 9), ("DDPG", None)}
    ddpg = next(row for row in found if row.algorithm == "DDPG")
    assert (ddpg.explore, ddpg.update, ddpg.alpha) == (None, None, None)
    assert ddpg.episodes == EPISODES
    expected = next(row for row in rows.read(whole) if row.seed == 0)
    again = next(row for row in found if row.algorithm == NAME)
    assert again.returns == pytest.approx(expected.returns, rel=1e-4)
    assert json.loads((reproduced / "reacher.json").read_text())["quick"] is True
    assert list(reproduced.glob("reacher*.csv"))
    assert NAME in (reproduced / "index.html").read_text()


@pytest.mark.parametrize("variant", ["DDPG", "Soft+Bellman-0.1"])
def test_the_options_of_a_task_hold_for_those_that_have_them(variant: str):
    task = TASKS["pendulum"]
    made = jobs.checked(sweep_of(task), {"variants": tuple(choose([variant]))})
    config = jobs.settings(task, made.variants[0], made.options)
    assert getattr(config, "epsilon", (1.0, 0.02, 10_000)) == (1.0, 0.02, 10_000)


def test_only_the_runs_of_a_fleet_count_as_its_own(whole: Path, tmp_path: Path):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    learned([small(seeds=3)], tmp_path, at_once=2, progress=False)
    told = [json.loads(path.read_text()) for path in (tmp_path / "fleets").glob("*.json")]
    assert sorted((len(one["runs"]), one["finished"]) for one in told) == [(1, 1), (2, 2)]


def test_report_makes_a_page_elsewhere(reproduced: Path, tmp_path: Path, capsys):
    code, out, _ = called(capsys, "report", reproduced, "--out", tmp_path / "page")
    assert (code, out) == (0, f"The report is in {tmp_path / 'page' / 'index.html'}\n")
    assert NAME in (tmp_path / "page" / "index.html").read_text()
    code, _, _ = called(capsys, "report", reproduced / "rows", "--out", tmp_path / "rows")
    assert code == 0
    assert json.loads((tmp_path / "rows" / "reacher.json").read_text())["quick"] is True


def test_report_puts_the_rows_of_several_folders_together(copy: Path, tmp_path: Path, capsys):
    path = next(copy.rglob("*.jsonl"))
    parts = [tmp_path / "one", tmp_path / "two"]
    for part, line in zip(parts, path.read_text().splitlines(), strict=True):
        part.mkdir()
        (part / "rows.jsonl").write_text(line + "\n")
    code, _, _ = called(capsys, "report", *parts, "--out", tmp_path / "page")
    assert code == 0
    assert (
        "2 runs of Reacher"
        in json.loads((tmp_path / "page/reacher.json").read_text())["caption"][0]
    )
    code, _, err = called(capsys, "report", parts[0] / "rows.jsonl")
    assert (code, "is a file: give its folder" in err) == (2, True)


@pytest.mark.parametrize("where", ["empty", "nowhere"])
def test_report_of_a_folder_without_results_is_refused(where: str, tmp_path: Path, capsys):
    (tmp_path / "empty").mkdir()
    code, _, err = called(capsys, "report", tmp_path / where)
    assert code == 2
    assert err.startswith("tsallax: error: ")
    assert err.count("\n") == 1
    assert str(tmp_path / where) in err


BAD = [
    ("reacher --variants Sparse+Belman", "unknown variant 'Sparse+Belman'"),
    ("reacher --actions 10", "10 actions"),
    ("reacher --actions 1", "1 actions"),
    ("pendulum --actions 9,x", "--actions 9,x"),
    ("reacher --alphas 0", "alpha must be positive"),
    ("reacher --alphas nan", "alpha must be positive"),
    ("reacher --seeds 0", "seeds must be at least 1"),
    ("reacher --episodes 0", "episodes must be at least 1"),
    ("reacher --steps -1", "steps must be at least 1"),
    ("reacher --steps 3", "steps must be at least 50, the longest episode"),
    ("reacher --actions -9", "cannot have -9 actions"),
    ("reacher --alphas 0.1,x", "must be numbers, such as 0.1,0.01"),
    ("figure1 --seeds 1", "--seeds is for reacher and pendulum"),
    ("--device cpu", "--device is for reacher and pendulum"),
    ("reacher --set batches=3", "--set batches"),
    ("reacher --set alpha=3", "--set alpha"),
    ("reacher --set batch_size=0", "batch"),
    ("reacher --set n_envs=2", "one environment"),
    ("reacher --variants Sparse+SparseBellman --set sigma=0.2", "--set sigma"),
    ("reacher --device tpu", "unknown device 'tpu'"),
    ("reacher --device tpu --ray local", "unknown device 'tpu'"),
    ("reacher --device gpu", "JAX finds no GPU here"),
    ("figure1 reacher --device gpu", "JAX finds no GPU here"),
    ("figure1 reacher --at-once 0", "--at-once must be at least 1"),
    ("reacher --processes 0", "--processes must be at least 1"),
    ("reacher --processes 2 --ray local", "--processes is for this machine"),
    ("reacher --ray somewhere", "--ray somewhere: must be local, auto, host:port"),
]


def test_fleets_side_by_side_are_what_they_are_one_after_the_other(whole: Path, tmp_path: Path):
    learned([small()], tmp_path, at_once=1, processes=2, progress=False)
    expected = outcome(whole)
    for key, row in outcome(tmp_path).items():
        assert {**row, "agents": 2} == expected.pop(key)
    assert not expected
    assert len(list((tmp_path / "rows").iterdir())) == 2


def test_what_is_wrong_in_a_process_is_told_in_one_line(tmp_path: Path):
    (job,) = plan(small(), tmp_path, at_once=2)
    job.checkpoint.parent.mkdir(parents=True)
    job.checkpoint.write_text("not a fleet")
    with pytest.raises(InvalidInput, match=r"not a readable agent file"):
        train_side_by_side([job], 2, lambda: None)


def test_ctrl_c_saves_fleets_side_by_side(tmp_path: Path):
    jobs = plan(small(episodes=400, steps=20_000), tmp_path, at_once=1, save_seconds=1e9)

    def draw() -> None:
        if all(job.status.is_file() and status_table.status(job)["steps"] > 0 for job in jobs):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_side_by_side(jobs, 2, draw)
    assert len(checkpoints(tmp_path)) == 2


@pytest.mark.parametrize(("words", "part"), BAD)
def test_what_cannot_be_reproduced_is_refused_before_any_work(words, part, tmp_path, capsys):
    if "gpu" in words and __import__("jax").default_backend() == "gpu":
        pytest.skip("there is a GPU")
    if "somewhere" in words and find_spec("ray") is None:
        pytest.skip("ray is missing")
    code, out, err = called(capsys, "reproduce", words, "--quick --out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.startswith("tsallax: error: ")
    assert err.count("\n") == 1
    assert part in err
    assert not (tmp_path / "out").exists()


# What is shown


def job(folder: Path, actions: int | None = 9, seed: int = 0) -> Job:
    variant = DDPG if actions is None else Variant("sparse", "sparse", 0.1)
    runs = (Run(variant, actions, seed), Run(variant, actions, seed + 1))
    return Job("reacher", actions, runs, 100, 5000, {}, 20, str(folder))


ABOUT = {
    "share": 0.25, "steps": 1000, "seconds": 100.0, "finished": 0, "there": 1, "best": -7.25,
}  # fmt: skip


def test_words_of_a_job(tmp_path: Path):
    mine = job(tmp_path)
    what = "Reacher, 9 actions, 2 agents:"
    assert status_table.words(mine, None) == (what, "waits", "", "", "", "")
    expected = (what, "25%", "1 at -6", "100.00 ms a step", "best -7.25", "ETA 5:00")
    assert status_table.words(mine, ABOUT) == expected
    begun = {**ABOUT, "share": 0.0, "steps": 0, "seconds": 0.0, "there": 0, "best": None}
    assert status_table.words(mine, begun) == (what, "0%", "0 at -6", "", "", "")
    done = {**ABOUT, "share": 1.0, "finished": 2}
    assert status_table.words(mine, done) == (what, "done", "2 runs", "", "best -7.25", "1:40")
    assert status_table.words(job(tmp_path, None), None)[0] == "Reacher, DDPG, 2 agents:"


def test_a_status_that_is_half_written_is_no_status(tmp_path: Path):
    mine = job(tmp_path)
    assert status_table.status(mine) is None
    mine.status.parent.mkdir()
    for text in ("", json.dumps(ABOUT)[:30], "\x00" * 8):
        mine.status.write_text(text)
        assert status_table.status(mine) is None
    mine.status.write_text(json.dumps(ABOUT))
    assert status_table.status(mine) == ABOUT


def test_of_many_jobs_those_under_way_are_shown(tmp_path: Path):
    jobs = [job(tmp_path, seed=2 * i) for i in range(5)]
    done = {**ABOUT, "share": 1.0}
    states = [(jobs[0], done), (jobs[1], ABOUT), *((each, None) for each in jobs[2:])]
    assert status_table.summary(states) == [status_table.words(*state) for state in states]
    few = status_table.summary(states, most=4)
    assert few == [status_table.words(jobs[1], ABOUT), ("5 fleets: 1 done, 1 under way, 3 wait",)]


def test_lines_in_a_log(tmp_path: Path, capsys, monkeypatch):
    mine, other = job(tmp_path), job(tmp_path, None)
    mine.status.parent.mkdir()
    mine.status.write_text(json.dumps(ABOUT))
    monkeypatch.setattr(status_table, "LINES", -1.0)
    with status_table.live([mine, other]) as draw:
        draw()
    line = " ".join(status_table.words(mine, ABOUT))
    assert capsys.readouterr().err == f"4 runs to train\n{line}\n"
    with status_table.live([mine, other], show=False) as draw:
        draw()
    assert capsys.readouterr().err == ""


def test_a_table_on_a_terminal(tmp_path: Path, capsys, monkeypatch):
    mine = job(tmp_path)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with status_table.live([mine]) as draw:
        mine.status.parent.mkdir()
        mine.status.write_text(json.dumps(ABOUT))
        draw()
    shown = capsys.readouterr().err
    assert "waits" in shown
    assert "25%" in shown
