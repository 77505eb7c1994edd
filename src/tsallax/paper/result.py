"""What an experiment returns: figures, the numbers in them, and how they compare with the paper."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = str | int | float
Line = Mapping[str, Value]
"""A line of a table: values by the names of their columns."""
Progress = Callable[[float], None]
"""Called with the share of the work that is done, 0 to 1."""


class BoundViolated(RuntimeError):
    """A quantity was measured above the bound that a theorem proves: a bug."""


@dataclass(frozen=True)
class Table:
    """Rows of data with the same keys in the same order, written as `name`.csv."""

    name: str
    title: str
    rows: tuple[Line, ...]
    shown: str = ""
    """Whether the page shows the table; "open", "folded" or "" for the file alone."""


@dataclass(frozen=True)
class Series:
    """One line of a chart with its interval, None where it has none, in a panel of its chart."""

    panel: str
    label: str
    """Its name, such as "Sparse+SparseBellman-0.1"; the same in every panel."""
    groups: Mapping[str, str]
    """Words that choose it with others, such as {"exploration": "sparse"}."""
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    shown: bool = False
    """Whether it is drawn before the reader chooses."""


@dataclass(frozen=True)
class Chart:
    """Lines that a reader of the page can turn on and off, written as `name`.chart.json."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    same_scale: bool = True
    """Whether all panels have the same axes before the reader chooses."""


@dataclass(frozen=True)
class Comparison:
    """One line of "the paper says, we get"."""

    what: str
    paper: str
    ours: str


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with its alternative text, written as `name`.png and `name`.svg."""

    name: str
    figure: Figure
    alt: str


@dataclass(frozen=True, eq=False)
class Result:
    """The result of one experiment of the paper, by the name of the experiment."""

    name: str
    caption: tuple[str, ...]
    """Paragraphs that say what is shown and what was found."""
    parameters: Mapping[str, Any]
    """Everything that was chosen."""
    tables: tuple[Table, ...]
    comparison: tuple[Comparison, ...]
    pictures: tuple[Picture, ...] = ()
    charts: tuple[Chart, ...] = ()
    title: str = ""
    """The heading of its section; that of planning results is in the registry of experiments."""
    hardware: str | None = None
    """The hardware of the runs, where it is not this machine."""
    quick: bool = False
    """Whether less was computed, or learned, than in the full experiment."""


def chosen(function: Callable[..., Any], **given: Any) -> dict[str, Any]:
    """The arguments a call gets: those given, and the defaults of the others.

    >>> chosen(round, number=0.5)
    {'number': 0.5, 'ndigits': None}
    """
    return {
        name: given.get(name, parameter.default)
        for name, parameter in signature(function).parameters.items()
    }


def tidy(value: float, digits: int = 7) -> float:
    """Round to significant digits, by default seven, the accuracy of the solver.

    >>> tidy(1 / 3), tidy(1 / 3, 4)
    (0.3333333, 0.3333)
    """
    return float(f"{value:.{digits}g}")


def require_within(what: str, value: float, bound: float, slack: float) -> float:
    """The margin bound - value, or BoundViolated where it is below -slack.

    >>> require_within("gap", 0.25, 1.0, 1e-9)
    0.75
    """
    if not value <= bound + slack:
        raise BoundViolated(f"{what} is {value:.9g}, above its bound {bound:.9g}")
    return bound - value


def write_csv(rows: Iterable[Line], file: TextIO) -> None:
    """Write rows under a header; floats so that they read back exactly."""
    rows = list(rows)
    writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def read_csv(file: TextIO) -> list[dict[str, Value]]:
    """Rows as `write_csv` wrote them, numbers as numbers.

    >>> import io
    >>> read_csv(io.StringIO("claim,cases,margin\\nLemma 1,20,-1e-16\\n"))
    [{'claim': 'Lemma 1', 'cases': 20, 'margin': -1e-16}]
    """
    return [{key: _cell(text) for key, text in row.items()} for row in csv.DictReader(file)]


def _cell(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
