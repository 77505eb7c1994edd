"""Fleets of the suites `classic` and `control` that are still to be trained.

What has a row is not trained again, and a fleet that was begun continues as it is
(`tsallax.paper.fleets.fleet_files`).
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tsallax import checks
from tsallax.deep import options
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.errors import InvalidInput
from tsallax.paper.fleets.fleet_files import (
    FleetFiles,
    begun_fleets,
    files_of_fleet,
    require_equal,
)
from tsallax.paper.fleets.row_files import SUITE_SUFFIX
from tsallax.paper.suites.suite_rows import Key, SuiteRow, read_suite_rows
from tsallax.paper.suites.suite_tasks import OURS, Suite, SuiteTask, suite_agents

SAVE_SECONDS = 300.0
"""From one checkpoint of a fleet to the next, at least."""
CURVE_POINTS = 100
"""Of a curve of training returns."""
MAX_STEPS = 2**30


@dataclass(frozen=True)
class SuiteRun:
    """One agent to train: its name, its options as plain data, and its seed."""

    agent: str
    seed: int
    config: Mapping[str, Any]


@dataclass(frozen=True)
class Protocol:
    """How long to train, and when and for how many episodes to evaluate."""

    steps: int
    eval_every: int
    eval_episodes: int
    final_episodes: int
    milestones: tuple[int, ...]


@dataclass(frozen=True)
class SuiteJob:
    """A fleet to train: runs of one task and one number of levels."""

    suite: str
    task: str
    env: str
    levels: int | None
    runs: tuple[SuiteRun, ...]
    protocol: Protocol
    folder: str
    device: str | None = None
    workers: int | None = None
    """Processes of environments; None: by the number of cores."""
    save_seconds: float = SAVE_SECONDS
    deadline: float | None = None
    """The time, in seconds since the epoch, by which training is to have ended."""

    @cached_property
    def name(self) -> str:
        """A name that distinguishes it from other jobs, the same for the same runs."""
        text = json.dumps([dataclasses.asdict(run) for run in self.runs], sort_keys=True)
        parts = [self.suite, self.task, *([] if self.levels is None else [str(self.levels)])]
        return "-".join([*parts, hashlib.sha256(text.encode()).hexdigest()[:8]])

    @cached_property
    def files(self) -> FleetFiles:
        """Its files."""
        return files_of_fleet(self.folder, self.name, SUITE_SUFFIX)

    @property
    def description(self) -> dict[str, Any]:
        """Its runs, options and protocol, as the file of its state holds them."""
        return {
            "suite": self.suite,
            "task": self.task,
            "levels": self.levels,
            "runs": [dataclasses.asdict(run) for run in self.runs],
            "protocol": dataclasses.asdict(self.protocol),
        }

    def key(self, run: SuiteRun) -> Key:
        """The key of the run's row."""
        return self.suite, self.task, run.agent, self.levels, run.seed


@dataclass(frozen=True)
class Request:
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


def default_request(suite: Suite, quick: bool = False) -> Request:
    """All of a suite, or a miniature: small networks, few seeds, few steps."""
    agents = {OURS: {}} if suite.levels == (None,) else suite_agents()
    full = Request(
        suite, tuple(suite.tasks), agents, suite.levels, suite.seeds, suite.eval_every,
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


def protocol_of(request: Request, task: SuiteTask) -> Protocol:
    """The protocol of a task; evaluations on the way come before its end."""
    asked = task.steps if request.steps is None else request.steps
    steps = checks.count("steps", asked, below=MAX_STEPS)
    return Protocol(
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
    request: Request, folder: Path, *, at_once: int, device: str | None = None,
    workers: int | None = None, save_seconds: float = SAVE_SECONDS, deadline: float | None = None,
) -> list[SuiteJob]:  # fmt: skip
    """The fleets still to train: those begun before, as they were, then the runs without a fleet.

    A new fleet has at most `at_once` agents. A folder with runs of another protocol is refused.
    """
    done = {row.key: row for row in read_suite_rows(folder)}
    jobs: list[SuiteJob] = []
    for name in request.tasks:
        task = request.suite.tasks[name]
        protocol = protocol_of(request, task)
        for levels in request.levels:
            whole = SuiteJob(
                request.suite.name, name, task.env, levels, _runs(request, task), protocol,
                str(folder.absolute()), device, workers, save_seconds, deadline,
            )  # fmt: skip
            for run in whole.runs:
                if whole.key(run) in done:
                    _require_same(folder, done[whole.key(run)], run, protocol)
            pending = [run for run in whole.runs if whole.key(run) not in done]
            begun, left = _begun(whole, pending)
            jobs += begun
            for i in range(0, len(left), at_once):
                jobs.append(dataclasses.replace(whole, runs=tuple(left[i : i + at_once])))
    return jobs


def _runs(request: Request, task: SuiteTask) -> tuple[SuiteRun, ...]:
    seeds = range(checks.count("seeds", request.seeds))
    found = []
    for agent, own in request.agents.items():
        config = agent_options(task, own, request.options)
        if config["n_envs"] != 1:
            raise InvalidInput("--set n_envs: an agent of a fleet has one environment")
        found += [SuiteRun(agent, seed, config) for seed in seeds]
    return tuple(found)


def _begun(whole: SuiteJob, pending: Sequence[SuiteRun]) -> tuple[list[SuiteJob], list[SuiteRun]]:
    """The fleets of a task that have a checkpoint and runs without a row, and the other runs."""
    jobs, left = [], list(pending)
    for path, begun in begun_fleets(whole.folder, f"{whole.suite}-{whole.task}", _described):
        asked = {(run.agent, run.seed): run for run in left}
        again = [run for run in begun["runs"] if (run.agent, run.seed) in asked]
        place = {name: getattr(whole, name) for name in ("suite", "task", "levels")}
        if not again or any(begun[name] != value for name, value in place.items()):
            continue
        require_equal(path, begun["protocol"], vars(whole.protocol))
        for run in again:
            require_equal(path, run.config, asked.pop((run.agent, run.seed)).config)
        jobs.append(dataclasses.replace(whole, runs=begun["runs"]))
        left = list(asked.values())
    return jobs, left


def _described(state: dict[str, Any]) -> dict[str, Any]:
    """The description of a job, with its runs and milestones as they were."""
    runs = tuple(SuiteRun(**run) for run in state["runs"])
    protocol = {**state["protocol"], "milestones": tuple(state["protocol"]["milestones"])}
    place = {name: state[name] for name in ("suite", "task", "levels")}
    return {**place, "runs": runs, "protocol": protocol}


def _require_same(folder: Path, row: SuiteRow, run: SuiteRun, protocol: Protocol) -> None:
    """Refuse to mix runs of two protocols."""
    require_equal(folder, row.config, run.config)
    steps = whole_cycles(protocol.steps, run.config)
    expected = {"steps": steps, "evaluated": protocol.final_episodes}
    require_equal(folder, vars(row), expected)


def whole_cycles(steps: int, config: Mapping[str, Any]) -> int:
    """The steps that a run makes where so many are asked for: those of whole cycles."""
    cycle = config.get("train_freq", 1)
    return int(-(-steps // cycle) * cycle)
