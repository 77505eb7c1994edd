"""Training in a folder with settings, checkpoint and logs, which can be interrupted and resumed.

`config.yaml` holds the settings and `agent.npz` the state of the agent, so that a run is resumed
from its folder alone. The logs are derived from the agent, and rewritten whenever it is loaded.
"""

import shlex
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsallax.deep.option_changes import Change
from tsallax.envs.gymnasium.gymnasium_make import names_module
from tsallax.errors import InvalidInput
from tsallax.files import yaml_text
from tsallax.files.atomic import atomic_path, remove_leftovers
from tsallax.files.locks import locked
from tsallax.runs.logs import CHANGES, Logs, write_changes
from tsallax.runs.settings import Settings, to_flat, to_yaml

AGENT_FILE, CONFIG_FILE = "agent.npz", "config.yaml"
BEST_FILE = "best.npz"
LIMITS = ("episodes", "steps")


@dataclass(frozen=True)
class TrainingRun:
    """An agent, its settings and its folder, ready to be trained."""

    settings: Settings
    agent: Any
    folder: Path
    resumed: bool
    preset: str | None = None
    """The name of the preset whose options a new run has."""

    @property
    def limits(self) -> dict[str, int]:
        """Episodes and steps in all, for each of the two that has a limit."""
        values = {name: getattr(self.settings.run, name) for name in LIMITS}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def reached(self) -> bool:
        """Whether the return is reached at which the run ends."""
        run = self.settings.run
        return bool(self.agent.reached(run.stop_at_return, run.eval_every is not None))

    @property
    def finished(self) -> bool:
        """Whether a limit or the return is reached, and no evaluation is missing."""
        if self.agent.evaluation_missing:
            return False
        return self.reached or any(self._done[name] >= n for name, n in self.limits.items())

    @property
    def _done(self) -> dict[str, int]:
        """Episodes and steps that the agent has learned from."""
        return {"episodes": self.agent.history.episodes, "steps": self.agent.steps}

    @property
    def new_changes(self) -> list[Change]:
        """The options that change where the run is continued, and are not saved yet."""
        return [change for change in self.agent.changes if change.step == self.agent.steps]

    @property
    def resume_command(self) -> str:
        """The command that continues this run; one that is finished is made twice as long or more.

        Twice as long as it is, where it was asked for less than it has.
        """
        run = self.settings.run
        words = ["tsallax", "train", *([str(run.env)] if names_module(run.env) else [])]
        words += ["--resume", "--out", str(self.folder)]
        if self.reached:
            words += ["--set", "stop_at_return=null"]
        if self.finished:
            for name, limit in self.limits.items():
                words += [f"--{name}", str(2 * max(limit, self._done[name]))]
            for change in self.new_changes:
                words += ["--set", f"{change.option}={yaml_text.scalar(change.after)}"]
        return shlex.join(words)

    @property
    def evaluate_command(self) -> str:
        """The command that evaluates the agent."""
        env = self.settings.run.env
        words = ["tsallax", "evaluate", str(self.folder)]
        return shlex.join([*words, "--env", str(env)] if names_module(env) else words)


def train(training: TrainingRun) -> None:
    """Train up to the limits; on Ctrl-C save, then raise KeyboardInterrupt."""
    _make_folder(training.folder)
    problem = "another process trains in this folder: let it finish, or stop it"
    with locked(training.folder, problem, training.folder):
        _train(training)


def _train(training: TrainingRun) -> None:
    run, agent, folder = training.settings.run, training.agent, training.folder
    for file in (AGENT_FILE, BEST_FILE):
        remove_leftovers(folder / file)
    if not training.finished:
        if training.new_changes:  # before the settings: a file of the agent has the last word
            agent.save(folder / AGENT_FILE)
        _write_config(folder, training.settings)
        write_changes(folder / CHANGES, agent.changes)
    options = to_flat(training.settings)
    with closing(Logs(folder, agent.history, run.tensorboard, run.wandb, options)) as logs:
        try:
            if not training.finished:
                agent.learn(
                    **training.limits,
                    eval_every=run.eval_every,
                    eval_episodes=run.eval_episodes,
                    best_to=None if run.eval_every is None else folder / BEST_FILE,
                    stop_at_return=run.stop_at_return,
                    save_to=folder / AGENT_FILE,
                    save_every=run.save_every,
                    callback=lambda agent: logs.add(agent.history),
                    progress=None if sys.stderr.isatty() else True,
                )
        except BaseException:  # an interrupt comes between two callbacks
            with suppress(InvalidInput):
                logs.add(agent.history)
            raise
        logs.add(agent.history)


def checkpoint_of(path: Path) -> Path:
    """The checkpoint in the folder of a run, or the file itself."""
    if not path.is_dir():
        return path
    if not (path / AGENT_FILE).is_file():
        raise InvalidInput(f"there is no {AGENT_FILE} in it: give the --out of a run", source=path)
    return path / AGENT_FILE


def _make_folder(folder: Path) -> None:
    with _refused_if_unwritable(folder):
        folder.mkdir(parents=True, exist_ok=True)


def _write_config(folder: Path, settings: Settings) -> None:
    with (
        _refused_if_unwritable(folder),
        atomic_path(folder / CONFIG_FILE, source=f"--out {folder}") as temporary,
    ):
        temporary.write_text(to_yaml(settings), encoding="utf-8")


@contextmanager
def _refused_if_unwritable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
        raise InvalidInput(problem, source=f"--out {folder}") from None
