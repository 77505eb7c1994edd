"""Train a fleet of the tables `classic` and `control`, from its checkpoint on, up to its rows."""

import time
from collections.abc import Callable

from tsallax import provenance
from tsallax.deep import options
from tsallax.deep.deep_q_config import DeepQConfig
from tsallax.deep.evaluation_episodes import Episodes
from tsallax.deep.fleet import Diverged, Fleet, Member
from tsallax.errors import InvalidInput
from tsallax.paper.fleets.fleet_device import use_device
from tsallax.paper.fleets.fleet_files import load_fleet, locked
from tsallax.paper.result import tidy
from tsallax.paper.suites.fleet_progress import (
    DIGITS,
    FleetProgress,
    read_progress,
    write_progress,
)
from tsallax.paper.suites.suite_jobs import SuiteJob
from tsallax.paper.suites.suite_rows import (
    Key,
    SuiteRow,
    append_suite_row,
    read_suite_rows,
)

RESERVE_SECONDS = 5.0
"""By which training ends before its deadline, besides the time that saving takes."""
EVALUATED_AT_ONCE = 16
"""Agents whose last evaluation is made at the same time, and whose rows are then written."""
SAVING_SHARE = 0.05
"""The largest share of the time that is spent saving on the way."""

OnSegment = Callable[[Fleet], None]


def train_suite_job(job: SuiteJob, on_segment: OnSegment = lambda fleet: None) -> bool:
    """Train a fleet and write its rows; False where the deadline came first.

    `on_segment` is called with the fleet after each segment of training. Runs that diverged have no
    rows: `DivergedRuns` is raised for them, after the rows of the others are written.
    """
    use_device(job.device)
    with locked(job.files):
        written = {row.key for row in read_suite_rows(job.folder)}
        fleet = None
        if any(job.key(run) not in written for run in job.runs):
            training = _Training(job)
            fleet = training.fleet
            try:
                if not training.train(on_segment) or not training.write_rows(written):
                    return False
            finally:
                fleet.close()
        for file in (job.files.checkpoint, job.files.state):
            file.unlink(missing_ok=True)
        if fleet is not None and fleet.diverged:
            raise DivergedRuns(job, fleet)
    return True


class DivergedRuns(InvalidInput):
    """Runs whose loss was not finite any more, after so many steps."""

    def __init__(self, job: SuiteJob, fleet: Fleet) -> None:
        names = [f"{job.runs[i].agent}, seed {job.runs[i].seed}" for i in fleet.diverged]
        steps = min(record.diverged_at or fleet.steps for record in fleet.records)
        super().__init__(
            f"no rows of {'; '.join(names)}: the loss was not finite after {steps} steps; a lower "
            "learning_rate or max_grad_norm=10 may help",
            source=job.task,
        )


class _Training:
    """A fleet in training, its curves, and how long its files and evaluations take."""

    def __init__(self, job: SuiteJob) -> None:
        self.job = job
        begin = time.monotonic()
        self.fleet, self.progress = _load(job)
        self.saving, self.evaluating, self.segment = 0.0, 0.0, 0.0
        """Seconds that the last file, evaluation and segment took."""
        self.saved_at: float | None = None
        if self.fleet.steps:
            self.saved_at = time.monotonic()
            self.saving = self.saved_at - begin

    def train(self, on_segment: OnSegment) -> bool:
        """Train the fleet to its last step; False where it was saved before, at the deadline."""
        fleet, job = self.fleet, self.job
        ended = fleet.seconds

        def after_segment(fleet: Fleet) -> bool:
            nonlocal ended
            self.segment, ended = fleet.seconds - ended, fleet.seconds
            episodes = self.progress.record(job, fleet)
            if episodes is not None:
                begin = time.monotonic()
                self.progress.evaluations.append(
                    (fleet.steps, episodes, self._evaluate_all(episodes))
                )
                self.evaluating = time.monotonic() - begin
            on_segment(fleet)
            if fleet.learning and self._save_is_due():
                self.save()
            return self._has_time(self.segment + self.evaluating + self.saving)

        if not fleet.learning:
            return True
        try:
            if self._has_time(0.0):
                fleet.learn(steps=job.protocol.steps, callback=after_segment, progress=False)
        except KeyboardInterrupt:
            if fleet.whole:
                self.save()
            raise
        except Diverged:
            if not fleet.whole:  # no agent is left
                raise DivergedRuns(job, fleet) from None
        self.save()
        return not fleet.learning

    def _evaluate_all(self, episodes: int) -> list[float | None]:
        """The mean greedy returns of the agents that have not diverged."""
        found = self.fleet.evaluate_all(episodes)
        return [None if one is None else one.mean for one in found]

    def save(self) -> None:
        """Write the curves and the fleet."""
        begin = time.monotonic()
        write_progress(self.job, self.progress)
        self.fleet.save(self.job.files.checkpoint)
        self.saved_at = time.monotonic()
        self.saving = self.saved_at - begin

    def _save_is_due(self) -> bool:
        """At the start of learning, to know how long it takes, and then at intervals."""
        if self.saved_at is None:
            return self.fleet.steps > self.fleet.config.learning_starts
        interval = max(self.job.save_seconds, self.saving / SAVING_SHARE)
        return time.monotonic() - self.saved_at > interval

    def _has_time(self, seconds: float) -> bool:
        deadline = self.job.deadline
        return deadline is None or time.time() + RESERVE_SECONDS + 1.2 * seconds < deadline

    def write_rows(self, written: set[Key]) -> bool:
        """Evaluate the agents, some at a time, and write their rows.

        False where the deadline came first.
        """
        left = [i for i, run in enumerate(self.job.runs) if self.job.key(run) not in written]
        took = 0.0
        for first in range(0, len(left), EVALUATED_AT_ONCE):
            if not self._has_time(took):
                return False
            begin, chosen = time.monotonic(), left[first : first + EVALUATED_AT_ONCE]
            episodes = self.job.protocol.final_episodes
            for i, found in zip(chosen, self.fleet.evaluate_all(episodes, members=chosen)):
                if found is not None:
                    append_suite_row(self._row(i, found), self.job.files.rows)
            took = time.monotonic() - begin
        return True

    def _row(self, i: int, found: Episodes) -> SuiteRow:
        job, run, record = self.job, self.job.runs[i], self.fleet.records[i]
        steps = self.fleet.steps if record.finished_at is None else record.finished_at
        last = steps, tidy(found.mean, DIGITS), job.protocol.final_episodes
        return SuiteRow(
            suite=job.suite,
            task=job.task,
            agent=run.agent,
            levels=job.levels,
            seed=run.seed,
            steps=steps,
            episodes=len(record.returns),
            greedy=found.mean,
            greedy_error=found.standard_error,
            evaluated=job.protocol.final_episodes,
            evaluations=(*self.progress.evaluation_curve(i), last),
            training=self.progress.training_curve(record.returns, i),
            seconds=round(self.fleet.seconds, 3),
            agents=len(job.runs),
            config=dict(run.config),
            provenance=provenance.of_row(),
        )


def _load(job: SuiteJob) -> tuple[Fleet, FleetProgress]:
    """The fleet of a job and its curves, as its files have them or new."""
    members = [
        Member(options.from_mapping(DeepQConfig, options.without_unused(run.config)), run.seed)
        for run in job.runs
    ]
    fleet = load_fleet(job.files, job.env, members, job.levels, job.workers, "gymnasium")
    return fleet, read_progress(job, fleet.steps) if fleet.steps else FleetProgress()
