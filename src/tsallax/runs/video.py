"""Episodes of an agent as an mp4 file."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from os import environ
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.deep.agent import Agent
from tsallax.deep.evaluation_episodes import Episodes
from tsallax.deep.loop import episode_seed
from tsallax.errors import InvalidInput
from tsallax.files import atomic

FRAMES_PER_SECOND = 30
"""The rate of environments that do not name one."""
PAUSE_SECONDS = 0.4
"""How long the last frame of an episode is shown."""


def check_video_file(path: str | Path) -> None:
    """Refuse, before any work, a file that could not be written."""
    if Path(path).suffix.lower() != ".mp4":
        raise InvalidInput("give a name that ends in .mp4", source=f"--video {path}")
    checks.output_file("--video", path)
    _import_ffmpeg()


def _import_ffmpeg() -> Any:
    try:
        import imageio_ffmpeg as ffmpeg

        with _quiet_fork():
            ffmpeg.get_ffmpeg_exe()  # type: ignore[attr-defined]
    except (ImportError, RuntimeError):
        raise InvalidInput("--video needs ffmpeg: pip install imageio-ffmpeg pygame") from None
    return ffmpeg


def record(
    agent: Agent, path: str | Path, episodes: int = 5, deterministic: bool = True, seed: int = 0
) -> Episodes:
    """Play episodes and write them as a video, at the environment's own frame rate.

    An environment in JAX is drawn by the Gymnasium environment registered for it, which needs
    neither MuJoCo nor a display.
    """
    with _headless(), closing(agent.spec.rendered_environment()) as environment:
        rate = int(environment.metadata.get("render_fps") or FRAMES_PER_SECOND)
        environment.reset([episode_seed(seed, 0, 0)])
        with _writer(path, environment.frame(), rate) as write_frame:

            def record_state(over: bool) -> None:
                for _ in range(1 + over * round(PAUSE_SECONDS * rate)):
                    write_frame(environment.frame())

            return agent.play_in(environment, episodes, deterministic, seed, record_state)


@contextmanager
def _quiet_fork() -> Iterator[None]:
    """Start another program without JAX's warning, which is about forks that stay in Python."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        yield


@contextmanager
def _headless() -> Iterator[None]:
    """Let MuJoCo draw through EGL inside the block, where there is no display."""
    displays = {"DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"}
    needed = sys.platform == "linux" and not displays & {*environ}
    if needed:
        environ["MUJOCO_GL"] = "egl"
    try:
        yield
    finally:
        if needed:
            del environ["MUJOCO_GL"]


@contextmanager
def _writer(path: str | Path, first: NDArray[np.uint8], rate: int) -> Iterator[Any]:
    """Yield a function that adds a frame to a file, which appears when it is complete."""
    height, width = (n - n % 2 for n in first.shape[:2])  # the codec needs even sizes
    with atomic.atomic_path(path, source=f"--video {path}") as temporary:
        frames = _import_ffmpeg().write_frames(
            str(temporary), (width, height), fps=rate, macro_block_size=1, quality=7,
            ffmpeg_log_level="error", output_params=["-f", "mp4"],
        )  # fmt: skip
        with _quiet_fork():
            frames.send(None)

        def write_frame(frame: NDArray[np.uint8]) -> None:
            frames.send(np.ascontiguousarray(frame[:height, :width]))

        with closing(frames):
            yield write_frame
