"""Folders of runs made up for tests, as `tsallax train` leaves them."""

from pathlib import Path
from typing import Any

from tsallax.deep.history import History
from tsallax.files import yaml_text
from tsallax.runs import logs

OPTIONS = {"algorithm": "deep_q", "env": "Reacher-v5", "explore": "sparse", "alpha": 0.1}


def made_up_history(returns: Any, every: int = 0, length: int = 50) -> History:
    """A history with these returns, and an evaluation after every so many episodes."""
    h = History()
    for i, value in enumerate(returns):
        step = (i + 1) * length
        h.append(episode_step=step, episode_return=float(value), episode_length=length)
        if every and (i + 1) % every == 0:
            h.append(
                evaluation_step=step, evaluation_episode=i + 1, evaluation_std=0.5,
                evaluation_return=float(value) + 1, evaluation_sampled=float(value),
                evaluation_length=float(length),
            )  # fmt: skip
    return h


def made_up_run(folder: Path, returns: Any, seed: int = 0, every: int = 0, **options: Any) -> Path:
    """The folder of a run, as `tsallax train` leaves it."""
    folder.mkdir(parents=True)
    lines = {**OPTIONS, "seed": seed, "episodes": len(returns), **options}
    text = "".join(f"{key}: {yaml_text.scalar(value)}\n" for key, value in lines.items())
    (folder / "config.yaml").write_text(text)
    logs.Logs(folder, made_up_history(returns, every), tensorboard=False).close()
    return folder
