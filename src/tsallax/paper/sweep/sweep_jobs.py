"""The jobs of the paper's sweeps: one task with one number of actions each, or DDPG."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from tsallax import provenance
from tsallax.deep import options
from tsallax.deep.evaluation_episodes import Episodes
from tsallax.deep.fleet import Fleet
from tsallax.deep.fleet_members import Member
from tsallax.errors import InvalidInput
from tsallax.paper.fleets.fleet_curves import FleetCurves
from tsallax.paper.fleets.fleet_files import require_equal
from tsallax.paper.fleets.jobs import Job, pending_jobs
from tsallax.paper.fleets.row_files import RowFolder
from tsallax.paper.sweep.sweep_rows import (
    EVERY,
    SWEEP_ROWS,
    WINDOW,
    Key,
    SweepRow,
    compact,
    first_episode_at,
)
from tsallax.paper.sweep.sweep_specification import SweepRequest, SweepRun, learner_config, runs_of
from tsallax.paper.sweep.sweep_tasks import Variant

PROTOCOL = ("episodes", "steps", "evaluated")


@dataclass(frozen=True, kw_only=True)
class SweepJob(Job):
    """A fleet to train: runs of a sweep with one number of actions."""

    format = SWEEP_ROWS
    samples = True
    sweep: SweepRequest
    runs: tuple[SweepRun, ...]

    @property
    def actions(self) -> int | None:
        """The number of actions of its runs; None for DDPG."""
        return self.runs[0].actions

    @cached_property
    def name(self) -> str:
        text = json.dumps([dataclasses.asdict(run) for run in self.runs])
        kind = "ddpg" if self.actions is None else f"{self.actions}"
        return f"{self.sweep.task.name}-{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def title(self) -> str:
        kind = "DDPG" if self.actions is None else f"{self.actions:,} actions"
        return f"{self.sweep.task.title}, {kind}"

    @property
    def goals(self) -> Mapping[str, int]:
        return {"episodes": self.sweep.episodes, "steps": self.sweep.steps}

    @property
    def final_episodes(self) -> int:
        return self.sweep.evaluated

    @property
    def threshold(self) -> float:
        return self.sweep.task.threshold

    @property
    def description(self) -> dict[str, Any]:
        return {
            "task": self.sweep.task.name,
            "actions": self.actions,
            "runs": [dataclasses.asdict(run) for run in self.runs],
            "options": self.sweep.options,
            "asked": {name: getattr(self.sweep, name) for name in PROTOCOL},
        }

    def with_description(self, state: Mapping[str, Any]) -> Self:
        runs = tuple(
            SweepRun(Variant(**each["variant"]), each["actions"], each["seed"])
            for each in state["runs"]
        )
        asked = {name: state["asked"][name] for name in PROTOCOL}
        given = options.with_current_names(state["options"])
        sweep = dataclasses.replace(self.sweep, options=given, **asked)
        return dataclasses.replace(self, runs=runs, sweep=sweep)

    def protocol_of(self, run: SweepRun) -> dict[str, Any]:
        limits = {name: getattr(self.sweep, name) for name in PROTOCOL}
        return {**_relevant_options(self.sweep, run.variant), **limits}

    def key(self, run: SweepRun) -> Key:
        return self.sweep.task.name, run.variant.name, run.actions, run.seed

    def agent_of(self, run: SweepRun) -> str:
        return run.variant.name

    def member_of(self, run: SweepRun) -> Member:
        return Member(learner_config(self.sweep.task, run.variant, self.sweep.options), run.seed)

    def row(
        self, fleet: Fleet, i: int, played: Sequence[Episodes], curves: FleetCurves
    ) -> SweepRow:
        run, record, task = self.runs[i], fleet.records[i], self.sweep.task
        greedy, sampled = played
        assert record.finished_at is not None
        return SweepRow(
            task=task.name,
            algorithm=run.variant.name,
            **dataclasses.asdict(run.variant),
            actions=run.actions,
            seed=run.seed,
            episodes=len(record.returns),
            steps=record.finished_at,
            threshold=task.threshold,
            reached=first_episode_at(record.returns, task.threshold),
            final=float(np.mean(record.returns[-WINDOW:] or [record.running])),
            greedy=greedy.mean,
            greedy_error=greedy.standard_error,
            sampled=sampled.mean,
            sampled_error=sampled.standard_error,
            evaluated=self.final_episodes,
            every=EVERY,
            returns=compact(record.returns),
            seconds=round(fleet.seconds, 1),
            agents=len(self.runs),
            config=options.to_mapping(fleet.members[i].config),
            provenance=provenance.of_row(),
        )


def plan_sweep(
    sweep: SweepRequest, rows: RowFolder[SweepRow], *, at_once: int, **job_fields: Any
) -> list[SweepJob]:
    """The jobs of a sweep that are left, by `pending_jobs`; `job_fields` are those of `Job`.

    A folder with runs of another protocol is refused.
    """
    done = {row.key: row for row in rows.read()}
    for row in done.values():
        if row.task == sweep.task.name:
            _require_same_protocol(row, sweep, str(rows.folder))
    by_size: dict[int | None, list[SweepRun]] = {}
    for run in runs_of(sweep):
        by_size.setdefault(run.actions, []).append(run)
    jobs: list[SweepJob] = []
    for actions, runs in by_size.items():
        full_job = SweepJob(
            sweep=sweep,
            env=sweep.task.env,
            levels=None if actions is None else sweep.task.levels(actions),
            runs=tuple(runs),
            folder=str(rows.folder.absolute()),
            **job_fields,
        )
        jobs += pending_jobs(full_job, done, at_once)
    return jobs


def _require_same_protocol(row: SweepRow, sweep: SweepRequest, folder: str) -> None:
    """Refuse to mix runs of two protocols."""
    variant = Variant(row.explore, row.update, row.alpha)
    config = learner_config(sweep.task, variant, sweep.options)
    expected = _relevant_options(sweep, variant)
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


def _relevant_options(sweep: SweepRequest, variant: Variant) -> dict[str, Any]:
    """The options of a variant's learner, without epsilon where it does not use it."""
    found = options.to_mapping(learner_config(sweep.task, variant, sweep.options))
    if variant.explore != "epsilon":
        found.pop("epsilon", None)
    return found
