"""Numbers, intervals and lists as text."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from tsallax.paper.result import tidy
from tsallax.paper.sweep.sweep_tasks import SweepTask
from tsallax.statistics import Estimate

EXPLORERS = {"sparse": "sparse", "soft": "softmax", "epsilon": "epsilon-greedy"}
UPDATES = {"sparse": "sparse", "soft": "soft", "hard": "hard"}


def digits(task: SweepTask) -> int:
    """Decimals of a return: hundredths of Reacher's few units, tenths of the pendulum's hundreds.

    >>> from tsallax.paper.sweep.sweep_tasks import TASKS
    >>> digits(TASKS["reacher"]), digits(TASKS["pendulum"])
    (2, 1)
    """
    return 2 if abs(task.threshold) < 100 else 1


def number(value: float, decimals: int = 2) -> str:
    """A number with a true minus sign.

    >>> number(-4.126), number(12345.6, 0), number(-0.001)
    ('−4.13', '12,346', '0.00')
    """
    text = f"{value:,.{decimals}f}" if abs(value) >= 10_000 else f"{value:.{decimals}f}"
    return f"{0:.{decimals}f}" if not text.strip("-0.,") else text.replace("-", "−")


def blank_or_number(value: float | None) -> float | str:
    """A number of a data file, in six digits, or nothing.

    >>> blank_or_number(123.4567891), blank_or_number(None)
    (123.457, '')
    """
    return "" if value is None else tidy(value, 6)


def shown(one: Estimate, decimals: int = 2) -> str:
    """A number with its interval, if it has one.

    >>> shown(Estimate(-4.0, -4.2, -3.9), 1), shown(Estimate(-4.0), 1)
    ('−4.0 [−4.2, −3.9]', '−4.0')
    """
    value = number(one.value, decimals)
    if one.low is None or one.high is None:
        return value
    return f"{value} [{number(one.low, decimals)}, {number(one.high, decimals)}]"


def episodes(reached: NDArray[np.bool_], mean: Estimate) -> str:
    """Mean episodes to the threshold; a lower bound with the count where not all runs reached it.

    >>> episodes(np.array([True, False]), Estimate(200.0, 100.0, 300.0))
    '200 (≥, 1 of 2)'
    """
    count = int(reached.sum())
    if count == len(reached):
        return shown(mean, 0)
    return f"{number(mean.value, 0)} (≥, {count} of {len(reached)})"


def span(values: Collection[int]) -> str:
    """The smallest and the largest of some numbers.

    >>> span([3, 3]), span([1000, 50, 70])
    ('3', '50 to 1,000')
    """
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def joined_words(words: Sequence[str], most: int = 6) -> str:
    """Words with commas and "and", the last of many as a count.

    >>> joined_words(["a", "b", "c"]), joined_words(list("abcdefgh"), most=3)
    ('a, b and c', 'a, b, c and 5 more')
    """
    short = [*words[:most], f"{len(words) - most} more"] if len(words) > most else list(words)
    return " and ".join(part for part in (", ".join(short[:-1]), *short[-1:]) if part)
