"""Sweeps that take seconds, and what is done to them in tests."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from tsallax.deep.fleet import Fleet
from tsallax.paper.sweep import rows
from tsallax.paper.sweep.jobs import Sweep
from tsallax.paper.sweep.tasks import TASKS, choose

OPTIONS: dict[str, Any] = {
    "net_arch": [8],
    "batch_size": 8,
    "buffer_size": 300,
    "learning_starts": 50,
    "target_update_interval": 50,
    "n_step": 1,
}
EPISODES, PIECES = 24, 24
"""An episode of Reacher has 50 steps, a piece of training too."""


def small(seeds: int = 2, episodes: int = EPISODES, **changes: Any) -> Sweep:
    variants = tuple(choose(["Sparse+SparseBellman-0.1"]))
    made = Sweep(TASKS["reacher"], (9,), variants, seeds, episodes, 20_000, OPTIONS, evaluated=20)
    return dataclasses.replace(made, **changes)


def outcome(folder: Path) -> dict[Any, dict[str, Any]]:
    """All rows of a folder, but for what may differ from one time to the next."""
    found: dict[Any, dict[str, Any]] = {}
    for path in folder.rglob("*.jsonl"):
        for row in rows.read_file(path):
            assert row.key not in found, "a run was trained twice"
            found[row.key] = dataclasses.asdict(row)
            for name in ("seconds", "provenance"):
                del found[row.key][name]
    return found


class Pieces:
    """Counts pieces of training, and has one of them interrupted half way."""

    def __init__(self, monkeypatch: Any) -> None:
        self.count, self.interrupted = 0, 0
        record = Fleet._record

        def counted(fleet: Fleet, *log: Any) -> None:
            self.count += 1
            if self.count == self.interrupted:
                raise KeyboardInterrupt
            record(fleet, *log)

        monkeypatch.setattr(Fleet, "_record", counted)
