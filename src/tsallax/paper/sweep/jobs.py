"""Train the paper's algorithms: many runs, as fleets, that can be stopped and go on anywhere.

A folder holds all there is to know: `rows/*.jsonl` the finished runs, `fleets/*.json` what each
fleet consists of and how far it is, `fleets/*.npz` its last checkpoint. Whatever is not a row yet
is to be done, so a sweep goes on after a crash, with other options or on another machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tsallax import provenance
from tsallax.deep import options as options_of
from tsallax.deep.ddpg_config import DDPGConfig
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.fleet import Diverged, Fleet, Member
from tsallax.errors import InvalidInput
from tsallax.files.atomic import whole
from tsallax.paper.sweep import rows
from tsallax.paper.sweep.rows import Key, Row
from tsallax.paper.sweep.tasks import ALPHAS, DDPG, TASKS, VARIANTS, Task, Variant

SAVE_SECONDS = 120.0
"""From one checkpoint of a fleet to the next."""
SAVING_SECONDS = 60.0
"""How long an interrupted sweep waits for fleets in other processes to be saved."""
TOLD_SECONDS = 1.0
"""From one word about a fleet's progress to the next."""


@dataclass(frozen=True)
class Sweep:
    """What to train: every variant, with every number of actions and every seed."""

    task: Task
    actions: tuple[int, ...]
    variants: tuple[Variant, ...]
    seeds: int
    episodes: int
    steps: int
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the learners that differ from the defaults, for all variants alike."""
    evaluated: int = 100
    """Evaluation episodes of each kind."""


@dataclass(frozen=True)
class Run:
    """One agent to train."""

    variant: Variant
    actions: int | None
    seed: int


@dataclass(frozen=True)
class Job:
    """A fleet to train: runs of one task and one number of actions."""

    task: str
    actions: int | None
    runs: tuple[Run, ...]
    episodes: int
    steps: int
    options: dict[str, Any]
    evaluated: int
    folder: str
    device: str | None = None
    save_seconds: float = SAVE_SECONDS

    @cached_property
    def name(self) -> str:
        """A name that tells it from other jobs, the same for the same runs."""
        text = json.dumps([dataclasses.asdict(run) for run in self.runs])
        kind = "ddpg" if self.actions is None else f"{self.actions}"
        return f"{self.task}-{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def rows(self) -> Path:
        """The file of its rows."""
        return Path(self.folder) / "rows" / f"{self.name}.jsonl"

    @property
    def checkpoint(self) -> Path:
        """The file of its fleet."""
        return Path(self.folder) / "fleets" / f"{self.name}.npz"

    @property
    def status(self) -> Path:
        """The file that says how far it is."""
        return Path(self.folder) / "fleets" / f"{self.name}.json"

    def key(self, run: Run) -> Key:
        """What the run's row is known by."""
        return self.task, run.variant.name, run.actions, run.seed


def runs_of(sweep: Sweep) -> list[Run]:
    """Every run of a sweep.

    Epsilon-greedy with the plain update has no alpha: where the paper lists it once for each, the
    seeds differ, by 1000.
    """
    found = []
    for variant in sweep.variants:
        shift = 0
        if (variant.explore, variant.update) == ("epsilon", "hard"):
            shift = 1000 * _place(variant.alpha)
        sizes: tuple[int | None, ...] = sweep.actions if variant.explore else (None,)
        found += [Run(variant, n, seed + shift) for n in sizes for seed in range(sweep.seeds)]
    return list(dict.fromkeys(found))


def _place(alpha: float | None) -> int:
    """The number of an alpha: among the paper's, or one after them that depends on it alone."""
    if alpha in ALPHAS:
        return ALPHAS.index(alpha)
    return len(ALPHAS) + zlib.crc32(f"{alpha:g}".encode()) % 1_000_000


def settings(task: Task, variant: Variant, options: dict[str, Any]) -> DeepQConfig | DDPGConfig:
    """The options of a variant's learner, those of the network spelled out."""
    known = {
        f.name for f in dataclasses.fields(DDPGConfig if variant.explore is None else DeepQConfig)
    }
    mine = {name: value for name, value in {**task.options, **options}.items() if name in known}
    if variant.explore is None:
        return DDPGConfig(**mine)
    choice = {"explore": variant.explore, "update": variant.update, "alpha": variant.alpha}
    made = options_of.from_mapping(DeepQConfig, {**mine, **choice})
    return dataclasses.replace(made, net_arch=options_of.hidden_layers(made, task.env))


def plan(
    sweep: Sweep, folder: Path, *, at_once: int, device: str | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> list[Job]:  # fmt: skip
    """The fleets still to train: those begun before as they were, then what is left of the rest."""
    for n in sweep.actions:
        sweep.task.levels(n)
    done = {row.key: row for row in rows.read(folder)} if folder.is_dir() else {}
    wanted = runs_of(sweep)
    shared: dict[str, Any] = {
        "task": sweep.task.name, "episodes": sweep.episodes, "steps": sweep.steps,
        "options": sweep.options, "evaluated": sweep.evaluated,
        "folder": str(folder.absolute()),
        "device": device, "save_seconds": save_seconds,
    }  # fmt: skip
    for row in done.values():
        if row.task == sweep.task.name:
            _require_same(row, sweep, Variant(row.explore, row.update, row.alpha), folder)
    pending = [
        run
        for run in wanted
        if (sweep.task.name, run.variant.name, run.actions, run.seed) not in done
    ]
    jobs = []
    for runs, about in _begun(folder, sweep.task.name):
        job = Job(actions=runs[0].actions, runs=runs, **shared)
        if all(job.key(run) in done for run in runs):  # what a crash has left
            job.checkpoint.unlink(missing_ok=True)
        if not set(runs) & set(pending):
            continue
        _require_same_fleet(about, sweep, runs[0], folder)
        jobs.append(job)
        pending = [run for run in pending if run not in runs]
    for size in dict.fromkeys(run.actions for run in pending):
        same = [run for run in pending if run.actions == size]
        for i in range(0, len(same), at_once):
            jobs.append(Job(actions=size, runs=tuple(same[i : i + at_once]), **shared))
    return jobs


def _begun(folder: Path, task: str) -> list[tuple[tuple[Run, ...], dict[str, Any]]]:
    """The runs of every fleet that has a checkpoint, and what was written down of it."""
    found = []
    for checkpoint in sorted((folder / "fleets").glob(f"{task}-*.npz")):
        path = checkpoint.with_suffix(".json")
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            runs = tuple(
                Run(Variant(**each["variant"]), each["actions"], each["seed"])
                for each in about["runs"]
            )
            found.append((runs, {**about["asked"], "options": about["options"]}))
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError):
            raise InvalidInput(
                f"{path}: damaged: remove it and {checkpoint.name} to train its runs again"
            ) from None
    return found


def _require_same(row: Row, sweep: Sweep, variant: Variant, folder: Path) -> None:
    """Refuse to mix runs of two protocols."""
    expected = _used(variant, settings(sweep.task, variant, sweep.options))
    _require_equal(folder, row.config, expected)
    enough = row.episodes == sweep.episodes or row.steps >= sweep.steps
    most = sweep.steps + expected["train_freq"] - 1
    if not enough or row.episodes > sweep.episodes or row.steps > most:
        raise InvalidInput(
            f"{folder}: holds runs of {row.episodes} episodes in {row.steps} steps, not of "
            f"{sweep.episodes} episodes in at most {sweep.steps} steps: use another --out"
        )
    _require_equal(folder, {"evaluated": row.evaluated}, {"evaluated": sweep.evaluated})


def _require_same_fleet(about: dict[str, Any], sweep: Sweep, run: Run, folder: Path) -> None:
    """Refuse to go on with a fleet by another protocol."""
    had, expected = (
        _used(run.variant, settings(sweep.task, run.variant, options))
        for options in (about["options"], sweep.options)
    )
    _require_equal(folder, {**had, **about}, {**expected, **_asked(sweep)})


def _used(variant: Variant, config: DeepQConfig | DDPGConfig) -> dict[str, Any]:
    """The options of a learner, without the epsilon of those that have no use for it."""
    options = options_of.to_mapping(config)
    if variant.explore != "epsilon":
        options.pop("epsilon", None)
    return options


def _require_equal(folder: Path, had: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        if had.get(name) != value:
            raise InvalidInput(
                f"{folder}: holds runs with {name} {had.get(name)}, not {value}: use another --out"
            )


def _asked(what: Sweep | Job) -> dict[str, int]:
    return {name: getattr(what, name) for name in ("episodes", "steps", "evaluated")}


def train(job: Job, told: Callable[[], None] | None = None) -> None:
    """Train a fleet from where it is, with a row for every run that gets finished."""
    use_device(job.device)
    for file in (job.rows, job.status):
        file.parent.mkdir(parents=True, exist_ok=True)
    with _alone(job):
        written = {row.key for row in rows.read(job.folder)}
        if any(job.key(run) not in written for run in job.runs):
            _train(job, written, told)
        job.checkpoint.unlink(missing_ok=True)


@contextmanager
def _alone(job: Job) -> Iterator[None]:
    """Refuse to train a fleet that another process is training."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with job.rows.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(
                f"{job.folder}: another process trains {job.name}: let it finish, or stop it"
            ) from None
        yield


def _fleet(job: Job) -> Fleet:
    """The fleet of a job, as its checkpoint has it or new."""
    task = TASKS[job.task]
    members = tuple(Member(settings(task, r.variant, job.options), r.seed) for r in job.runs)
    levels = None if job.actions is None else task.levels(job.actions)
    for left in job.checkpoint.parent.glob(f".{job.checkpoint.name}.*.partial"):
        left.unlink(missing_ok=True)  # of a process that was killed
    if not job.checkpoint.is_file():
        return Fleet(task.env, members, actions=levels)
    try:
        fleet = Fleet.load(job.checkpoint)
    except InvalidInput as error:
        raise InvalidInput(f"{error}: remove it to train its runs from the start") from None
    if (fleet.members, fleet.actions) != (members, levels):
        raise InvalidInput(f"{job.checkpoint}: a fleet with other options: remove it")
    return fleet


def _train(job: Job, written: set[Key], told: Callable[[], None] | None) -> None:
    fleet = _fleet(job)
    saved = spoken = time.monotonic()
    tell(job, fleet, written)

    def after(fleet: Fleet) -> None:
        nonlocal saved, spoken
        write_rows(job, fleet, written)
        now = time.monotonic()
        if now - saved > job.save_seconds and fleet.learning:
            fleet.save(job.checkpoint)
            saved = time.monotonic()
        if now - spoken > TOLD_SECONDS:
            tell(job, fleet, written)
            spoken = now
            if told is not None:
                told()

    write_rows(job, fleet, written)
    try:
        fleet.learn(episodes=job.episodes, steps=job.steps, callback=after, progress=False)
    except KeyboardInterrupt:
        if fleet.whole:
            fleet.save(job.checkpoint)
            tell(job, fleet, written)
        raise
    except Diverged as error:
        run = job.runs[error.member]
        raise InvalidInput(f"{run.variant.name}, seed {run.seed}: {error}") from None
    tell(job, fleet, written)


def write_rows(job: Job, fleet: Fleet, written: set[Key]) -> None:
    """Add a row for every run that is finished and has none, from whatever process."""
    finished = [
        run for run, record in zip(job.runs, fleet.records) if record.finished_at is not None
    ]
    if any(job.key(run) not in written for run in finished):
        written |= {row.key for row in rows.read(job.folder)}
    for i, (run, record) in enumerate(zip(job.runs, fleet.records, strict=True)):
        if record.finished_at is not None and job.key(run) not in written:
            rows.append(_row(job, fleet, i), job.rows)
            written.add(job.key(run))


def _row(job: Job, fleet: Fleet, i: int) -> Row:
    run, record, task = job.runs[i], fleet.records[i], TASKS[job.task]
    greedy, sampled = (fleet.evaluate(i, job.evaluated, deterministic=d) for d in (True, False))
    assert record.finished_at is not None
    return Row(
        task=task.name,
        algorithm=run.variant.name,
        explore=run.variant.explore,
        update=run.variant.update,
        alpha=run.variant.alpha,
        actions=run.actions,
        seed=run.seed,
        episodes=len(record.returns),
        steps=record.finished_at,
        threshold=task.threshold,
        reached=rows.reached(record.returns, task.threshold),
        final=float(np.mean(record.returns[-rows.WINDOW :] or [record.running])),
        greedy=greedy.mean,
        greedy_error=greedy.standard_error,
        sampled=sampled.mean,
        sampled_error=sampled.standard_error,
        evaluated=job.evaluated,
        every=rows.EVERY,
        returns=rows.compact(record.returns),
        seconds=round(fleet.seconds, 1),
        agents=len(job.runs),
        config=options_of.to_mapping(fleet.members[i].config),
        provenance={**provenance.of_training(), "date": datetime.now(UTC).date().isoformat()},
    )


def tell(job: Job, fleet: Fleet, written: set[Key]) -> None:
    """Write down what the fleet consists of and how far it is."""
    recent = [float(np.mean(r.returns[-rows.WINDOW :])) for r in fleet.records if r.returns]
    threshold = TASKS[job.task].threshold
    about = {
        "task": job.task,
        "actions": job.actions,
        "runs": [dataclasses.asdict(run) for run in job.runs],
        "options": job.options,
        "asked": _asked(job),
        "share": fleet.share(job.episodes, job.steps),
        "steps": fleet.steps,
        "seconds": fleet.seconds,
        "finished": sum(job.key(run) in written for run in job.runs),
        "there": sum(x >= threshold for x in recent),
        "best": max(recent) if recent else None,
        "process": os.getpid(),
    }
    with whole(job.status) as draft:
        draft.write_text(json.dumps(about), encoding="utf-8")


def use_device(name: str | None) -> None:
    """Compute on the CPU or the GPU; None leaves it to JAX."""
    if name is None:
        return
    require_device(name)
    import jax

    if name == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if jax.default_backend() != name:
        hint = "install jax[cuda13] on a machine with one" if name == "gpu" else "JAX uses another"
        raise InvalidInput(f"--device {name}: JAX finds no {name.upper()} here: {hint}")


def require_device(name: str | None) -> None:
    """Refuse what is no device anywhere."""
    if name not in (None, "cpu", "gpu"):
        raise InvalidInput(f"unknown device {name!r}: choose cpu or gpu")


FEW = {"Sparse+SparseBellman-0.1", "Soft+SoftBellman-0.1", "EpsGrdy+Bellman-0.1", "DDPG"}


def sweep_of(task: Task, quick: bool = False) -> Sweep:
    """The paper's protocol, or a miniature: small networks, few variants, few episodes."""
    every = (*VARIANTS, DDPG)
    if not quick:
        return Sweep(task, task.actions, every, 3, task.episodes, task.steps)
    few = tuple(variant for variant in every if variant.name in FEW)
    return Sweep(task, task.actions[:1], few, 2, 200, 10_000, {"net_arch": [64, 64]}, evaluated=20)


def checked(sweep: Sweep, changes: dict[str, Any]) -> Sweep:
    """The sweep with other numbers, refused here where it could not be trained."""
    made = dataclasses.replace(sweep, **changes)
    for name in ("seeds", "episodes", "steps"):
        if getattr(made, name) < 1:
            raise InvalidInput(f"{name} must be at least 1, got {getattr(made, name)}")
    if made.steps < made.task.length:
        raise InvalidInput(
            f"steps must be at least {made.task.length}, the longest episode, got {made.steps}"
        )
    for n in made.actions:
        made.task.levels(n)
    kinds = {DDPGConfig if v.explore is None else DeepQConfig for v in made.variants}
    known = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    for option in made.options:
        if option not in known or option in ("explore", "update", "alpha"):
            raise InvalidInput(f"--set {option}: not an option that all variants share")
    for variant in made.variants:
        if settings(made.task, variant, made.options).n_envs != 1:
            raise InvalidInput("--set n_envs: an agent of a fleet has one environment")
    return made
