"""Episodes of an agent as an mp4 file."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from os import environ
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.deep.agent import Agent
from tsallax.deep.evaluation_episodes import Episodes
from tsallax.deep.loop_gymnasium import episode_seed
from tsallax.errors import InvalidInput
from tsallax.files import atomic

FRAMES_PER_SECOND = 30
"""Where the environment names no other number."""
PAUSE = 0.4
"""Seconds for which the end of an episode stays."""


def require_video(path: str | Path) -> Any:
    """Refuse early what could not be written; give the module that writes it."""
    target = Path(path)
    if target.suffix.lower() != ".mp4":
        raise InvalidInput(f"--video {path}: give a name that ends in .mp4")
    if not target.parent.is_dir():
        raise InvalidInput(f"--video {path}: there is no folder {target.parent}")
    try:
        module = import_module("imageio_ffmpeg")
        with _quiet_fork():
            module.get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        raise InvalidInput("--video needs ffmpeg: pip install 'tsallax[video]'") from None
    return module


def record(
    agent: Agent,
    path: str | Path,
    episodes: int = 5,
    deterministic: bool = True,
    seed: int = 0,
) -> Episodes:
    """Play episodes and write what is to be seen of them, at the environment's own speed.

    An environment in JAX is played by its registered twin, which needs neither MuJoCo nor a
    display.
    """
    require_video(path)
    with _headless(), closing(agent.spec.rendered_environment()) as environment:
        speed = int(environment.metadata.get("render_fps") or FRAMES_PER_SECOND)
        environment.reset([episode_seed(seed, 0, 0)])
        with _writer(path, environment.frame(), speed) as show:

            def look(over: bool) -> None:
                for _ in range(1 + over * round(PAUSE * speed)):
                    show(environment.frame())

            return agent.play_in(environment, episodes, deterministic, seed, look)


@contextmanager
def _quiet_fork() -> Iterator[None]:
    """Start another program without JAX's warning, which is about forks that go on as Python."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        yield


@contextmanager
def _headless() -> Iterator[None]:
    """Let MuJoCo draw through EGL while it lasts, where there is no display."""
    needed = sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"} & {
        *environ
    }
    if needed:
        environ["MUJOCO_GL"] = "egl"
    try:
        yield
    finally:
        if needed:
            del environ["MUJOCO_GL"]


@contextmanager
def _writer(path: str | Path, first: NDArray[np.uint8], speed: int) -> Iterator[Any]:
    """Give a function that adds a picture to a file, which appears when it is complete."""
    height, width = (n - n % 2 for n in first.shape[:2])  # the codec wants even sizes
    try:
        with atomic.whole(path) as draft:
            frames = require_video(path).write_frames(
                str(draft), (width, height), fps=speed, macro_block_size=1, quality=7,
                ffmpeg_log_level="error", output_params=["-f", "mp4"],
            )  # fmt: skip
            with _quiet_fork():
                frames.send(None)

            def show(picture: NDArray[np.uint8]) -> None:
                frames.send(np.ascontiguousarray(picture[:height, :width]))

            with closing(frames):
                yield show
    except OSError as error:
        raise InvalidInput(f"--video {path}: cannot be written: {error}") from None
