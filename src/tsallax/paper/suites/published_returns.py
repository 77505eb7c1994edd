"""Returns that other libraries publish, with their protocols, from `published.csv`."""

import csv
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Published:
    """A published return of one algorithm on one task."""

    task: str
    source: str
    agent: str
    value: float
    steps: int
    protocol: str


def all_published() -> tuple[Published, ...]:
    """All published returns.

    >>> all_published()[0]
    Published(task='InvertedDoublePendulum', source='Tianshou', agent='SAC', value=9360.0, ...)
    """
    text = (files("tsallax.paper.suites") / "published.csv").read_text(encoding="utf-8")
    return tuple(
        Published(
            row["task"], row["source"], row["agent"], float(row["return"]), int(row["steps"]),
            row["protocol"],
        )
        for row in csv.DictReader(text.splitlines())
    )  # fmt: skip
