"""Train one job: its fleet, from its checkpoint on, with a row for every run that is finished."""

import sys
import time
from collections.abc import Callable
from typing import Any

from tsallax.deep.fleet import Diverged, Fleet
from tsallax.errors import InvalidInput
from tsallax.paper.fleets.fleet_curves import FleetCurves, curves_up_to
from tsallax.paper.fleets.fleet_device import use_device
from tsallax.paper.fleets.fleet_files import load_fleet, locked_fleet, read_state
from tsallax.paper.fleets.job_status import Status, status_of, write_status
from tsallax.paper.fleets.jobs import Job
from tsallax.paper.fleets.row_files import RowFolder

OnStatus = Callable[[Status], None]
STATUS_SECONDS = 1.0
"""The time from one status of a fleet to the next."""
RESERVE_SECONDS = 5.0
"""The time by which training ends before its deadline, besides that which saving takes."""
EVALUATED_AT_ONCE = 16
"""Agents whose last evaluation is made at the same time, and whose rows are then written."""
SAVING_SHARE = 0.05
"""The largest share of the time that is spent saving on the way."""


class DivergedRuns(InvalidInput):
    """Runs whose loss is not finite any more, with the number of steps that they made."""

    def __init__(self, job: Job, fleet: Fleet) -> None:
        runs = [job.runs[i] for i in fleet.diverged]
        names = [f"{job.agent_of(run)}, seed {run.seed}" for run in runs]
        steps = min(record.diverged_at or fleet.steps for record in fleet.records)
        super().__init__(
            f"no rows of {'; '.join(names)}: the loss was not finite after {steps} steps; a lower "
            "learning_rate or max_grad_norm=10 may help",
            source=job.title,
        )


def train_job(
    job: Job, rows: RowFolder[Any] | None = None, on_status: OnStatus = lambda status: None
) -> bool:
    """Train a fleet and write its rows; False where the deadline came first.

    `rows` are those of its folder; `on_status` is called with the status about once a second. Runs
    that diverged have no rows: `DivergedRuns` is raised for them, after the rows of the others are
    written.
    """
    if job.deadline is not None and time.time() >= job.deadline:
        return False
    use_device(job.device)
    rows = RowFolder(job.folder, job.format) if rows is None else rows
    with locked_fleet(job.files):
        written = {row.key for row in rows.read()}
        fleet = None
        if any(job.key(run) not in written for run in job.runs):
            training = _Training(job, rows, written, on_status)
            fleet = training.fleet
            try:
                if not training.train() or not training.write_rows():
                    return False
            finally:
                fleet.close()
            training.report()
        job.files.checkpoint.unlink(missing_ok=True)
        if fleet is not None and fleet.diverged:
            raise DivergedRuns(job, fleet)
    return True


def train_in_process(job: Job, check: Callable[[], None]) -> None:
    """Train a job in a process of its own; `check` is called about once a second.

    Runs that diverge are named on stderr, and do not end the jobs of other processes.
    """
    try:
        train_job(job, on_status=lambda status: check())
    except DivergedRuns as error:
        sys.stderr.write(f"{error}\n")


class _Training:
    """A fleet in training, its curves, and how long its files and evaluations take."""

    def __init__(
        self, job: Job, rows: RowFolder[Any], written: set[Any], on_status: OnStatus
    ) -> None:
        self.job, self.rows, self.written, self.on_status = job, rows, written, on_status
        begin = time.monotonic()
        members = [job.member_of(run) for run in job.runs]
        self.fleet = load_fleet(job.files, job.env, members, job.levels, job.workers, job.backend)
        self.curves = FleetCurves()
        self.saving, self.evaluating, self.segment = 0.0, 0.0, 0.0
        """Seconds that the last file, evaluation and segment took."""
        self.saved_at: float | None = None
        self.reported_at = time.monotonic()
        if self.fleet.steps:
            self.saved_at = time.monotonic()
            self.saving = self.saved_at - begin
            if job.curve_protocol is not None:
                self.curves = read_state(job.files.state, self._curves_of)
        self._write_status()

    def _curves_of(self, state: dict[str, Any]) -> FleetCurves:
        return curves_up_to(self.fleet.steps, len(self.job.runs), state)

    def train(self) -> bool:
        """Train the fleet to its end; False where it was saved before, at the deadline."""
        fleet = self.fleet
        ended, goals = fleet.seconds, dict[str, Any](self.job.goals)

        def after_segment(fleet: Fleet) -> bool:
            nonlocal ended
            self.segment, ended = fleet.seconds - ended, fleet.seconds
            self._evaluate_on_the_way()
            if fleet.learning:
                self.write_rows()
                if self._save_is_due():
                    self.save()
            if time.monotonic() - self.reported_at > STATUS_SECONDS:
                self.report()
            return self._has_time(self.segment + self.evaluating + self.saving)

        if not fleet.learning:
            return True
        try:
            if self._has_time(0.0):
                fleet.learn(**goals, callback=after_segment, progress=False)
        except KeyboardInterrupt:
            if fleet.consistent:
                self.save()
            raise
        except Diverged:
            if not fleet.consistent:  # no agent is left
                self.job.files.checkpoint.unlink(missing_ok=True)
                raise DivergedRuns(self.job, fleet) from None
        self.save()
        return not fleet.learning

    def _evaluate_on_the_way(self) -> None:
        """Record the curves, with an evaluation of all agents where one is due."""
        protocol = self.job.curve_protocol
        episodes = None if protocol is None else self.curves.record(protocol, self.fleet)
        if episodes is not None:
            begin = time.monotonic()
            found = self.fleet.evaluate_all(episodes)
            means = [None if one is None else one.mean for one in found]
            self.curves.evaluations.append((self.fleet.steps, episodes, means))
            self.evaluating = time.monotonic() - begin

    def save(self) -> None:
        """Write the state and the fleet."""
        begin = time.monotonic()
        self._write_status()
        self.fleet.save(self.job.files.checkpoint)
        self.saved_at = time.monotonic()
        self.saving = self.saved_at - begin

    def _save_is_due(self) -> bool:
        """Whether to save: when learning starts, to know how long it takes, and at intervals."""
        if self.saved_at is None:
            return self.fleet.steps > self.fleet.config.learning_starts
        interval = max(self.job.save_seconds, self.saving / SAVING_SHARE)
        return time.monotonic() - self.saved_at > interval

    def _has_time(self, seconds: float) -> bool:
        deadline = self.job.deadline
        return deadline is None or time.time() + RESERVE_SECONDS + 1.2 * seconds < deadline

    def report(self) -> None:
        """Write the status, and pass it on."""
        status = self._write_status()
        self.reported_at = time.monotonic()
        self.on_status(status)

    def _write_status(self) -> Status:
        status = status_of(self.job, self.fleet, self.written)
        curves = {} if self.job.curve_protocol is None else self.curves.to_plain()
        write_status(self.job, status, curves)
        return status

    def write_rows(self) -> bool:
        """Evaluate the finished agents that have no row, some at a time, and write their rows.

        False where the deadline came first.
        """
        job, fleet = self.job, self.fleet
        finished = [i for i, record in enumerate(fleet.records) if record.finished_at is not None]
        if any(job.key(job.runs[i]) not in self.written for i in finished):
            self.written |= {row.key for row in self.rows.read()}  # of other processes, too
        left = [i for i in finished if job.key(job.runs[i]) not in self.written]
        took = 0.0
        for first in range(0, len(left), EVALUATED_AT_ONCE):
            if not self._has_time(took):
                return False
            begin, chosen = time.monotonic(), left[first : first + EVALUATED_AT_ONCE]
            ways = (True, False) if job.samples else (True,)
            played = [fleet.evaluate_all(job.final_episodes, way, chosen) for way in ways]
            for i, *episodes in zip(chosen, *played, strict=True):
                self.rows.append(job.row(fleet, i, episodes, self.curves), job.files.rows)
                self.written.add(job.key(job.runs[i]))
            took = time.monotonic() - begin
        return True
