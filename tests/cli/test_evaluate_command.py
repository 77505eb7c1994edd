"""`tsallax evaluate` plays what the Python API plays, of runs of earlier versions as well."""

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import OLD_RUN, assert_error, call, rows_of
from tsallax.deep import checkpoint
from tsallax.deep.agent import Agent
from tsallax.deep.learners import load_agent


def test_json_agrees_with_the_python_api(capsys):
    code, out, err = call(capsys, f"evaluate {OLD_RUN} --episodes 2 --seed 5 --sampled --json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    played = load_agent(OLD_RUN / "agent.npz").evaluate(2, deterministic=False, seed=5)
    assert found["returns"] == played.returns.tolist()
    assert found["lengths"] == played.lengths.tolist()
    assert found["mean_return"] == pytest.approx(played.returns.mean())
    assert (found["environment"], found["algorithm"]) == ("MultiGoal-v0", "deep_q")
    assert (found["sampled"], found["trained_episodes"], found["episodes"]) == (True, 12, 2)


def test_the_summary_of_a_checkpoint_names_agent_and_greedy_returns(capsys):
    code, out, err = call(capsys, f"evaluate {OLD_RUN / 'agent.npz'} --episodes 2")
    assert (code, err) == (0, "")
    agent = load_agent(OLD_RUN / "agent.npz")
    played = agent.evaluate(2)
    rows = rows_of(out)
    assert rows["agent"] == agent.description
    assert rows["trained"] == "12 episodes, 600 steps"
    assert rows["played"] == "2 episodes, greedy"
    assert rows["return"].startswith(f"{played.mean:.6g} ")
    assert rows["length"] == f"{played.lengths.mean():.6g} steps"


def test_an_agent_without_a_way_to_make_its_environment_asks_for_the_option(tmp_path, capsys):
    about, arrays = checkpoint.read(OLD_RUN / "agent.npz")
    about["world"].update(name="shop:Shop-v0", jax=False, by_name=False)
    checkpoint.write(tmp_path / "shop.npz", about, arrays)
    output = call(capsys, f"evaluate {tmp_path / 'shop.npz'}")
    assert_error(output, "Shop-v0: this agent was saved without", "--env shop:Shop-v0")


def test_a_video_is_recorded_before_the_evaluation(tmp_path, capsys, monkeypatch):
    order: list[Any] = []
    evaluate = Agent.evaluate
    target = tmp_path / "film.mp4"
    record = "tsallax.runs.video.record"
    monkeypatch.setattr(record, lambda _, path, *rest: order.append((path, rest)))
    monkeypatch.setattr(
        Agent, "evaluate", lambda self, *a, **k: order.append("played") or evaluate(self, *a, **k)
    )
    words = f"evaluate {OLD_RUN} --episodes 2 --video {target} --video-episodes 2"
    code, out, err = call(capsys, words)
    assert (code, err) == (0, "")
    assert order == [(target, (2, True, 3)), "played"]
    assert str(target) in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("FOLDER", "no agent.npz"),
        ("FOLDER/absent", "absent: no such file"),
        ("FOLDER/text.npz", "text.npz: "),
        ("RUN --episodes 0", "--episodes"),
        ("RUN --video-episodes 0", "--video-episodes"),
        ("RUN --seed -1", "--seed"),
        ("RUN --video FOLDER/film.gif", ".mp4"),
        ("RUN --env CartPole-v1", "CartPole-v1"),
    ],
)
def test_wrong_input_is_one_line_before_any_episode_is_played(
    tmp_path: Path, capsys, monkeypatch, words, message
):
    monkeypatch.setattr(Agent, "evaluate", lambda *_, **__: pytest.fail("too late"))
    (tmp_path / "text.npz").write_text("hello")
    words = words.replace("FOLDER", str(tmp_path)).replace("RUN", str(OLD_RUN))
    assert_error(call(capsys, "evaluate", words), message)
    assert [path.name for path in tmp_path.iterdir()] == ["text.npz"]
