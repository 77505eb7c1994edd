"""Fleets to train: what is left of a sweep, cut into jobs (`tsallax.paper.fleets.fleet_files`)."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tsallax.deep import options
from tsallax.deep.ddpg_config import DDPGConfig
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.errors import InvalidInput
from tsallax.paper.fleets.fleet_files import (
    FleetFiles,
    begun_fleets,
    files_of_fleet,
    require_equal,
)
from tsallax.paper.sweep.rows import Key, Row, RowFolder
from tsallax.paper.sweep.specification import Run, Sweep, learner_config, runs_of
from tsallax.paper.sweep.tasks import Variant

SAVE_SECONDS = 120.0
"""From one checkpoint of a fleet to the next."""


@dataclass(frozen=True)
class Job:
    """A fleet to train: runs of a sweep with one number of actions."""

    sweep: Sweep
    runs: tuple[Run, ...]
    folder: str
    device: str | None = None
    save_seconds: float = SAVE_SECONDS

    @property
    def actions(self) -> int | None:
        """The number of actions of its runs; None for DDPG."""
        return self.runs[0].actions

    @cached_property
    def name(self) -> str:
        """A name that distinguishes it from other jobs, the same for the same runs."""
        text = json.dumps([dataclasses.asdict(run) for run in self.runs])
        kind = "ddpg" if self.actions is None else f"{self.actions}"
        return f"{self.sweep.task.name}-{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @cached_property
    def files(self) -> FleetFiles:
        """Its files."""
        return files_of_fleet(self.folder, self.name)

    @property
    def description(self) -> dict[str, Any]:
        """Its runs, options and protocol, as the file of its state holds them."""
        return {
            "task": self.sweep.task.name,
            "actions": self.actions,
            "runs": [dataclasses.asdict(run) for run in self.runs],
            "options": self.sweep.options,
            "asked": _protocol(self.sweep),
        }

    def key(self, run: Run) -> Key:
        """The key of the run's row."""
        return self.sweep.task.name, run.variant.name, run.actions, run.seed


def plan_jobs(
    sweep: Sweep, rows: RowFolder, *, at_once: int, device: str | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> list[Job]:  # fmt: skip
    """The fleets still to train: those begun before as they were, then the runs without a fleet.

    A new fleet has at most `at_once` agents. A folder with runs of another protocol is refused.
    """
    folder, name = rows.folder, sweep.task.name
    done = {row.key: row for row in rows.read()}

    def job_of(runs: Sequence[Run]) -> Job:
        return Job(sweep, tuple(runs), str(folder.absolute()), device, save_seconds)

    for row in done.values():
        if row.task == name:
            _require_same_protocol(row, sweep, folder)
    known = {key[1:] for key in done if key[0] == name}
    pending = [r for r in runs_of(sweep) if (r.variant.name, r.actions, r.seed) not in known]
    jobs = []
    for _, (runs, protocol) in begun_fleets(folder, name, _runs_and_protocol):
        job = job_of(runs)
        if all(job.key(run) in done for run in runs):  # left by a crash
            job.files.checkpoint.unlink(missing_ok=True)
        if not set(runs) & set(pending):
            continue
        _require_same_fleet(protocol, sweep, runs[0], folder)
        jobs.append(job)
        pending = [run for run in pending if run not in runs]
    for size in dict.fromkeys(run.actions for run in pending):
        same = [run for run in pending if run.actions == size]
        jobs += [job_of(same[i : i + at_once]) for i in range(0, len(same), at_once)]
    return jobs


def _runs_and_protocol(state: dict[str, Any]) -> tuple[tuple[Run, ...], dict[str, Any]]:
    runs = tuple(
        Run(Variant(**each["variant"]), each["actions"], each["seed"]) for each in state["runs"]
    )
    return runs, {**state["asked"], "options": options.with_current_names(state["options"])}


def _require_same_protocol(row: Row, sweep: Sweep, folder: Path) -> None:
    """Refuse to mix runs of two protocols."""
    variant = Variant(row.explore, row.update, row.alpha)
    config = learner_config(sweep.task, variant, sweep.options)
    expected = _relevant_options(variant, config)
    defaults = options.to_mapping(type(config)())  # of options that are newer than the row
    require_equal(folder, {**defaults, **row.config}, expected)
    ended = row.episodes == sweep.episodes or row.steps >= sweep.steps
    most = sweep.steps + expected["train_freq"] - 1
    if not ended or row.episodes > sweep.episodes or row.steps > most:
        raise InvalidInput(
            f"holds runs of {row.episodes} episodes in {row.steps} steps, not of "
            f"{sweep.episodes} episodes in at most {sweep.steps} steps: use another --out",
            source=folder,
        )
    require_equal(folder, {"evaluated": row.evaluated}, {"evaluated": sweep.evaluated})


def _require_same_fleet(protocol: dict[str, Any], sweep: Sweep, run: Run, folder: Path) -> None:
    """Refuse to resume a fleet by another protocol."""
    found, expected = (
        _relevant_options(run.variant, learner_config(sweep.task, run.variant, given))
        for given in (protocol["options"], sweep.options)
    )
    require_equal(folder, {**found, **protocol}, {**expected, **_protocol(sweep)})


def _relevant_options(variant: Variant, config: DeepQConfig | DDPGConfig) -> dict[str, Any]:
    """The options of a learner, without epsilon where the variant does not use it."""
    found = options.to_mapping(config)
    if variant.explore != "epsilon":
        found.pop("epsilon", None)
    return found


def _protocol(sweep: Sweep) -> dict[str, int]:
    return {name: getattr(sweep, name) for name in ("episodes", "steps", "evaluated")}
