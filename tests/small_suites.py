"""A tiny run of the suite `classic`, CartPole with two seeds, as the tests of suites share it."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tsallax.paper.fleets.execution import train_missing
from tsallax.paper.fleets.row_files import RowFolder
from tsallax.paper.suites.suite_jobs import SuiteJob, SuiteRequest, default_request, plan_suite
from tsallax.paper.suites.suite_rows import SUITE_ROWS, SuiteRow
from tsallax.paper.suites.suite_tasks import CLASSIC

OPTIONS = {
    "net_arch": [8], "batch_size": 8, "buffer_size": 400, "learning_starts": 20, "tau": None,
    "target_update_interval": 50,
}  # fmt: skip
STEPS, EVERY = 200, 100
MAY_DIFFER = ("seconds", "provenance")


def small(**changes: Any) -> SuiteRequest:
    """CartPole for 200 steps, evaluated after 100."""
    usual: dict[str, Any] = {
        "tasks": ["CartPole-v1"], "seeds": 2, "steps": STEPS, "options": OPTIONS,
        "eval_every": EVERY, "eval_episodes": 2, "final_episodes": 3,
    }  # fmt: skip
    return dataclasses.replace(default_request(CLASSIC), **{**usual, **changes})


def plan(folder: Path, request: SuiteRequest | None = None, **options: Any) -> list[SuiteJob]:
    rows = RowFolder(folder, SUITE_ROWS)
    return plan_suite(request or small(), rows, **{"at_once": 2, **options})


def train(request: SuiteRequest, folder: Path, **options: Any) -> bool:
    """Train what a folder does not hold of a suite; whether that is all."""
    rows = RowFolder(folder, SUITE_ROWS)
    return train_missing([request], plan_suite, rows, progress=False, **options)


def outcome(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder without time and place."""
    rows = sorted(SUITE_ROWS.read(folder), key=lambda row: row.seed)
    return [_without(row) for row in rows]


def _without(row: SuiteRow) -> dict[str, Any]:
    return {k: v for k, v in dataclasses.asdict(row).items() if k not in MAY_DIFFER}


def example_row(**changes: Any) -> SuiteRow:
    """A row as a run of 200 steps would leave it."""
    usual: dict[str, Any] = {
        "suite": "classic", "task": "CartPole-v1", "agent": "tsallax", "levels": None, "seed": 0,
        "steps": STEPS, "episodes": 9, "greedy": 20.0, "greedy_error": 1.0, "evaluated": 3,
        "evaluations": ((100, 10.0, 2), (200, 20.0, 3)),
        "training": ((100, 15.0, 4), (200, 25.0, 5)), "seconds": 2.0, "agents": 1,
        "config": {"alpha": 0.1}, "provenance": {"device": "cpu: test", "tsallax": "0.2.0"},
    }  # fmt: skip
    return SuiteRow(**{**usual, **changes})


def example_rows(agent: str, greedy: Sequence[float], **changes: Any) -> list[SuiteRow]:
    """A row for each return."""
    return [
        example_row(agent=agent, seed=seed, greedy=value, **changes)
        for seed, value in enumerate(greedy)
    ]
