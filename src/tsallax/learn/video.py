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

from tsallax import files
from tsallax.errors import InvalidInput
from tsallax.learn.agent import Agent
from tsallax.learn.episodes import Episodes
from tsallax.learn.host import seed_of

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
    from tsallax.envs.gymnasium import HostEnvironment

    env = _drawn(agent)
    with _headless(), closing(env):
        discrete = agent._world.n_actions is not None and agent.actions is None
        frame = HostEnvironment(env, continuous=not discrete).frame
        speed = int(env.metadata.get("render_fps") or FRAMES_PER_SECOND)
        env.reset(seed=seed_of(seed, 0, 0))
        returns, lengths = [], []
        with _writer(path, frame(), speed) as show:
            for episode in range(episodes):
                seen, _ = env.reset(seed=seed_of(seed, 0, episode))
                total, length, over = 0.0, 0, False
                show(frame())
                while not over:
                    action = agent.predict(seen, deterministic)
                    if not discrete:
                        action = action.reshape(env.action_space.shape)
                    seen, reward, terminated, truncated, _ = env.step(action)
                    show(frame())
                    total, length = total + float(reward), length + 1
                    over = bool(terminated or truncated)
                for _ in range(round(PAUSE * speed)):
                    show(frame())
                returns.append(total)
                lengths.append(length)
    return Episodes(np.array(returns), np.array(lengths, np.int64))


def _drawn(agent: Agent) -> Any:
    """A Gymnasium environment like the agent's that can be drawn."""
    from tsallax.envs.gymnasium import make

    world = agent._world
    if world.jax is not None:
        return make(f"tsallax/{world.jax.name}", render_mode="rgb_array")
    source = world._known()
    if isinstance(source, str):
        return make(source, **{**world.options, "render_mode": "rgb_array"})
    spec = getattr(source, "spec", None)
    if spec is None:
        raise InvalidInput(f"{world.name}: it cannot be made a second time to be drawn")
    import gymnasium

    return gymnasium.make(spec, render_mode="rgb_array")


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
        with files.whole(path) as draft:
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
