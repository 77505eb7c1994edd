"""What the suites train: requests, and their jobs."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from tsallax import checks, provenance
from tsallax.deep import options
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.evaluation_episodes import Episodes
from tsallax.deep.fleet import Fleet
from tsallax.deep.fleet_members import Member
from tsallax.deep.training_schedule import MAX_STEPS
from tsallax.errors import InvalidInput
from tsallax.paper.fleets.fleet_curves import DIGITS, EvaluationProtocol, FleetCurves
from tsallax.paper.fleets.fleet_files import require_equal
from tsallax.paper.fleets.jobs import Job, pending_jobs
from tsallax.paper.fleets.row_files import RowFolder
from tsallax.paper.result import tidy
from tsallax.paper.suites.suite_rows import SUITE_ROWS, Key, SuiteRow
from tsallax.paper.suites.suite_tasks import Suite, SuiteTask


@dataclass(frozen=True)
class SuiteRun:
    """One agent to train: its name, its options as plain data, and its seed."""

    agent: str
    seed: int
    config: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SuiteJob(Job):
    """A fleet to train: runs of one task and one number of levels."""

    format = SUITE_ROWS
    backend = "gymnasium"
    suite: str
    task: str
    runs: tuple[SuiteRun, ...]
    protocol: EvaluationProtocol

    @cached_property
    def name(self) -> str:
        text = json.dumps([dataclasses.asdict(run) for run in self.runs], sort_keys=True)
        parts = [self.suite, self.task, *([] if self.levels is None else [str(self.levels)])]
        return "-".join([*parts, hashlib.sha256(text.encode()).hexdigest()[:8]])

    @property
    def title(self) -> str:
        return self.task if self.levels is None else f"{self.task}, {self.levels} levels"

    @property
    def goals(self) -> Mapping[str, int]:
        return {"steps": self.protocol.steps}

    @property
    def final_episodes(self) -> int:
        return self.protocol.final_episodes

    @property
    def curve_protocol(self) -> EvaluationProtocol:
        return self.protocol

    @property
    def description(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "task": self.task,
            "levels": self.levels,
            "runs": [dataclasses.asdict(run) for run in self.runs],
            "protocol": dataclasses.asdict(self.protocol),
        }

    def with_description(self, state: Mapping[str, Any]) -> Self:
        protocol = {**state["protocol"], "milestones": tuple(state["protocol"]["milestones"])}
        return dataclasses.replace(
            self,
            suite=state["suite"],
            task=state["task"],
            levels=state["levels"],
            runs=tuple(SuiteRun(**run) for run in state["runs"]),
            protocol=EvaluationProtocol(**protocol),
        )

    def protocol_of(self, run: SuiteRun) -> dict[str, Any]:
        return {**vars(self.protocol), **run.config}

    def key(self, run: SuiteRun) -> Key:
        return self.suite, self.task, run.agent, self.levels, run.seed

    def agent_of(self, run: SuiteRun) -> str:
        return run.agent

    def member_of(self, run: SuiteRun) -> Member:
        return Member(options.from_file(DeepQConfig, run.config), run.seed)

    def row(
        self, fleet: Fleet, i: int, played: Sequence[Episodes], curves: FleetCurves
    ) -> SuiteRow:
        run, record, (found,) = self.runs[i], fleet.records[i], played
        assert record.finished_at is not None
        last = record.finished_at, tidy(found.mean, DIGITS), self.final_episodes
        return SuiteRow(
            suite=self.suite,
            task=self.task,
            agent=run.agent,
            levels=self.levels,
            seed=run.seed,
            steps=record.finished_at,
            episodes=len(record.returns),
            greedy=found.mean,
            greedy_error=found.standard_error,
            evaluated=self.final_episodes,
            evaluations=(*curves.evaluation_curve(i), last),
            training=curves.training_curve(record.returns, i),
            seconds=round(fleet.seconds, 3),
            agents=len(self.runs),
            config=dict(run.config),
            provenance=provenance.of_row(),
        )


@dataclass(frozen=True)
class SuiteRequest:
    """What to train of a suite, and how to evaluate it."""

    suite: Suite
    tasks: Sequence[str]
    agents: Mapping[str, Mapping[str, Any]]
    """The agents by name, with the options in which they differ."""
    levels: Sequence[int | None]
    seeds: int
    eval_every: int
    eval_episodes: int
    final_episodes: int
    steps: int | None = None
    """None for those of each task."""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Options of all agents, instead of the suite's."""


def default_request(suite: Suite, quick: bool = False) -> SuiteRequest:
    """All of a suite, or a miniature: small networks, few seeds, few steps."""
    full = SuiteRequest(
        suite, tuple(suite.tasks), suite.agents, suite.levels, suite.seeds, suite.eval_every,
        suite.eval_episodes, suite.final_episodes,
    )  # fmt: skip
    if not quick:
        return full
    options = {
        "net_arch": [32, 32], "buffer_size": 2_000, "learning_starts": 200, "batch_size": 32,
        "tau": None, "target_update_interval": 250,
    }  # fmt: skip
    return dataclasses.replace(
        full, seeds=2, steps=1_000, options=options, eval_every=500, eval_episodes=2,
        final_episodes=5,
    )  # fmt: skip


def protocol_of(request: SuiteRequest, task: SuiteTask) -> EvaluationProtocol:
    """The protocol of a task; evaluations on the way come before its end."""
    asked = task.steps if request.steps is None else request.steps
    steps = checks.count("steps", asked, below=MAX_STEPS)
    return EvaluationProtocol(
        steps=steps,
        eval_every=checks.count("eval_every", request.eval_every),
        eval_episodes=checks.count("eval_episodes", request.eval_episodes),
        final_episodes=checks.count("final_episodes", request.final_episodes, at_least=2),
        milestones=tuple(at for at in task.milestones if at < steps),
    )


def agent_options(
    task: SuiteTask, own: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Every option of an agent: those of the preset, the task's, its own, those given."""
    mapped = {**_preset_options(task), **task.options, **own, **given}
    config = options.from_mapping(DeepQConfig, options.without_unused(mapped))
    found = options.to_mapping(config)
    return {**found, "net_arch": [*options.hidden_layers(config, task.env)]}


def _preset_options(task: SuiteTask) -> Mapping[str, Any]:
    """The options of the environment's preset but the levels of its actions."""
    from tsallax.runs.preset_catalogue import preset_of

    found = preset_of(task.env)
    options = {} if found is None else found.options
    return {name: value for name, value in options.items() if name != "actions"}


def plan_suite(
    request: SuiteRequest, rows: RowFolder[SuiteRow], *, at_once: int, **job_fields: Any
) -> list[SuiteJob]:
    """The jobs of a suite that are left, by `pending_jobs`; `job_fields` are those of `Job`.

    A folder with runs of another protocol is refused.
    """
    folder = rows.folder
    done = {row.key: row for row in rows.read()}
    jobs: list[SuiteJob] = []
    for name in request.tasks:
        task = request.suite.tasks[name]
        protocol = protocol_of(request, task)
        for levels in request.levels:
            full_job = SuiteJob(
                suite=request.suite.name,
                task=name,
                env=task.env,
                levels=levels,
                runs=_runs(request, task),
                protocol=protocol,
                folder=str(folder.absolute()),
                **job_fields,
            )
            for run in full_job.runs:
                if full_job.key(run) in done:
                    _require_same(folder, done[full_job.key(run)], run, protocol)
            jobs += pending_jobs(full_job, done, at_once)
    return jobs


def _runs(request: SuiteRequest, task: SuiteTask) -> tuple[SuiteRun, ...]:
    seeds = range(checks.count("seeds", request.seeds))
    found = []
    for agent, own in request.agents.items():
        config = agent_options(task, own, request.options)
        if config["n_envs"] != 1:
            raise InvalidInput("--set n_envs: an agent of a fleet has one environment")
        found += [SuiteRun(agent, seed, config) for seed in seeds]
    return tuple(found)


def _require_same(folder: Path, row: SuiteRow, run: SuiteRun, protocol: EvaluationProtocol) -> None:
    """Refuse to mix runs of two protocols."""
    require_equal(folder, row.config, run.config)
    steps = whole_cycles(protocol.steps, run.config)
    expected = {"steps": steps, "evaluated": protocol.final_episodes}
    require_equal(folder, vars(row), expected)


def whole_cycles(steps: int, config: Mapping[str, Any]) -> int:
    """The steps that a run makes where `steps` are asked for: those of whole cycles."""
    cycle = config.get("train_freq", 1)
    return int(-(-steps // cycle) * cycle)
