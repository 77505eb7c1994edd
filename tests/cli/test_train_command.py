"""`tsallax train`, `evaluate` and `config`: what is asked for is done, once, and can go on."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import tsallax
from tsallax.cli import app
from tsallax.deep.load import load_agent
from tsallax.errors import InvalidInput
from tsallax.files import yaml_text
from tsallax.runs import logs, settings, video

SMALL = (
    "--set net_arch=8 --set learning_starts=100 --set buffer_size=1024 "
    "--set target_update_interval=250 --save-every 500"
)
TASK = f"MultiGoal-v0 --actions 3 --alpha 0.2 --seed 3 {SMALL}"
LENGTH = "--episodes 24 --eval-every 12 --eval-episodes 2"
TABLES = (logs.EPISODES, logs.EVALUATIONS)


def called(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    """Run the program inside this process: exit code, standard output and standard error."""
    capsys.readouterr()
    code = app.run([part for word in words for part in str(word).split()])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def started(*words: str, cache: Path) -> subprocess.Popen[str]:
    """Start the real program, which compiles nothing twice."""
    environment = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "tsallax", *words]
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)


def wait_for(condition: Any, process: subprocess.Popen[str], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def rows(path: Path) -> int:
    return len(path.read_text().splitlines()) - 1 if path.exists() else 0


def assert_one_line(err: str, *words: str) -> None:
    assert err.startswith("tsallax: error: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def weights(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "agent.npz") as file:
        return {name: file[name] for name in file.files if name.startswith("learner.")}


def assert_same_run(a: Path, b: Path) -> None:
    """Equal logs, and equal networks, replay and random state, bit by bit."""
    for table in TABLES:
        assert (a / table).read_text() == (b / table).read_text()
    assert logs.read(a / logs.TRACE)["step"].tolist() == logs.read(b / logs.TRACE)["step"].tolist()
    first, second = weights(a), weights(b)
    assert {*first} == {*second}
    for name, value in first.items():
        assert value.tobytes() == second[name].tobytes(), name


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    out = tmp_path_factory.mktemp("runs") / "trained"
    assert app.run(f"train {TASK} {LENGTH} --tensorboard --out {out}".split()) == 0
    return out


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    """The same run, to be changed."""
    return Path(shutil.copytree(trained, tmp_path / "copied"))


@pytest.fixture(scope="module")
def cart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in an environment that steps on the host."""
    out = tmp_path_factory.mktemp("runs") / "cart"
    line = f"train CartPole-v1 --steps 120 --set net_arch=8 --set learning_starts=50 --out {out}"
    assert app.run(line.split()) == 0
    return out


# ----------------------------------------------------------------------------------------------


def test_a_run_is_what_the_python_api_would_do(trained: Path):
    options = {
        "net_arch": (8,),
        "learning_starts": 100,
        "buffer_size": 1024,
        "target_update_interval": 250,
    }
    agent = tsallax.DeepQ("MultiGoal-v0", actions=3, alpha=0.2, seed=3, **options)
    agent.learn(episodes=24, eval_every=12, eval_episodes=2)
    history = agent.history
    episodes = logs.read(trained / logs.EPISODES)
    assert episodes["episode"].tolist() == [*range(1, 25)]
    for column in ("step", "return", "length"):
        assert episodes[column].tolist() == history[f"episode_{column}"].tolist()
    evaluations = logs.read(trained / logs.EVALUATIONS)
    assert evaluations["episode"].tolist() == [12, 24]
    for column in ("step", "return", "std", "length", "sampled"):
        assert evaluations[column].tolist() == history[f"evaluation_{column}"].tolist()
    loaded = load_agent(trained / "agent.npz")
    assert loaded.config == agent.config
    assert repr(loaded) == repr(agent)
    about = json.loads(str(np.load(trained / "agent.npz")["json"]))
    assert about["provenance"]["tsallax"] == tsallax.__version__


def test_the_summary_says_what_was_done_and_what_to_do_next(trained: Path, capsys):
    code, out, err = called(capsys, f"train --resume --out {trained}")
    assert (code, err) == (0, "")
    lines = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in out.splitlines()[:4])
    assert lines["agent"] == "DeepQ, MultiGoal-v0, 9 actions, explore=sparse, update=sparse, seed=3"
    assert lines["trained"].startswith("24 episodes, ")
    mean = logs.read(trained / logs.EPISODES)["return"].mean()
    assert lines["return"] == f"{mean:.6g} (mean of the last 24 episodes)"
    assert lines["evaluation"].endswith("(greedy, after 24 episodes)")
    assert out.endswith(f"Next: tsallax evaluate {trained}\n")
    assert "finished before" in out


def test_a_run_in_pieces_equals_one_in_one_piece_with_no_row_twice(
    trained: Path, tmp_path: Path, capsys
):
    out = tmp_path / "pieces"
    task = f"{TASK} --eval-every 12 --eval-episodes 2"
    assert called(capsys, f"train {task} --episodes 7 --out {out}")[0] == 0
    for table in (*TABLES, logs.TRACE):
        with open(out / table, "a") as file:
            file.write("8,9999,1.0,50,1.0,1.0\n9,99")  # a process that was killed later
    code, _, err = called(capsys, f"train --resume --out {out} --episodes 13")
    assert code == 0
    assert err.startswith("tsallax: note: goes on after 7 episodes, ")
    assert called(capsys, f"train {TASK} {LENGTH} --resume --out {out}")[0] == 0
    assert_same_run(out, trained)
    assert yaml.safe_load((out / "config.yaml").read_text())["episodes"] == 24


def test_killed_terminated_and_interrupted_a_run_still_ends_as_if_nothing_had_happened(
    tmp_path: Path, capsys
):
    task = f"train {TASK} --episodes"
    out, alone = tmp_path / "a b" / "out", tmp_path / "alone"
    reached = 0
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        words = [*task.split(), "1000000", "--resume", "--out", str(out)]
        process = started(*words, cache=tmp_path / "cache")
        goal = reached + 5
        wait_for(lambda goal=goal: rows(out / logs.EPISODES) > goal, process)
        process.send_signal(number)
        printed, err = process.communicate(timeout=60)
        assert printed == ""
        reached = rows(out / logs.EPISODES)
        if number == signal.SIGKILL:
            assert process.returncode == -signal.SIGKILL
            continue
        assert process.returncode == 130
        last = err.splitlines()[-1]
        assert_one_line(last + "\n", f"interrupted after {reached} episodes, ", "saved")
        assert shlex.split(last.split("to go on: ")[1]) == [
            "tsallax", "train", "--resume", "--out", str(out),
        ]  # fmt: skip
        assert load_agent(out / "agent.npz").history.episodes == reached
    total = reached + 10
    assert app.run(["train", "--resume", "--out", str(out), "--episodes", str(total)]) == 0
    assert called(capsys, f"{task} {total} --out {alone}")[0] == 0
    assert_same_run(out, alone)
    assert sorted(p.name for p in out.iterdir()) == sorted(p.name for p in alone.iterdir())


@pytest.mark.parametrize("delay", [1.0, 2.0])
def test_ctrl_c_before_learning_ends_at_once_and_leaves_nothing_half_done(
    tmp_path: Path, delay: float
):
    out = tmp_path / "out"
    words = f"train Reacher-v5 --actions 51 --episodes 100000 --out {out}".split()
    process = started(*words, cache=tmp_path / "cache")
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)  # the latter before Python is ready
    assert not list(tmp_path.rglob("*.partial"))


def test_a_run_that_was_killed_before_its_first_checkpoint_starts_again(
    trained: Path, copied: Path, capsys
):
    (copied / "agent.npz").rename(copied / ".agent.npz.0123abcd.partial")
    code, _, err = called(capsys, f"train --resume --out {copied}")
    assert (code, err) == (0, "tsallax: note: nothing was saved yet: starts again\n")
    assert not list(copied.glob(".*"))
    assert_same_run(copied, trained)


def test_an_environment_that_cannot_be_saved_says_what_is_left_out(cart: Path, tmp_path, capsys):
    folder = shutil.copytree(cart, tmp_path / "cart")
    seen = []
    for steps in (121, 150):  # one of 120 and 121 is in the middle of an episode
        midway = bool(load_agent(folder / "agent.npz").history.lengths.any())
        code, _, err = called(capsys, f"train --resume --steps {steps} --out {folder}")
        assert code == 0
        first, *others = err.splitlines()
        assert first.startswith("tsallax: note: goes on after ")
        assert len(others) == midway
        seen += others
    for line in seen:
        assert line.startswith("tsallax: note: CartPole-v1: the episode that was under way is lost")
    assert seen
    steps = logs.read(folder / logs.EPISODES)["step"]
    assert (np.diff(steps) > 0).all()
    assert rows(folder / logs.EPISODES) > rows(cart / logs.EPISODES)


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard reads: tags, steps and values of the event files."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data = path.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            event = Event.FromString(data[12 : 12 + size])
            data = data[16 + size :]
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_tensorboard_shows_every_row_once_after_a_resume_as_well(trained: Path, copied: Path):
    pytest.importorskip("tensorboardX")
    assert app.run(f"train --resume --episodes 30 --out {copied}".split()) == 0
    for folder in (trained, copied):
        told = scalars(folder)
        for table, name in ((logs.EPISODES, "episode"), (logs.EVALUATIONS, "evaluation")):
            columns = logs.read(folder / table)
            pairs = zip(columns["step"], columns["return"].astype(np.float32), strict=True)
            assert told[f"{name}/return"] == [*pairs]
        assert len(told["trace/support"]) == rows(folder / logs.TRACE)


def test_ddpg_is_trained_by_its_name_and_takes_real_actions(tmp_path: Path, capsys):
    task = "train MultiGoal-v0 --algorithm ddpg --episodes 2"
    code, out, err = called(capsys, f"{task} --set net_arch=8 --out {tmp_path / 'run'}")
    assert (code, err) == (0, "")
    assert "DDPG, MultiGoal-v0" in out
    code, _, err = called(capsys, f"{task} --actions 3 --out {tmp_path / 'other'}")
    assert code == 2
    assert_one_line(err, "ddpg takes real actions: leave --actions 3 out")


# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "add --resume to go on with it, or give another --out"),
        ("--resume --alpha 0.3", "alpha is 0.2 in the run"),
        ("--resume --set net_arch=16", "hidden is [8] in the run"),
        ("--resume --actions 5", "actions is 3 in the run"),
        ("--resume --seed 4", "seed is 3 in the run"),
        ("CartPole-v1 --resume", "env is MultiGoal-v0 in the run"),
        ("--resume --algorithm ddpg", "algorithm is deep_q in the run"),
        ("--resume --eval-every 5", "eval_every is 12 in the run"),
        ("--resume --steps 5000", "evaluates every 12 episodes: give --episodes"),
        ("--resume --set colour=red", "unknown option 'colour'"),
    ],
)
def test_a_run_goes_on_only_as_it_was(trained: Path, capsys, words, message):
    before = {path: path.read_bytes() for path in trained.iterdir()}
    code, out, err = called(capsys, f"train {words} --out {trained}")
    assert (code, out) == (2, "")
    assert_one_line(err, message)
    assert {path: path.read_bytes() for path in trained.iterdir()} == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("alpha: 0.2", "alpha: 0.9", "alpha is 0.9, but agent.npz has 0.2"),
        ("env: MultiGoal-v0", "env: Reacher-v5", "env is Reacher-v5, but agent.npz has MultiGoal"),
        ("\nactions: 3", "\nactions: 5", "actions is 5, but agent.npz has [3, 3]"),
        ("backend: auto", "backend: gymnasium", "backend is gymnasium, but agent.npz has jax"),
        ("env_options: null", "env_options: {a: 1}", "env_options is {a: 1}, but agent.npz has {}"),
    ],
)
def test_a_configuration_that_was_changed_under_the_agent_is_refused(
    copied: Path, capsys, old, new, message
):
    config = copied / "config.yaml"
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))
    code, _, err = called(capsys, f"train --resume --episodes 30 --out {copied}")
    assert code == 2
    assert_one_line(err, f"{config}: {message}")


def test_an_environment_named_with_its_module_keeps_its_options(tmp_path: Path, capsys):
    task = "gymnasium:CartPole-v1"
    begin = f"train {task} --env-option max_episode_steps=7 --steps 60 {SMALL}"
    assert called(capsys, f"{begin} --out {tmp_path}/run")[0] == 0
    code, _, err = called(capsys, f"train {task} --resume --steps 150 --out {tmp_path}/run")
    assert code == 0, err
    agent = load_agent(tmp_path / "run" / "agent.npz", task)
    assert agent.history["episode_length"].max() == 7
    assert load_agent(tmp_path / "run" / "agent.npz", "CartPole-v1").spec.options == {}


def test_no_checkpoint_is_promised_where_none_was_written(tmp_path: Path, capsys, monkeypatch):
    line = f"train MultiGoal-v0 --actions 3 --episodes 9 {SMALL} --set learning_rate=1e30"
    code, _, err = called(capsys, f"{line} --out {tmp_path}/run")
    assert code == 1
    assert_one_line(err, "the loss is not finite", "may help\n")

    def twice(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt  # a second Ctrl-C is not waited for

    monkeypatch.setattr(tsallax.DeepQ, "learn", twice)
    code, _, err = called(capsys, f"train {TASK} --episodes 9 --out {tmp_path}/other")
    assert code == 130
    assert_one_line(err, "interrupted after 0 episodes, 0 steps, not all of them saved; to go on")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train CartPoole-v1 --episodes 3", ["CartPoole", "Did you mean: `CartPole`"]),
        ("train MultiGol --actions 3 --episodes 3", ["MultiGol", "`tsallax/MultiGoal-v0`"]),
        ("train CartPole-v7 --episodes 3", ["CartPole-v7", "`v1`"]),
        ("train Reacher-v5 --episodes 3", ["Reacher-v5", "--actions 31"]),
        ("train Pendulum-v1 --episodes 3", ["continuous, in 1 dimension", "--actions 11"]),
        ("train CartPole-v1 --actions 5 --episodes 3", ["leave --actions 5 out"]),
        ("train Reacher-v5 --actions 3,3,3 --episodes 3", ["3 numbers", "2 action dimensions"]),
        ("train Reacher-v5 --actions 1 --episodes 3", ["actions", "at least 2, got 1"]),
        ("train Reacher-v5 --actions few --episodes 3", ["actions", "'few'"]),
        ("train CartPole-v1 --backend jax --episodes 3", ["leave --backend out"]),
        ("train CartPole-v1 --backend gym --episodes 3", ["'gym'", "gymnasium"]),
        ("train CartPole-v1 --env-option ice=1 --episodes 3", ["CartPole-v1", "ice"]),
        ("train CartPole-v1 --env-option ice --episodes 3", ["--env-option ice", "KEY=VALUE"]),
        ("train CartPole-v1 --alpha 0 --episodes 3", ["alpha must be positive"]),
        ("train CartPole-v1 --alpha much --episodes 3", ["start:end:steps", "'much'"]),
        ("train CartPole-v1 --explore greedy --episodes 3", ["'greedy'", "epsilon"]),
        ("train CartPole-v1 --explore tsallis --episodes 3", ["add --set explore_q=1.5"]),
        ("train CartPole-v1 --algorithm dqn --episodes 3", ["'dqn'", "deep_q"]),
        ("train CartPole-v1 --set lerning_rate=1 --episodes 3", ["did you mean learning_rate"]),
        ("train CartPole-v1 --set double=maybe --episodes 3", ["double must be true or false"]),
        ("train CartPole-v1 --set net_arch=[1 --episodes 3", ["--set net_arch=[1", "not YAML"]),
        ("train CartPole-v1 --set batch --episodes 3", ["--set batch", "KEY=VALUE"]),
        ("train CartPole-v1 --set seed=1 --seed 1 --episodes 3", ["seed is given twice"]),
        ("train CartPole-v1 --set seed=1 --set seed=1 --episodes 3", ["seed is set twice"]),
        ("train CartPole-v1 --seed -1 --episodes 3", ["seed", "-1"]),
        ("train CartPole-v1 --seed 4294967296 --episodes 3", ["seed", "2^32 - 1"]),
        ("train CartPole-v1 --episodes 0", ["episodes must be", "at least 1"]),
        ("train CartPole-v1 --steps 2000000000", ["steps must be less than 2^30 in all"]),
        (
            "train CartPole-v1 --steps 9 --set buffer_size=100000000000000",
            ["not enough memory", "lower capacity"],
        ),
        ("train CartPole-v1", ["give --episodes or --steps"]),
        ("train --episodes 3", ["no environment", "Reacher-v5"]),
        ("train --resume", ["no environment"]),
        ("train CartPole-v1 --config FOLDER/no.yaml --episodes 3", ["no.yaml: no such file"]),
        ("train --config FOLDER/module.yaml", ["os:Fork-v0", "on the command line"]),
        ("train CartPole-v1 --episodes 3 --out FOLDER/module.yaml", ["is a file"]),
        ("train CartPole-v1 --episodes 3 --out FOLDER", ["is not empty", "another --out"]),
        ("train CartPole-v1 --episodes 3 --out FOLDER/module.yaml/run", ["cannot be written"]),
        ("evaluate FOLDER", ["no agent.npz", "--out of a run"]),
        ("evaluate FOLDER/absent", ["absent: no such file"]),
        ("evaluate FOLDER/module.yaml", ["module.yaml: not a readable agent file"]),
        ("evaluate FOLDER/absent --episodes 0", ["--episodes 0"]),
        ("evaluate TRAINED --video FOLDER/film.gif", ["ends in .mp4"]),
        ("evaluate TRAINED --video FOLDER/no/film.mp4", ["there is no folder"]),
        ("evaluate TRAINED --seed -1", ["--seed -1"]),
        ("evaluate", ["DIR_OR_FILE", "tsallax evaluate --help"]),
        ("config FOLDER/no.yaml", ["no.yaml: no such file"]),
        ("config --set batch_size=0", ["batch must be"]),
        ("config --algorithm dqn", ["'dqn'", "deep_q"]),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(
    trained: Path, tmp_path: Path, capsys, line, words
):
    (tmp_path / "module.yaml").write_text("env: os:Fork-v0\nepisodes: 3\n")
    before = sorted(tmp_path.rglob("*"))
    if line.startswith("train") and "--out" not in line:
        line += " --out FOLDER/runs/new"
    line = line.replace("FOLDER", str(tmp_path)).replace("TRAINED", str(trained))
    code, out, err = called(capsys, line)
    assert (code, out) == (2, "")
    assert_one_line(err, *words)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("missing", "line", "words"),
    [
        (
            "mujoco",
            "train Reacher-v5 --backend gymnasium --actions 3 --episodes 1 --out OUT",
            ["Reacher-v5: needs MuJoCo: pip install 'tsallax[mujoco]'", "without MuJoCo"],
        ),
        (
            "gymnasium",
            "train CartPole-v1 --episodes 1 --out OUT",
            ["CartPole-v1: needs Gymnasium: pip install gymnasium"],
        ),
    ],
)
def test_a_missing_library_is_one_line_that_says_what_to_install(tmp_path, missing, line, words):
    out = tmp_path / "out"
    program = (
        f"import sys; sys.modules[{missing!r}] = None; from tsallax import cli;"
        f"sys.exit(app.run({line.replace('OUT', str(out)).split()}))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert_one_line(result.stderr, *words)
    assert not out.exists()


def test_missing_writers_of_videos_and_tensorboard_are_named_before_the_work(
    trained: Path, tmp_path: Path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setattr(tsallax.DeepQ, "evaluate", lambda *_: pytest.fail("too late"))
    code, _, err = called(capsys, f"train CartPole-v1 --episodes 1 --tensorboard --out {tmp_path}")
    assert code == 2
    assert_one_line(err, "pip install 'tsallax[tensorboard]'")
    code, _, err = called(capsys, f"evaluate {trained} --video {tmp_path / 'film.mp4'}")
    assert code == 2
    assert_one_line(err, "pip install 'tsallax[video]'")
    assert not list(tmp_path.iterdir())


def test_a_loss_that_is_not_finite_is_one_line_and_exit_code_1(
    trained: Path, copied: Path, capsys, monkeypatch
):
    def learn(*_: Any, **__: Any) -> None:
        raise FloatingPointError("the loss is not finite after 9 steps")

    monkeypatch.setattr(tsallax.DeepQ, "learn", learn)
    code, _, err = called(capsys, f"train --resume --episodes 99 --out {copied}")
    assert code == 1
    assert_one_line(err.split("\n", 1)[1], "not finite after 9 steps", "the last checkpoint")


# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampled", [False, True])
def test_evaluate_agrees_with_the_python_api(trained: Path, capsys, sampled):
    words = f"evaluate {trained} --episodes 2 --seed 5 {'--sampled' if sampled else ''}"
    code, out, err = called(capsys, f"{words} --json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    found = load_agent(trained / "agent.npz").evaluate(2, deterministic=not sampled, seed=5)
    assert told["returns"] == found.returns.tolist()
    assert told["lengths"] == found.lengths.tolist()
    assert told["mean_return"] == pytest.approx(np.mean(told["returns"]))
    assert (told["environment"], told["algorithm"], told["sampled"]) == (
        "MultiGoal-v0", "deep_q", sampled,
    )  # fmt: skip
    assert (told["trained_episodes"], told["episodes"]) == (24, 2)


def test_evaluate_prints_an_aligned_summary_of_a_file_as_well(trained: Path, capsys):
    code, out, err = called(capsys, f"evaluate {trained / 'agent.npz'} --episodes 2")
    assert (code, err) == (0, "")
    found = load_agent(trained / "agent.npz").evaluate(2)
    lines = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in out.splitlines())
    assert lines["played"] == "2 episodes, greedy"
    assert lines["return"] == f"{found.mean:.6g} (standard error {found.standard_error:.3g})"
    assert lines["length"] == f"{found.lengths.mean():.6g} steps"


@pytest.mark.filterwarnings("ignore:os.fork")
def test_what_cannot_be_drawn_is_said_before_the_evaluation(trained, tmp_path, capsys, monkeypatch):
    def refuse(self):
        raise InvalidInput("MultiGoal-v0: cannot draw it: no display")

    def evaluate(self, *_, **__):
        raise AssertionError("it must not come to this")

    monkeypatch.setattr("tsallax.envs.gymnasium.adapter.HostEnvironment.frame", refuse)
    monkeypatch.setattr("tsallax.deep.agent.Agent.evaluate", evaluate)
    code, _, err = called(capsys, f"evaluate {trained} --video {tmp_path / 'film.mp4'}")
    assert code == 2
    assert_one_line(err, "cannot draw it: no display")
    assert not list(tmp_path.iterdir())


def test_a_video_shows_the_episodes_at_the_environments_speed(trained: Path, tmp_path, capsys):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    target = tmp_path / "film.mp4"
    words = f"evaluate {trained} --episodes 2 --video {target} --video-episodes 2"
    code, out, err = called(capsys, words)
    assert (code, err) == (0, "")
    assert out.endswith(f"The video is in {target}\n")
    frames, seconds = ffmpeg.count_frames_and_secs(str(target))
    reader = ffmpeg.read_frames(str(target))
    about = next(reader)
    pictures = [np.frombuffer(picture, np.uint8) for picture in reader]
    played = video.record(load_agent(trained / "agent.npz"), tmp_path / "again.mp4", 2, seed=3)
    pause = round(video.PAUSE * about["fps"])
    assert frames == len(pictures) == (played.lengths + 1 + pause).sum()
    assert seconds == pytest.approx(frames / about["fps"], abs=0.2)
    assert np.abs(pictures[0].astype(float) - pictures[frames // 2]).max() > 50
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.mp4", "film.mp4"]


def test_an_environment_that_cannot_be_drawn_says_what_to_install(
    cart: Path, tmp_path: Path, capsys, monkeypatch
):
    pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setitem(sys.modules, "pygame", None)
    target = tmp_path / "film.mp4"
    code, out, err = called(capsys, f"evaluate {cart} --episodes 1 --video {target}")
    assert (code, out) == (2, "")
    assert_one_line(err, "CartPole-v1: cannot draw it: pygame is not installed", "pip install")
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [*settings.ALGORITHMS])
def test_config_names_every_option_with_its_default_and_what_it_does(capsys, algorithm):
    import dataclasses

    code, out, err = called(capsys, f"config --algorithm {algorithm}")
    assert (code, err) == (0, "")
    told = yaml.safe_load(out)
    kind = settings.agent_class(algorithm).Config
    for about in (*dataclasses.fields(settings.Run), *dataclasses.fields(kind)):
        assert about.name in told
        line = next(line for line in out.splitlines() if line.startswith(f"{about.name}:"))
        assert line.endswith(f"# {about.metadata['help']}")
    assert settings.from_flat(told) == settings.from_flat({"algorithm": algorithm})


def test_config_completes_a_file_and_gives_it_back_unchanged(tmp_path: Path, capsys):
    given = "env: Reacher-v5\nactions: [5, 7]\nalpha: 1:0.1:50\nlearning_rate: 1e-3\nhidden: 32\n"
    (tmp_path / "a.yaml").write_text(given)
    code, out, _ = called(
        capsys, f"config {tmp_path / 'a.yaml'} --set max_grad_norm=10 --set env_options={{}}"
    )
    assert code == 0
    (tmp_path / "b.yaml").write_text(out)
    assert called(capsys, f"config {tmp_path / 'b.yaml'}") == (0, out, "")
    told = settings.from_flat(yaml_text.read(tmp_path / "b.yaml"))
    assert told.run.actions == (5, 7)
    assert (told.config.alpha, told.config.net_arch) == ((1.0, 0.1, 50), (32,))
    assert (told.config.learning_rate, told.config.max_grad_norm) == (1e-3, 10.0)
    assert "learning_rate: 0.001" in out
    assert "(default: 0.0001)" in out


def test_the_config_of_a_run_asks_for_the_same_run(trained: Path, tmp_path: Path, capsys):
    out = tmp_path / "again"
    words = f"train --config {trained / 'config.yaml'} --episodes 5 --set tensorboard=false"
    assert called(capsys, f"{words} --out {out}")[0] == 0
    first, second = (yaml.safe_load((f / "config.yaml").read_text()) for f in (trained, out))
    assert {key for key in first if first[key] != second[key]} == {"episodes", "tensorboard"}
    lines = [(f / logs.EPISODES).read_text().splitlines()[:6] for f in (trained, out)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alpha: 0.1\nalpha: 0.2\n", "alpha is given twice"),
        ("alpha: [0.1\n", "line 2: not YAML"),
        ("- alpha\n", "must have lines of the form NAME: VALUE"),
        ("1: 2\n", "must have lines of the form NAME: VALUE"),
        ("alhpa: 0.1\n", "unknown option 'alhpa' of deep_q: did you mean alpha?"),
        ("explore: soft\nalpha: -1\n", "alpha must be positive"),
        ("double: yes\n", "double must be true or false, got 'yes'"),
        ("env: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
        ("env: [1]\n", "env must be the id of an environment"),
        ("env_options: 3\n", "env_options must be names and values"),
        ("\x00", "not YAML"),
    ],
)
def test_a_wrong_file_is_named_in_one_line(tmp_path: Path, capsys, text, message):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    code, out, err = called(capsys, f"config {path}")
    assert (code, out) == (2, "")
    assert_one_line(err, f"{path}: ", message)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4), ("1:30:00", "1:30:00"), ("1:0:50", "1:0:50"), ("no", "no"), ("on", "on"),
        ("true", True), ("none", None), ("~", None), ("", None), ("007", 7.0), ("1_000", 1000),
        ("-3", -3), (".5", 0.5), ("5.", 5.0), ("1e5", 1e5), ("2020-01-01", "2020-01-01"),
        ("0x10", "0x10"), ("-.inf", -np.inf), ("e5", "e5"), ("=", "="),
    ],
)  # fmt: skip
def test_values_are_read_as_a_person_means_them(text: str, value: Any):
    found = settings.option(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "value",
    [1e-4, 1e-10, 1e22, "1:0:50", "no", "1e-4", "null", "", None, True, 3, [8, 8], {"a": 1}],
)
def test_values_written_are_read_back_by_this_reader_and_by_others(value: Any):
    text = f"key: {yaml_text.scalar(value)}  # a remark"
    assert yaml_text.parse(text) == {"key": value}
    assert yaml.safe_load(text) == {"key": value}


@pytest.mark.parametrize("command", ["train", "evaluate", "plot", "config"])
def test_help_of_a_command_has_examples_that_are_read_without_error(capsys, command):
    code, out, _ = called(capsys, f"{command} --help")
    assert code == 0
    examples = re.findall(rf"^    tsallax {command}.*(?:\n        .*)*", out, re.M)
    assert len(examples) >= 3
    known = out.split("Options:")[1]
    for example in examples:
        assert all(word in known for word in example.split() if word.startswith("--"))


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from tsallax import cli; code = app.run(['train', '--help']);"
        "heavy = {'jax', 'numpy', 'gymnasium', 'matplotlib', 'yaml'} & {*sys.modules};"
        "sys.exit(str(heavy) if heavy else code)"
    )
    environment = {**os.environ, "COLUMNS": "100"}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert (result.returncode, result.stderr) == (0, "")
