"""Statistics of runs against other ways to compute them; how often intervals are right."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, trim_mean

from tsallax.statistics import (
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    MIN_RUNS,
    Estimate,
    earlier,
    improvement,
    interval_label,
    iqm,
    iqm_of,
    mean_curve,
    mean_of,
    resample,
    rise,
)

NUMBERS = st.floats(-100, 100, allow_nan=False).map(lambda x: round(x, 3))


@given(st.lists(NUMBERS, min_size=1, max_size=9))
def test_iqm_is_the_trimmed_mean_of_every_value_four_times_over(values):
    """A quarter of those is a whole number: the values at the quartiles count in part."""
    assert float(iqm(values)) == pytest.approx(trim_mean(np.repeat(values, 4), 0.25), abs=1e-9)


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=8),
    st.lists(st.integers(0, 6), min_size=1, max_size=8),
)
def test_improvement_is_mann_whitneys_u_with_ties_counting_half(x, y):
    runs = {"x": np.array(x, float), "y": np.array(y, float)}
    weights = resample({key: len(values) for key, values in runs.items()}, 10)
    u = mannwhitneyu(x, y).statistic
    found = improvement(runs, weights, [("x", "y")])
    assert found.value == pytest.approx(u / (len(x) * len(y)))


def test_improvement_averages_over_matches_whatever_their_sizes():
    runs = {"a": np.array([1.0]), "b": np.zeros(9), "c": np.zeros(5), "d": np.array([2.0, 3.0])}
    weights = resample({key: len(values) for key, values in runs.items()}, 10)
    assert improvement(runs, weights, [("a", "b"), ("c", "d")]).value == 0.5


def test_the_interval_of_a_probability_is_that_of_resampled_runs():
    rng = np.random.default_rng(0)
    runs = {"x": rng.normal(size=6), "y": rng.normal(size=7)}
    weights = resample({"x": 6, "y": 7}, 20)
    draws = []
    for k in range(20):
        x, y = (
            np.repeat(runs[key], np.round(weights[key][k] * (len(runs[key]) - 1)).astype(int))
            for key in ("x", "y")
        )
        assert (len(x), len(y)) == (5, 6)
        draws.append(mannwhitneyu(x, y).statistic / 30)
    found = improvement(runs, weights, [("x", "y")])
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))


TIMES = st.tuples(st.integers(1, 5), st.booleans())


@given(TIMES, TIMES)
def test_a_run_is_earlier_only_if_it_is_whatever_the_other_would_have_done(x, y):
    """A run that ended without may reach the threshold at any later episode."""
    later = [[t] if there else [t + wait for wait in (0.5, 1.5, 2.5, 9.5)] for t, there in (x, y)]
    outcomes = {float(np.sign(b - a)) for a, b in itertools.product(*later)}
    expected = {frozenset({1.0}): 1.0, frozenset({-1.0}): 0.0}.get(frozenset(outcomes), 0.5)
    assert earlier(np.array([x], float), np.array([y], float))[0, 0] == expected


def coverage(trials, one):
    """How often each of some statements about random runs holds."""
    return np.mean([one(np.random.default_rng(seed), seed) for seed in range(trials)], axis=0)


def test_intervals_of_many_cells_of_three_runs_hold_the_truth_as_often_as_they_say():
    """Drawing three of three would hold it in 91 or 92 of 100."""
    truth = NormalDist().cdf(0.5 / math.sqrt(2))

    def one(rng, seed):
        runs = {(side, k): rng.normal(0.5 * side, 1, 3) for side in (0, 1) for k in range(9)}
        weights = resample(dict.fromkeys(runs, 3), 400, seed)
        found = improvement(runs, weights, [((1, k), (0, k)) for k in range(9)])
        middle = iqm_of(runs, weights, [(0, k) for k in range(9)])
        return found.low <= truth <= found.high, middle.low <= 0 <= middle.high

    improved, centred = coverage(600, one)
    assert 0.935 <= improved <= 0.985
    assert 0.9 <= centred <= 0.995


def test_interval_of_a_mean_of_many_runs_is_the_usual_one():
    values = np.random.default_rng(0).normal(3, 2, 200)
    found = mean_of(values, resample({"a": 200}, 20_000)["a"])
    half = 1.96 * values.std(ddof=1) / math.sqrt(200)
    assert found.low == pytest.approx(values.mean() - half, abs=0.03 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.03 * half)


def test_a_cell_named_twice_counts_twice():
    runs = {"a": np.array([0.0, 0.0]), "b": np.array([1.0, 1.0])}
    weights = resample({"a": 2, "b": 2}, 10)
    assert iqm_of(runs, weights, ["a", "b"]).value == pytest.approx(0.5)
    assert iqm_of(runs, weights, ["a", "a", "b"]).value == pytest.approx(1 / 6)


def test_one_run_has_no_interval():
    runs = {"a": np.array([1.0]), "b": np.arange(50.0)}
    weights = resample({"a": 1, "b": 50}, 10)
    assert mean_of(runs["a"], weights["a"]) == Estimate(1.0, None, None)
    assert iqm_of(runs, weights, ["a", "b"]).low is None
    assert improvement(runs, weights, [("a", "b")]).low is None


@pytest.mark.parametrize("cells", [1, 9])
@pytest.mark.parametrize("n", [3, 5, 6])
def test_a_separation_has_an_interval_where_both_sides_have_six_runs(n, cells):
    """Also where many cells are compared with one."""
    size = n if cells == 1 else 3
    runs = {k: np.arange(size) + 10.0 for k in range(cells)} | {"one": np.arange(1.0 * n)}
    weights = resample({key: len(values) for key, values in runs.items()})
    pairs = [(k, "one") for k in range(cells)]
    found = [improvement(runs, weights, side) for side in (pairs, [p[::-1] for p in pairs])]
    assert [one.value for one in found] == [1.0, 0.0]
    verdicts = [HOLDS, FAILS] if n >= 6 else [INCONCLUSIVE, INCONCLUSIVE]
    assert [one.verdict(0.5) for one in found] == verdicts
    assert (found[0].low is not None) == (n >= 6)


def test_many_cells_against_ten_runs_that_all_share_hardly_err():
    """With three shared runs 19 of 100 verdicts without effect would be conclusive."""

    def one(rng, seed):
        runs = {k: rng.normal(size=3) for k in range(18)} | {"one": rng.normal(size=10)}
        weights = resample({key: len(values) for key, values in runs.items()}, 400, seed)
        found = improvement(runs, weights, [(k, "one") for k in range(18)])
        return found.verdict(0.5) != INCONCLUSIVE

    assert coverage(400, one) <= 0.1


@pytest.mark.parametrize("n", [1, 2, 5, 6, 12])
def test_means_and_curves_have_the_range_of_fewer_than_six_runs_and_an_interval_of_more(n):
    runs = np.random.default_rng(n).normal(size=(n, 4))
    weights = resample({"a": n})["a"]
    mean, low, high = mean_curve(runs, weights)
    for point in range(4):
        expected = mean_of(runs[:, point], weights)
        assert mean[point] == pytest.approx(expected.value)
        if n == 1:
            assert (expected.low, np.isnan(low[point]), np.isnan(high[point])) == (None, True, True)
            continue
        ends = (runs[:, point].min(), runs[:, point].max())
        assert ((expected.low, expected.high) == ends) == (n < 6)
        assert (low[point], high[point]) == pytest.approx((expected.low, expected.high), abs=1e-8)
    np.testing.assert_array_equal(mean_curve(runs), (mean, low, high))


def test_an_interval_is_called_95_percent_from_six_runs_on_alone():
    assert ["95" in interval_label(n) for n in range(1, 9)] == [False] * 5 + [True] * 3
    assert 1 - 0.5 ** (MIN_RUNS - 1) > 0.95 > 1 - 0.5 ** (MIN_RUNS - 2)
    assert interval_label(3) == "range of 3 runs"


def test_a_cell_in_several_matches_is_resampled_once():
    """Otherwise its deviation would be averaged away, and the interval would be too short."""
    rng = np.random.default_rng(1)
    runs = {k: rng.normal(size=6) for k in range(30)} | {"y": rng.normal(size=6)}
    shared = improvement(runs, resample(dict.fromkeys(runs, 6)), [(k, "y") for k in range(30)])
    apart = {k: runs[k] for k in range(30)} | {("y", k): runs["y"] for k in range(30)}
    pairs = [(k, ("y", k)) for k in range(30)]
    single = improvement(apart, resample(dict.fromkeys(apart, 6)), pairs)
    assert shared.value == single.value
    assert shared.high - shared.low > 1.5 * (single.high - single.low)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.51, 0.9, HOLDS), (0.1, 0.49, FAILS), (0.5, 0.9, INCONCLUSIVE), (0.1, 0.5, INCONCLUSIVE)],
)
def test_a_verdict_needs_an_interval_that_excludes_the_null(low, high, verdict):
    assert Estimate(0.5, low, high).verdict(0.5) == verdict


def test_rounding_makes_no_verdict_of_ties_and_flat_lines():
    runs = {k: np.full(3 + k % 3, 1000.0) for k in range(14)}
    weights = resample({k: len(v) for k, v in runs.items()})
    found = improvement(runs, weights, [(k, k + 7) for k in range(7)])
    assert found == Estimate(0.5, 0.5, 0.5)
    for value in (0.1, 0.7, 1 / 3, 0.9):
        assert rise([value] * 4, [np.full(8, value)] * 4).verdict(0.0) == INCONCLUSIVE


def test_rise_is_that_of_the_least_squares_line():
    values = [1.0, 5.0, 2.0, 9.0]
    slope = np.polyfit(range(4), values, 1)[0]
    draws = [np.full(8, v) for v in values]
    assert rise(values, draws).value == pytest.approx(3 * slope)
    assert rise(values, draws).low == pytest.approx(3 * slope)
    assert rise(values, [*draws[:3], None]).low is None


def test_the_same_seed_draws_the_same_runs():
    a, b, c = (resample({"x": 5}, 50, seed)["x"] for seed in (0, 0, 1))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    np.testing.assert_allclose(a.sum(1), 1.0)
