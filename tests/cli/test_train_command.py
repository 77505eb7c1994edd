"""`tsallax train`: runs that can be interrupted, resumed and refused, and what they print."""

import shlex
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import tsallax
from command_line import OLD_RUN, assert_error, assert_interrupted, call, rows_of, start
from tsallax.cli import app
from tsallax.deep.learners import load_agent
from tsallax.files import yaml_text
from tsallax.runs import learning_curves, logs, preset_catalogue

OPTIONS = {"net_arch": 8, "learning_starts": 0, "buffer_size": 256, "target_update_interval": 250}
SMALL = " ".join(f"--set {name}={value}" for name, value in OPTIONS.items())
TASK = f"MultiGoal-v0 --actions 3 --alpha 0.2 --seed 3 {SMALL} --save-every 500"
LENGTH = "--episodes 12 --eval-every 6 --eval-episodes 2"


def rows(path: Path) -> int:
    return len(path.read_text().splitlines()) - 1 if path.exists() else 0


def learner(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "agent.npz") as file:
        return {name: file[name] for name in file.files if name.startswith("learner.")}


def assert_same_run(a: Path, b: Path) -> None:
    """Equal logs, and equal networks, replay and random state, bit for bit."""
    for table in (logs.EPISODES, logs.EVALUATIONS):
        assert (a / table).read_text() == (b / table).read_text()
    assert logs.read(a / logs.TRACE)["step"].tolist() == logs.read(b / logs.TRACE)["step"].tolist()
    first, second = learner(a), learner(b)
    assert {*first} == {*second}
    for name, value in first.items():
        assert value.tobytes() == second[name].tobytes(), name


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    out = tmp_path_factory.mktemp("runs") / "trained"
    assert app.run(f"train {TASK} {LENGTH} --out {out}".split()) == 0
    return out


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "copied"))


def test_a_run_equals_that_of_the_python_api(trained: Path):
    agent = tsallax.DeepQ("MultiGoal-v0", actions=3, alpha=0.2, seed=3, **OPTIONS)
    agent.learn(episodes=12, eval_every=6, eval_episodes=2)
    episodes = logs.read(trained / logs.EPISODES)
    assert episodes["episode"].tolist() == [*range(1, 13)]
    for column in ("step", "return", "length"):
        assert episodes[column].tolist() == agent.history[f"episode_{column}"].tolist()
    evaluations = logs.read(trained / logs.EVALUATIONS)
    assert evaluations["episode"].tolist() == [6, 12]
    for column in ("step", "return", "std", "length", "sampled"):
        assert evaluations[column].tolist() == agent.history[f"evaluation_{column}"].tolist()
    loaded = load_agent(trained / "agent.npz")
    assert loaded.config == agent.config
    assert repr(loaded) == repr(agent)


def test_a_finished_run_prints_a_summary_and_commands_that_work(copied: Path, capsys):
    code, out, err = call(capsys, f"train --resume --out {copied}")
    assert (code, err) == (0, "")
    found = rows_of(out)
    assert found["agent"] == load_agent(copied / "agent.npz").description
    assert found["trained"] == "12 episodes, 600 steps"
    assert found["return"].startswith(f"{logs.read(copied / logs.EPISODES)['return'].mean():.6g} ")
    assert "after 12 episodes" in found["evaluation"]
    hints = [line.split(": ", 1)[1] for line in out.splitlines() if ": tsallax " in line]
    evaluate, extend = (shlex.split(hint)[1:] for hint in hints)
    assert evaluate == ["evaluate", str(copied)]
    assert app.run([*evaluate, "--episodes", "2"]) == 0
    assert app.run(extend) == 0
    assert rows(copied / logs.EPISODES) == 24


def test_a_run_in_pieces_equals_one_in_one_piece_with_no_row_twice(
    trained: Path, tmp_path: Path, capsys
):
    out = tmp_path / "pieces"
    task = f"{TASK} --eval-every 6 --eval-episodes 2"
    assert call(capsys, f"train {task} --episodes 5 --out {out}").code == 0
    for table in logs.TABLES:
        with open(out / table, "a") as file:
            file.write("8,9999,1.0,50,1.0,1.0\n9,99")  # of a process that was killed later
    code, _, err = call(capsys, f"train {TASK} {LENGTH} --resume --out {out}")
    assert code == 0
    assert err.startswith("tsallax: note: continues after 5 episodes, ")
    assert_same_run(out, trained)
    assert yaml_text.read(out / "config.yaml")["episodes"] == 12


def test_a_run_that_was_killed_before_its_first_checkpoint_starts_again(
    trained: Path, copied: Path, capsys
):
    (copied / "agent.npz").rename(copied / ".agent.npz.0123abcd.partial")
    code, _, err = call(capsys, f"train --resume --out {copied}")
    assert code == 0
    assert "starts again" in err
    assert not list(copied.glob(".*"))
    assert_same_run(copied, trained)


@pytest.mark.slow
def test_a_run_killed_and_interrupted_ends_as_if_nothing_had_happened(tmp_path: Path):
    out, alone = tmp_path / "a b" / "out", tmp_path / "alone"
    words = [*f"train {TASK} --episodes 1000000 --resume --out".split(), str(out)]
    reached = 0
    for number in (signal.SIGKILL, signal.SIGINT):
        process = start(*words)
        end = time.monotonic() + 120
        while rows(out / logs.EPISODES) <= reached + 2 and time.monotonic() < end:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        if number == signal.SIGKILL:
            process.kill()
            process.communicate()
            reached = rows(out / logs.EPISODES)
            continue
        line = assert_interrupted(process, number)
        reached = rows(out / logs.EPISODES)
        assert f"{reached:,} episodes" in line
        command = shlex.split(line.split("to continue: ")[1])
        assert command == ["tsallax", "train", "--resume", "--out", str(out)]
        assert load_agent(out / "agent.npz").history.episodes == reached
    total = str(reached + 2)
    assert app.run([*command[1:], "--episodes", total]) == 0
    assert app.run([*f"train {TASK} --episodes".split(), total, "--out", str(alone)]) == 0
    assert_same_run(out, alone)
    assert sorted(p.name for p in out.iterdir()) == sorted(p.name for p in alone.iterdir())


def test_a_second_interrupt_says_that_not_all_is_saved(tmp_path: Path, capsys, monkeypatch):
    def learn(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tsallax.DeepQ, "learn", learn)
    code, out, err = call(capsys, f"train {TASK} --episodes 9 --out {tmp_path}/run")
    assert (code, out) == (130, "")
    assert "0 episodes, 0 steps, not all saved" in err


@pytest.mark.parametrize("saved", [False, True])
def test_training_that_diverges_names_the_last_checkpoint_if_there_is_one(
    copied: Path, capsys, monkeypatch, saved
):
    def learn(*_: Any, **__: Any) -> None:
        raise FloatingPointError("the loss is not finite after 9 steps")

    monkeypatch.setattr(tsallax.DeepQ, "learn", learn)
    if not saved:
        (copied / "agent.npz").unlink()
    code, out, err = call(capsys, f"train --resume --episodes 99 --out {copied}")
    assert (code, out) == (1, "")
    assert "not finite after 9 steps" in err
    assert ("last checkpoint" in err) == saved


@pytest.mark.slow
def test_an_environment_with_a_module_keeps_its_options(tmp_path: Path, capsys):
    out, task = tmp_path / "run", "gymnasium:CartPole-v1"
    more = "--env-option max_episode_steps=7 --set learning_starts=1000 --set net_arch=8"
    code, printed, _ = call(capsys, f"train {task} {more} --steps 60 --out {out}")
    assert code == 0
    assert f"evaluate {out} --env {task}" in printed
    code, _, err = call(capsys, f"train {task} --resume --steps 80 --out {out}")
    assert code == 0
    assert "lost" not in err  # saved in the middle of an episode, which is repeated
    episodes = logs.read(out / logs.EPISODES)
    assert episodes["length"].max() == 7
    assert (np.diff(episodes["step"]) > 0).all()


@pytest.mark.slow
def test_options_change_on_resume_and_the_run_records_from_which_step_on(
    copied: Path, tmp_path: Path, capsys
):
    words = "--episodes 16 --set learning_rate=0.01 --set gamma=0.5 --eval-every 8"
    code, _, err = call(capsys, f"train --resume {copied} {words}")
    assert code == 0, err
    assert "gamma 0.5 (before: 0.99), learning_rate 0.01 (before: 0.0001)" in err
    rows_of_changes = logs.read_changes(copied / logs.CHANGES)
    assert [(row["step"], row["option"], row["after"]) for row in rows_of_changes] == [
        ("600", "gamma", "0.5"),
        ("600", "learning_rate", "0.01"),
    ]
    assert yaml_text.read(copied / "config.yaml")["gamma"] == 0.5
    python = tsallax.DeepQ("MultiGoal-v0", actions=3, alpha=0.2, seed=3, **OPTIONS)
    python.learn(episodes=12).change(gamma=0.5, learning_rate=0.01).learn(episodes=16)
    found = load_agent(copied / "agent.npz")
    assert found.changes == python.changes
    assert np.array_equal(found.q([0.5, 0.5]), python.q([0.5, 0.5]))
    code, _, err = call(capsys, f"train --resume --out {copied} --episodes 17")
    assert (code, "before" in err) == (0, False)
    (group,) = learning_curves.group(learning_curves.find([copied]))
    assert group.runs[0].options["changed"].startswith("gamma 0.5 from step 600")


def test_a_run_killed_between_a_change_and_its_config_goes_on_with_the_change(copied: Path, capsys):
    agent = load_agent(copied / "agent.npz").change(alpha=0.5)
    agent.save(copied / "agent.npz")
    code, _, err = call(capsys, f"train --resume --out {copied} --episodes 13")
    assert code == 0, err
    assert yaml_text.read(copied / "config.yaml")["alpha"] == 0.5
    assert logs.read_changes(copied / logs.CHANGES)[0]["before"] == "0.2"


def test_the_best_agent_is_kept_and_a_return_ends_the_run(trained: Path, tmp_path: Path, capsys):
    evaluated = logs.read(trained / logs.EVALUATIONS)["return"]
    best = load_agent(trained / "best.npz")
    assert best.history["evaluation_return"][-1] == evaluated.max()
    assert best.steps == logs.read(trained / logs.EVALUATIONS)["step"][evaluated.argmax()]
    out, value = tmp_path / "early", float(evaluated[0]) - 1
    code, printed, _ = call(capsys, f"train {TASK} {LENGTH} --stop-at-return {value} --out {out}")
    assert code == 0
    assert rows(out / logs.EPISODES) == 6
    found = rows_of(printed)
    assert found["best"].endswith(f"in {out / 'best.npz'}")
    assert found["ended"].startswith("at a return of ")
    code, printed, err = call(capsys, f"train --resume --out {out}")
    assert (code, err) == (0, "")
    command = shlex.split(printed.rpartition(": tsallax ")[2])
    assert command[-4:] == ["--set", "stop_at_return=null", "--episodes", "24"]
    assert app.run([*command[:-1], "12"]) == 0
    assert_same_run(out, trained)


def test_a_known_environment_is_trained_with_its_preset(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr(tsallax.DeepQ, "learn", lambda *_, **__: None)
    options = tsallax.preset("CartPole-v1")

    def train(name: str, more: str = "") -> tuple[dict[str, Any], str]:
        code, _, err = call(capsys, f"train CartPole-v1 {more} --out {tmp_path / name}")
        assert code == 0, err
        return yaml_text.read(tmp_path / name / "config.yaml"), err

    config, err = train("preset")
    assert {name: config[name] for name in options} == options
    assert config["steps"] == preset_catalogue.preset_named("CartPole-v1").steps
    assert err.count("\n") == 1
    assert "uses the options of the preset CartPole-v1: " in err
    config, _ = train("over", "--episodes 5 --set learning_rate=0.5 --explore soft")
    assert (config["learning_rate"], config["explore"], config["episodes"]) == (0.5, "soft", 5)
    assert config["steps"] is None
    assert config["net_arch"] == options["net_arch"]
    for name, more in (
        ("none", "--preset none --steps 9"),
        ("file", f"--config {tmp_path / 'none' / 'config.yaml'}"),
    ):
        config, err = train(name, more)
        assert (config["net_arch"], err) == (None, "")
    config, _ = train("other", "--preset FrozenLake8x8-v1")
    assert config["net_arch"] == tsallax.preset("FrozenLake8x8-v1")["net_arch"]


def test_the_general_preset_is_used_where_it_is_asked_for(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr(tsallax.DeepQ, "learn", lambda *_, **__: None)

    def train(name: str, line: str) -> tuple[dict[str, Any], str]:
        code, _, err = call(capsys, f"train {line} --out {tmp_path / name}")
        assert code == 0, err
        return yaml_text.read(tmp_path / name / "config.yaml"), err

    options = tsallax.preset("general")
    config, err = train("general", "Pendulum-v1 --actions 3 --preset general")
    assert {name: config[name] for name in options} == options
    assert config["steps"] == preset_catalogue.preset_named("general").steps
    assert err.count("\n") == 1
    assert "uses the options of the preset general: tsallax presets general shows them" in err
    assert "--preset none leaves them out" in err
    config, err = train("resumed", "Pendulum-v1 --actions 3 --preset general --resume --steps 9")
    assert (config["steps"], config["tau"], err.count("\n")) == (9, options["tau"], 1)
    for name, line in (
        ("none", "Pendulum-v1 --actions 3 --steps 9"),
        ("file", f"--config {tmp_path / 'none' / 'config.yaml'}"),
        ("jax", "Reacher-v5 --actions 3 --steps 9"),
    ):
        config, err = train(name, line)
        assert (config["layer_norm"], config["tau"], err) == (False, None, "")


MAZE = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
gymnasium.register("CurrentFolder-v0", CartPoleEnv, max_episode_steps=9)
"""


def test_an_environment_of_the_current_folder_is_found_also_by_the_printed_commands(
    tmp_path: Path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(gymnasium.registry, "CurrentFolder-v0", raising=False)
    (tmp_path / "current_folder_maze.py").write_text(MAZE)
    task = "current_folder_maze:CurrentFolder-v0"
    code, out, err = call(capsys, f"train {task} --episodes 2 --set net_arch=8 --out run")
    assert (code, err) == (0, "")
    for note in ("", "continues after 2 episodes"):  # to evaluate it, then to extend it
        command = shlex.split(out.rpartition(": tsallax ")[2])
        monkeypatch.delitem(sys.modules, "current_folder_maze")
        monkeypatch.delitem(gymnasium.registry, "CurrentFolder-v0")
        monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(tmp_path)])
        code, _, err = call(capsys, *command)
        assert (code, note in err) == (0, True), command
        code, out, err = call(capsys, f"train {task} --resume --out run")
        assert (code, err) == (0, "")
    assert rows(tmp_path / "run" / logs.EPISODES) == 4


def test_a_function_of_the_current_folder_makes_the_environment(
    tmp_path: Path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "current_folder_make.py").write_text(
        "import gymnasium\n\ndef cart(limit=9):\n"
        "    return gymnasium.make('CartPole-v1', max_episode_steps=limit)\n"
    )
    task = "current_folder_make:cart"
    words = f"train {task} --env-option limit=5 --episodes 2 --set net_arch=8 --out run"
    code, out, err = call(capsys, words)
    assert (code, err) == (0, "")
    code, out, err = call(capsys, f"evaluate run --env {task} --episodes 3")
    assert (code, rows_of(out)["length"]) == (0, "5 steps")
    code, out, err = call(capsys, "train --resume run --episodes 4")
    assert (code, out) == (2, "")
    assert err.endswith(f"to resume the run: tsallax train {task} --resume --out run\n")
    command = shlex.split(err.strip().rpartition(": tsallax ")[2])
    assert call(capsys, *command, "--episodes", "3")[0] == 0


def test_ddpg_is_chosen_by_its_name(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr(tsallax.DDPG, "learn", lambda *_, **__: None)
    task = f"train MultiGoal-v0 --algorithm ddpg --episodes 2 --out {tmp_path / 'run'}"
    code, out, err = call(capsys, f"{task} --set net_arch=8")
    assert (code, err) == (0, "")
    assert rows_of(out)["agent"].startswith("DDPG, MultiGoal-v0")


def test_the_config_of_a_run_makes_the_same_run(trained: Path, tmp_path: Path, capsys):
    out = tmp_path / "again"
    words = f"train --config {trained / 'config.yaml'} --episodes 5 --out {out}"
    assert call(capsys, words).code == 0
    first, second = (yaml_text.read(folder / "config.yaml") for folder in (trained, out))
    assert {key for key in first if first[key] != second[key]} == {"episodes"}
    lines = [(folder / logs.EPISODES).read_text().splitlines()[:6] for folder in (trained, out)]
    assert lines[0] == lines[1]


def test_a_run_of_version_0_1_is_resumed_and_its_config_gets_the_current_names(tmp_path, capsys):
    out = shutil.copytree(OLD_RUN, tmp_path / "run")
    before = (out / logs.EPISODES).read_text()
    code, _, err = call(capsys, f"train --resume --episodes 14 --out {out}")
    assert code == 0, err
    assert (out / logs.EPISODES).read_text().startswith(before)
    assert rows(out / logs.EPISODES) == 14
    config = yaml_text.read(out / "config.yaml")
    assert (config["net_arch"], config["episodes"]) == ([8], 14)
    assert "hidden" not in config


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "--resume"),
        ("--resume --set net_arch=16", "net_arch cannot change"),
        ("--resume --set buffer_size=512 --alpha 0.3", "--resume: buffer_size cannot change"),
        ("--resume --seed 4", "seed is 3"),
        ("--resume --preset none", "leave --preset out"),
        ("CartPole-v1 --resume", "env is MultiGoal-v0"),
        ("--resume --algorithm ddpg", "algorithm is deep_q"),
        ("--resume --steps 5000", "give --episodes"),
        ("--resume --set colour=red", "'colour'"),
    ],
)
def test_a_run_is_not_resumed_with_options_that_make_another(copied: Path, capsys, words, message):
    before = {path: path.read_bytes() for path in copied.iterdir()}
    assert_error(call(capsys, f"train {words} --out {copied}"), message)
    assert {path: path.read_bytes() for path in copied.iterdir()} == before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("alpha: 0.2", "alpha: 0.9", "alpha is 0.9, but agent.npz has 0.2"),
        ("env: MultiGoal-v0", "env: Reacher-v5", "env is Reacher-v5, but"),
        ("\nactions: 3", "\nactions: 5", "actions is 5, but agent.npz has [3, 3]"),
        ("backend: auto", "backend: gymnasium", "backend is gymnasium, but agent.npz has jax"),
        ("env_options: null", "env_options: {a: 1}", "env_options is {a: 1}, but"),
    ],
)
def test_a_configuration_that_was_edited_is_refused(copied: Path, capsys, old, new, message):
    config = copied / "config.yaml"
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))
    output = call(capsys, f"train --resume --episodes 30 --out {copied}")
    assert_error(output, f"{config}: {message}")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("MultiGol --actions 3 --episodes 3", ["MultiGol", "tsallax/MultiGoal-v0"]),
        ("Reacher-v5 --episodes 3", ["Reacher-v5", "--actions 31"]),
        ("Pendulum-v1 --episodes 3", ["1 dimension", "--actions 11"]),
        ("CartPole-v1 --actions 5 --episodes 3", ["leave --actions out"]),
        ("Reacher-v5 --actions 3,3,3 --episodes 3", ["3", "2 action dimensions"]),
        ("Reacher-v5 --actions few --episodes 3", ["actions", "'few'"]),
        ("CartPole-v1 --backend jax --episodes 3", ["leave --backend out"]),
        ("CartPole-v1 --backend gym --episodes 3", ["'gym'", "gymnasium"]),
        ("CartPole-v1 --env-option ice=1 --episodes 3", ["CartPole-v1", "ice"]),
        ("CartPole-v1 --alpha much --episodes 3", ["start:end:steps", "'much'"]),
        ("CartPole-v1 --explore tsallis --episodes 3", ["--set explore_q=1.5"]),
        ("CartPole-v1 --set lerning_rate=1 --episodes 3", ["did you mean learning_rate"]),
        ("CartPole-v1 --set seed=1 --seed 1 --episodes 3", ["seed is given twice"]),
        ("CartPole-v1 --steps 9 --set net_arch=[10000000,10000000]", ["memory", "net_arch"]),
        ("Pendulum-v1 --actions 3", ["--episodes or --steps"]),
        ("CartPole-v1 --preset none", ["--episodes or --steps"]),
        ("CartPole-v1 --preset Lunar", ["unknown preset 'Lunar'", "LunarLander-v3"]),
        ("Pendulum-v1 --preset CartPole-v1 --algorithm ddpg", ["for deep_q", "leave --preset out"]),
        ("CartPole-v1 --set epsilon=0.1", ["epsilon is for explore=epsilon", "uniform_share"]),
        ("CartPole-v1 --stop-at-return nan", ["stop_at_return must be a number"]),
        ("CartPole-v1 --wandb=", ["wandb must be the name of a project"]),
        ("--episodes 3", ["no environment", "Reacher-v5"]),
        ("--resume", ["/runs/new: there is no such folder", "give an environment"]),
        ("--resume --out FOLDER", ["is not empty and holds no run"]),
        ("CartPol-v1", ["CartPol-v1: there is no such environment", "CartPole-v1"]),
        ("CartPole-v1 --config FOLDER/no.yaml --episodes 3", ["no.yaml: no such file"]),
        ("--config FOLDER/module.yaml", ["os:Fork-v0", "on the command line"]),
        ("CartPole-v1 --episodes 3 --out FOLDER/module.yaml", ["is a file"]),
        ("CartPole-v1 --episodes 3 --out FOLDER/module.yaml/run", ["cannot be written"]),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(tmp_path: Path, capsys, line, words):
    (tmp_path / "module.yaml").write_text("env: os:Fork-v0\nepisodes: 3\n")
    if "--out" not in line:
        line += " --out FOLDER/runs/new"
    assert_error(call(capsys, "train", line.replace("FOLDER", str(tmp_path))), *words)
    assert [path.name for path in tmp_path.rglob("*")] == ["module.yaml"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("FOLDER/nope", "nope: there is no such folder: give the folder of a run"),
        ("FOLDER", ": holds no run: give the folder of a run"),
        ("CartPole-v1", "no folder for the run: give --out"),
        ("MultiGoal", "no folder for the run: give --out"),
    ],
)
def test_what_is_no_run_is_not_resumed(tmp_path: Path, capsys, name, message):
    assert_error(call(capsys, f"train --resume {name.replace('FOLDER', str(tmp_path))}"), message)
    assert not list(tmp_path.iterdir())


def test_missing_libraries_are_named_before_anything_is_written(tmp_path, capsys, monkeypatch):
    line = f"train CartPole-v1 --episodes 1 --out {tmp_path / 'run'}"
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert_error(call(capsys, line, "--tensorboard"), "pip install tensorboardX")
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert_error(call(capsys, line, "--wandb sparse"), "pip install wandb")
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert_error(call(capsys, line), "CartPole-v1", "pip install gymnasium")
    assert not list(tmp_path.iterdir())
