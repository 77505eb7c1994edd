"""Sweeps that take seconds, rows of their runs without training, and tools to interrupt them."""

import dataclasses
from pathlib import Path
from typing import Any

from made_up_rows import made_up_row
from tsallax.deep.fleet import Fleet
from tsallax.deep.options import to_mapping
from tsallax.paper.fleets.execution import train_missing
from tsallax.paper.fleets.job_status import Status, write_status
from tsallax.paper.fleets.row_files import RowFolder
from tsallax.paper.sweep.sweep_jobs import SweepJob, plan_sweep
from tsallax.paper.sweep.sweep_rows import SWEEP_ROWS, SweepRow
from tsallax.paper.sweep.sweep_specification import SweepRequest, learner_config
from tsallax.paper.sweep.sweep_tasks import REACHER, choose_variants

NAME = "Sparse+SparseBellman-0.1"
OPTIONS: dict[str, Any] = {
    "net_arch": [8], "batch_size": 8, "buffer_size": 300, "learning_starts": 0,
    "target_update_interval": 50, "n_step": 1,
}  # fmt: skip
EPISODES, PIECES = 24, 24
"""An episode of Reacher has 50 steps, a piece of training too."""
STATUS = Status(
    share=0.25,
    steps=1000,
    seconds=100.0,
    finished=0,
    reached_threshold=1,
    best=-7.25,
    worst=-9.5,
    process=1,
)


def small(seeds: int = 2, episodes: int = EPISODES, **changes: Any) -> SweepRequest:
    """A sweep of one variant with nine actions."""
    variants = tuple(choose_variants([NAME]))
    made = SweepRequest(REACHER, (9,), variants, seeds, episodes, 20_000, OPTIONS, evaluated=20)
    return dataclasses.replace(made, **changes)


def plan(sweep: SweepRequest, folder: Path, at_once: int = 2, **options: Any) -> list[SweepJob]:
    return plan_sweep(sweep, RowFolder(folder, SWEEP_ROWS), at_once=at_once, **options)


def train(sweep: SweepRequest, folder: Path, **options: Any) -> list[SweepRow]:
    """Train what a folder does not hold of a sweep, and give its rows."""
    rows = RowFolder(folder, SWEEP_ROWS)
    assert train_missing([sweep], plan_sweep, rows, progress=False, **options)
    return rows.read()


def finished_row(seed: int, episodes: int = EPISODES, **changes: Any) -> SweepRow:
    """The row of a run of the small sweep, made up."""
    (variant,) = choose_variants([NAME])
    config = to_mapping(learner_config(REACHER, variant, OPTIONS))
    given = {
        "episodes": episodes, "steps": 50 * episodes, "evaluated": 20, "config": config,
        "returns": (-9.0,) * -(-episodes // 20),
    }  # fmt: skip
    return made_up_row(REACHER, variant, 9, seed, -9.0, None, **(given | changes))


def finished_folder(folder: Path, seeds: int = 2) -> Path:
    """A folder with the rows of the small sweep; gives the file."""
    (job,) = plan(small(seeds), folder, at_once=seeds)
    job.files.rows.parent.mkdir(parents=True)
    for seed in range(seeds):
        SWEEP_ROWS.append(finished_row(seed), job.files.rows)
    return job.files.rows


def begun_folder(folder: Path) -> SweepJob:
    """A folder with a fleet in training, whose checkpoint is empty."""
    (job,) = plan(small(), folder)
    job.files.checkpoint.parent.mkdir(parents=True)
    job.files.checkpoint.write_text("")
    write_status(job, STATUS, {})
    return job


def outcome(folder: Path) -> dict[Any, dict[str, Any]]:
    """All rows of a folder, but for what may differ from one time to the next."""
    found: dict[Any, dict[str, Any]] = {}
    for path in folder.rglob("*.jsonl"):
        for row in SWEEP_ROWS.read_file(path):
            assert row.key not in found, "a run was trained twice"
            found[row.key] = dataclasses.asdict(row)
            for name in ("seconds", "provenance"):
                del found[row.key][name]
    return found


class Pieces:
    """Counts pieces of training, and interrupts one of them before it is recorded."""

    def __init__(self, monkeypatch: Any) -> None:
        self.count, self.interrupted = 0, 0
        record = Fleet._record

        def counted(fleet: Fleet, *log: Any) -> None:
            self.count += 1
            if self.count == self.interrupted:
                raise KeyboardInterrupt
            record(fleet, *log)

        monkeypatch.setattr(Fleet, "_record", counted)
