"""Learning curves of runs: the mean over seeds, with its interval, for each configuration.

Runs that differ only in the seed are drawn as one curve; what else they differ in names it, or
their folder where that is more than a few options. A return is smoothed by the mean of the episodes
up to it, and a curve ends where its shortest run does, so that each of its points is a mean over
all seeds. From six seeds on the interval is a 95 % bootstrap interval, with fewer it is the range
of the runs (`tsallax.statistics`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tsallax.deep.options import with_current_names
from tsallax.errors import InvalidInput
from tsallax.files import yaml_text
from tsallax.runs import logs
from tsallax.statistics import interval_label, mean_curve

Table = dict[str, NDArray[np.float64]]
IGNORED = (
    "episodes", "steps", "eval_every", "eval_episodes", "save_every", "stop_at_return",
    "tensorboard", "wandb",
)  # fmt: skip
"""Options that do not change what is learned."""
WINDOWS = (1, 2, 5, 10, 20, 50, 100)
MAX_NAMED = 4
"""Options in the name of a curve; runs that differ in more are named by their folders."""
POINTS = 400
"""The number of points at which a curve is drawn."""


@dataclass(frozen=True)
class Log:
    """The options and logs in the folder of a run."""

    folder: Path
    options: dict[str, Any]
    episodes: Table
    evaluations: Table


@dataclass(frozen=True)
class Group:
    """Runs that differ only in the seed, and the options that distinguish them from others."""

    label: str
    runs: tuple[Log, ...]

    @property
    def environment(self) -> str:
        """The environment of all its runs."""
        return str(self.runs[0].options.get("env"))


class Curve(NamedTuple):
    """Means over seeds at some places, and both ends of their interval."""

    x: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def find(folders: Iterable[str | Path]) -> list[Log]:
    """Read runs from their folders, and from folders that hold such folders."""
    found: dict[Path, Log] = {}
    for given in map(Path, folders):
        if not given.is_dir():
            raise InvalidInput(f"{given}: no such folder")
        inner = [given] if _is_run(given) else [f for f in sorted(given.iterdir()) if _is_run(f)]
        if not inner:
            raise InvalidInput(f"{given}: holds no run of tsallax train: give the --out of one")
        for folder in inner:
            found[folder.resolve()] = Log(
                folder,
                {**with_current_names(yaml_text.read(folder / "config.yaml")), **_changes(folder)},
                logs.read(folder / logs.EPISODES),
                logs.read(folder / logs.EVALUATIONS),
            )
    return list(found.values())


def _changes(folder: Path) -> dict[str, Any]:
    """The record of the options that changed in a run, as an option of its own."""
    rows = logs.read_changes(folder / logs.CHANGES)
    words = [f"{row['option']} {row['after']} from step {row['step']}" for row in rows]
    return {"changed": ", ".join(words) or None}


def _is_run(folder: Path) -> bool:
    return (folder / "config.yaml").is_file() and (folder / logs.EPISODES).is_file()


def group(runs: Sequence[Log]) -> list[Group]:
    """Group runs that differ only in the seed, in the order of their first."""
    alike: dict[str, list[Log]] = {}
    for run in runs:
        shown = {k: v for k, v in run.options.items() if k != "seed" and k not in IGNORED}
        alike.setdefault(yaml_text.scalar(dict(sorted(shown.items()))), []).append(run)
    for same in alike.values():
        folders: dict[str, Path] = {}
        for run in same:
            first = folders.setdefault(str(run.options.get("seed")), run.folder)
            if first is not run.folder:
                both = f"{first} and {run.folder}"
                raise InvalidInput(f"{both}: the same configuration and seed: leave one out")
    return [Group(_label(same, list(alike.values())), tuple(same)) for same in alike.values()]


def _label(runs: list[Log], groups: list[list[Log]]) -> str:
    """The options that distinguish a configuration from others in the same environment."""
    options = runs[0].options
    near = [g for g in groups if g[0].options.get("env") == options.get("env")]
    sets = [g[0].options for g in near]
    seen = {name: {repr(other[name]) for other in sets if name in other} for name in options}
    names = [n for n in options if n not in ("seed", *IGNORED) and len(seen[n]) > 1]
    if not names:
        names = [n for n in ("explore", "update", "alpha") if n in options] or ["algorithm"]
    if len(names) > MAX_NAMED:
        label = _folder_label(runs)
        return label if [_folder_label(g) for g in near].count(label) == 1 else str(runs[0].folder)
    shown = {name: options[name] for name in names}
    words = {n: f"{v:g}" if isinstance(v, float) else yaml_text.scalar(v) for n, v in shown.items()}
    return ", ".join(f"{name} {word}" for name, word in words.items())


def _folder_label(runs: list[Log]) -> str:
    """The name of the folder of a run, or what those of several begin with."""
    first, *others = (run.folder.resolve().name for run in runs)
    n = len(first)
    while not all(name.startswith(first[:n]) for name in others):
        n -= 1
    return (first[:n].rstrip("-_.0123456789") or first) if others else first


def smoothed(returns: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """The mean of each return and those before it, `window` at most.

    >>> smoothed(np.array([1.0, 3.0, 5.0, 9.0]), 2)
    array([1., 2., 4., 7.])
    """
    total = np.concatenate([[0.0], np.cumsum(returns)])
    end = np.arange(1, len(returns) + 1)
    begin = np.maximum(end - window, 0)
    mean: NDArray[np.float64] = (total[end] - total[begin]) / (end - begin)
    return mean


def training_curve(group: Group, window: int, by: str = "episodes") -> Curve:
    """Smoothed returns of training episodes, against their number or the steps taken."""
    places, values = [], []
    for run in group.runs:
        order = np.argsort(run.episodes["step"], kind="stable")
        values.append(smoothed(run.episodes["return"][order], window))
        steps = run.episodes["step"][order]
        places.append(steps if by == "steps" else np.arange(1.0, len(steps) + 1))
    begin = max(p[0] if len(p) else np.inf for p in places)
    end = min(p[-1] if len(p) else -np.inf for p in places)
    x = np.unique(np.linspace(begin, end, POINTS).round()) if begin <= end else np.empty(0)
    last = [np.searchsorted(p, x, side="right") - 1 for p in places]
    return Curve(x, *mean_curve(np.array([v[i] for v, i in zip(values, last, strict=True)])))


def evaluation_curve(group: Group, by: str = "episodes") -> Curve:
    """Returns of the greedy policy, evaluation by evaluation."""
    tables = [run.evaluations for run in group.runs]
    n = min(len(table["return"]) for table in tables)
    x = np.mean([t["step" if by == "steps" else "episode"][:n] for t in tables], axis=0)
    return Curve(x, *mean_curve(np.array([t["return"][:n] for t in tables])))


def window_of(group: Group, groups: Sequence[Group], window: int | None) -> int:
    """The window asked for, or about a tenth of the longest run in the environment."""
    if window is not None:
        return window
    near = [g for g in groups if g.environment == group.environment]
    longest = max(len(run.episodes["return"]) for g in near for run in g.runs)
    return max(n for n in WINDOWS if n == 1 or n <= longest / 10)


def table(groups: Sequence[Group], window: int | None = None) -> list[tuple[str, ...]]:
    """The last return of each group and its interval, as text."""
    rows: list[tuple[str, ...]] = [
        ("configuration", "environment", "seeds", "episodes", "last return", "interval")
    ]
    for g in groups:
        curve = training_curve(g, window_of(g, groups, window))
        n, count, last, ends = len(g.runs), "0", "-", "-"
        if len(curve.x):
            count, last = f"{curve.x[-1]:,.0f}", f"{curve.mean[-1]:.4g}"
            if n > 1:
                ends = f"{curve.low[-1]:.4g} to {curve.high[-1]:.4g} ({interval_label(n)})"
        rows.append((g.label, g.environment, f"{n}", count, last, ends))
    return rows


def remarks(groups: Sequence[Group]) -> list[str]:
    """Runs that are shorter than others of their group, or have no episode yet."""
    found = []
    for g in groups:
        counts = [len(run.episodes["return"]) for run in g.runs]
        if max(counts) == 0:
            found.append(f"{g.runs[0].folder}: no episode has ended yet")
        elif min(counts) < max(counts):
            short = g.runs[counts.index(min(counts))].folder
            found.append(
                f"{g.label}: drawn up to episode {min(counts)} of {max(counts)}, where {short} ends"
            )
    return found
