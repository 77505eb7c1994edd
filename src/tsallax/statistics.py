"""Statistics of few runs: intervals by a stratified bootstrap, and probabilities of improvement.

Runs are resampled within their cell (one algorithm at one number of actions), never the episodes
in which a run was evaluated.  A draw takes n - 1 of the n runs of a cell, with
replacement: the variance of a mean over such draws is s²/n with the unbiased s², where n of n
would make it (n - 1)/n of that, a third too small for three runs (McCarthy and Snowden, 1985).
The interquartile mean and the probability of improvement are those of Agarwal et al. (2021).

The mean of fewer than six runs has no 95 % interval, since even their range holds the median with
a smaller probability: its range is given instead.  A probability of improvement has an interval
where both sides have six runs or more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Scores = Callable[[Array, Array], Array]
K = TypeVar("K", bound=Hashable)

DRAWS = 2000
LEVEL = 0.95
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
MIN_RUNS = 6
"""Runs from which on a mean has a 95 % interval: the range of n runs holds the median with
probability 1 - 2^(1 - n), which is 0.97 for six and 0.94 for five."""
HOLDS, FAILS, INCONCLUSIVE = "holds", "does not hold", "inconclusive"


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; None where the runs are too few for one."""

    value: float
    low: float | None = None
    high: float | None = None

    def verdict(self, null: float) -> str:
        """Whether the number is above `null`.

        >>> Estimate(0.7, 0.6, 0.8).verdict(0.5), Estimate(0.7, 0.4, 0.9).verdict(0.5)
        ('holds', 'inconclusive')
        """
        if self.low is None or self.high is None:
            return INCONCLUSIVE
        return HOLDS if self.low > null else FAILS if self.high < null else INCONCLUSIVE

    def runs_to_settle(self, null: float) -> float | None:
        """How many times as many runs would make the interval just exclude `null`.

        If the number stayed as it is: the width of an interval falls with the root of the runs.

        >>> round(Estimate(0.6, 0.4, 0.8).runs_to_settle(0.5), 6)
        4.0
        """
        if self.low is None or self.high is None or self.value == null:
            return None
        half = self.value - self.low if self.value > null else self.high - self.value
        return (half / (self.value - null)) ** 2


def estimate(value: float, draws: Array | None) -> Estimate:
    """A value with the percentile interval of its bootstrap draws.

    >>> estimate(20.0, np.arange(41.0))
    Estimate(value=20.0, low=1.0, high=39.0)
    """
    if draws is None:
        return Estimate(float(value))
    low, high = np.round(np.quantile(draws, TAILS), 9)  # so that sums of ties are exact
    return Estimate(float(value), float(low), float(high))


def resample(sizes: Mapping[K, int], draws: int = DRAWS, seed: int = 0) -> dict[K, Array]:
    """Bootstrap weights of the runs of every cell, (draws, runs); each draw's sum is one.

    >>> {cell: weights.shape for cell, weights in resample({"a": 3, "b": 1}, 10).items()}
    {'a': (10, 3), 'b': (10, 1)}
    """
    rng = np.random.default_rng(seed)
    weights = {}
    for cell, n in sizes.items():
        taken = max(n - 1, 1)
        weights[cell] = rng.multinomial(taken, np.full(n, 1 / n), draws) / taken
    return weights


def iqm(values: Sequence[float] | Array, weights: Array | None = None) -> Array:
    """The interquartile mean: of the middle half of the values, some of which count in part.

    Args:
        values: (n,).
        weights: (..., n), each sum one; default: all alike.

    >>> float(iqm([0.0, 1.0, 3.0, 100.0])), round(float(iqm([0.0, 3.0, 9.0])), 9)
    (2.0, 3.5)
    """
    x = np.asarray(values, np.float64)
    w = np.full(len(x), 1 / len(x)) if weights is None else weights
    order = np.argsort(x, kind="stable")
    upper = np.cumsum(w[..., order], axis=-1)
    lower = upper - w[..., order]
    inside = np.clip(np.minimum(upper, 0.75) - np.maximum(lower, 0.25), 0.0, None)
    middle: Array = inside @ x[order] / inside.sum(axis=-1)
    return middle


def mean_of(values: Array, weights: Array) -> Estimate:
    """The mean of a cell's runs with its interval, or with the range of fewer than six runs.

    >>> mean_of(np.array([4.0]), np.ones((10, 1)))
    Estimate(value=4.0, low=None, high=None)
    """
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(mean)
    if len(values) < MIN_RUNS:
        return Estimate(mean, float(values.min()), float(values.max()))
    return estimate(mean, weights @ values)


def mean_curve(runs: Array, weights: Array | None = None) -> tuple[Array, Array, Array]:
    """The mean over runs at each point of a curve, and both ends of its interval.

    As of `mean_of`, the ends are those of the range for fewer than six runs; for one run they are
    NaN.

    Args:
        runs: (runs, points).
        weights: as of `resample`; default: its own.

    >>> [end.tolist() for end in mean_curve(np.array([[1.0, 5.0], [2.0, 9.0]]))]
    [[1.5, 7.0], [1.0, 5.0], [2.0, 9.0]]
    """
    n, mean = len(runs), runs.mean(0)
    if n < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    if n < MIN_RUNS:
        return mean, runs.min(0), runs.max(0)
    drawn = resample({"runs": n})["runs"] if weights is None else weights
    low, high = np.quantile(drawn @ runs, TAILS, axis=0)
    return mean, low, high


def interval_label(runs: int) -> str:
    """The name of the interval that `mean_of` and `mean_curve` give for a number of runs.

    >>> interval_label(10), interval_label(3), interval_label(1)
    ('95% interval', 'range of 3 runs', '')
    """
    return "" if runs < 2 else "95% interval" if runs >= MIN_RUNS else f"range of {runs} runs"


def iqm_of(runs: Mapping[K, Array], weights: Mapping[K, Array], cells: Sequence[K]) -> Estimate:
    """The interquartile mean of several cells' runs; cells count alike, one named twice twice.

    >>> runs = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 9.0])}
    >>> iqm_of(runs, resample({"a": 2, "b": 2}), ["a", "b"])
    Estimate(value=2.5, low=2.0, high=5.5)
    """
    values = np.concatenate([runs[cell] for cell in cells])
    share = np.concatenate([np.full(len(runs[c]), 1 / len(runs[c])) for c in cells]) / len(cells)
    draws = None
    if all(len(runs[cell]) > 1 for cell in cells):
        drawn = np.concatenate([weights[cell] for cell in cells], axis=1) / len(cells)
        draws = iqm(values, drawn)
    return estimate(float(iqm(values, share)), draws)


def higher(x: Array, y: Array) -> Array:
    """Which of x is above which of y, (n, m): 1, 0, or a half where they are equal.

    >>> higher(np.array([1.0, 2.0]), np.array([1.0])).ravel().tolist()
    [0.5, 1.0]
    """
    return np.asarray(0.5 + 0.5 * np.sign(x[:, None] - y[None, :]))


def earlier(x: Array, y: Array) -> Array:
    """Which of x reached the threshold before which of y: 1, 0, or a half where it is unknown.

    A run is a pair of its episodes and whether it reached the threshold in the last of them.  The
    time of one that did not is censored: it is later than all that reached it before this run
    ended, and not comparable with the others.

    >>> early, never, late = (300.0, 1.0), (900.0, 0.0), (1200.0, 1.0)
    >>> earlier(np.array([early, late]), np.array([never])).ravel().tolist()
    [1.0, 0.5]
    """
    t, s = x[:, None, 0], y[None, :, 0]
    x_reached, y_reached = x[:, None, 1] > 0, y[None, :, 1] > 0
    first = x_reached & (t < s) | x_reached & ~y_reached & (t == s)
    last = y_reached & (s < t) | y_reached & ~x_reached & (t == s)
    return np.asarray(0.5 + 0.5 * first - 0.5 * last)


def has_interval(runs: Mapping[K, Array], matches: Sequence[tuple[K, K]]) -> bool:
    """Whether matched cells have enough runs for an interval: two each, and six on each side.

    >>> has_interval({"a": np.ones(6), "b": np.ones(3), "c": np.ones(3)}, [("a", "b"), ("a", "c")])
    True
    """
    sizes = {cell: len(runs[cell]) for match in matches for cell in match}
    sides = [sum(sizes[cell] for cell in set(side)) for side in zip(*matches)]
    return min(sizes.values()) >= 2 and min(sides) >= MIN_RUNS


def improvement(
    runs: Mapping[K, Array],
    weights: Mapping[K, Array],
    matches: Sequence[tuple[K, K]],
    better: Scores = higher,
) -> Estimate:
    """The probability that a run of one cell beats one of its match, averaged over the matches.

    It has no interval where a cell has one run, nor where a side has fewer than six runs in all,
    since all matches may share their deviation.

    Args:
        runs: of every cell.
        weights: as of `resample`.
        matches: pairs of cells; a cell may be in several.
        better: which run beats which, `higher` or `earlier`.

    >>> runs = {"a": np.array([3.0, 4, 5, 9, 2, 7]), "b": np.array([0.0, 4, 1, 2, 3, 6])}
    >>> improvement(runs, resample({"a": 6, "b": 6}), [("a", "b")])
    Estimate(value=0.763..., low=0.4, high=1.0)
    """
    scores = [better(runs[x], runs[y]) for x, y in matches]
    value = float(np.mean([s.mean() for s in scores]))
    if not has_interval(runs, matches):
        return Estimate(value)
    draws = sum(((weights[x] @ s) * weights[y]).sum(1) for (x, y), s in zip(matches, scores))
    return estimate(value, np.asarray(draws) / len(matches))


def rise(values: Sequence[float], draws: Sequence[Array | None]) -> Estimate:
    """How much a line fitted to evenly spaced values rises from the first to the last.

    >>> rise([0.0, 1.0, 2.0], [None, None, None]).value
    2.0
    """
    place = np.arange(len(values)) - (len(values) - 1) / 2
    slope = place / (place @ place) * (len(values) - 1)
    known = [d for d in draws if d is not None]
    drawn = slope @ np.stack(known) if len(known) == len(values) else None
    return estimate(float(slope @ np.asarray(values)), drawn)
