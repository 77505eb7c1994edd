"""Videos: every state of the episodes at the environment's frame rate, complete or absent."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from command_line import OLD_RUN
from refusals import refused
from tsallax.deep.learners import load_agent
from tsallax.errors import InvalidInput
from tsallax.runs import video

ffmpeg = pytest.importorskip("imageio_ffmpeg")


@pytest.fixture(scope="module")
def agent():
    return load_agent(OLD_RUN / "agent.npz")


@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_video_shows_every_state_at_the_environments_frame_rate(agent, tmp_path: Path):
    target = tmp_path / "film.mp4"
    played = video.record(agent, target, 2, seed=3)
    reader = ffmpeg.read_frames(str(target))
    about = next(reader)
    frames = [np.frombuffer(frame, np.uint8) for frame in reader]
    pause = round(video.PAUSE_SECONDS * about["fps"])
    assert len(frames) == (played.lengths + 1 + pause).sum()
    assert about["duration"] == pytest.approx(len(frames) / about["fps"], abs=0.2)
    assert np.abs(frames[0].astype(float) - frames[len(frames) // 2]).max() > 50
    assert [path.name for path in tmp_path.iterdir()] == ["film.mp4"]


@pytest.mark.filterwarnings("ignore:os.fork")
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), InvalidInput("no display"), FileNotFoundError(2, "No", "a.map")]
)
def test_a_recording_that_fails_leaves_no_file(agent, tmp_path: Path, monkeypatch, error):
    def play_in(environment, episodes, deterministic, seed, record_state):
        record_state(False)
        raise error

    monkeypatch.setattr(agent, "play_in", play_in)
    with pytest.raises(type(error)) as caught:
        video.record(agent, tmp_path / "film.mp4")
    assert caught.value is error
    assert not list(tmp_path.iterdir())


def test_an_environment_that_cannot_be_drawn_says_what_to_install(tmp_path: Path, monkeypatch):
    import tsallax

    monkeypatch.setitem(sys.modules, "pygame", None)
    cart = tsallax.DeepQ("CartPole-v1", net_arch=8, buffer_size=64)
    with pytest.raises(InvalidInput, match=r"CartPole-v1.*pip install"):
        video.record(cart, tmp_path / "film.mp4", 1)
    assert not list(tmp_path.iterdir())


def test_mujoco_draws_without_a_display_inside_the_block_only(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    with video._headless():
        assert os.environ["MUJOCO_GL"] == "egl"
    assert "MUJOCO_GL" not in os.environ
    monkeypatch.setenv("DISPLAY", ":0")
    with video._headless():
        assert "MUJOCO_GL" not in os.environ


def test_a_file_that_could_not_be_written_is_refused_at_once(tmp_path: Path, monkeypatch):
    with refused(".mp4"):
        video.check_video_file(tmp_path / "film.gif")
    with refused("no folder"):
        video.check_video_file(tmp_path / "absent" / "film.mp4")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with refused("pip install imageio-ffmpeg pygame"):
        video.check_video_file(tmp_path / "film.mp4")
