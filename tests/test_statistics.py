"""Statistics of runs against other ways to compute them; how often intervals are right."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, trim_mean

from tsallax.errors import InvalidInput
from tsallax.statistics import (
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    MIN_RUNS,
    Estimate,
    earlier,
    estimate,
    higher,
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


@given(st.lists(NUMBERS, min_size=4, max_size=24).filter(lambda x: len(x) % 4 == 0))
def test_iqm_is_the_trimmed_mean_where_a_quarter_is_a_whole_number(values):
    assert float(iqm(values)) == pytest.approx(trim_mean(values, 0.25), abs=1e-9)


@pytest.mark.parametrize(
    ("values", "by_hand"),
    [
        ([5.0], 5.0),
        ([1.0, 4.0], 2.5),
        ([9.0, 0.0, 3.0], (0.25 * 0.0 + 3.0 + 0.25 * 9.0) / 1.5),
        ([0.0, 1.0, 2.0, 7.0, 100.0], (0.75 * 1.0 + 2.0 + 0.75 * 7.0) / 2.5),
        ([0.0, 1.0, 2.0, 4.0, 8.0, 100.0], (0.5 * 1.0 + 2.0 + 4.0 + 0.5 * 8.0) / 3.0),
    ],
)
def test_iqm_counts_the_values_at_the_quartiles_in_part(values, by_hand):
    assert float(iqm(values)) == pytest.approx(by_hand)


@given(st.lists(NUMBERS, min_size=1, max_size=7))
def test_iqm_is_that_of_every_value_four_times_over(values):
    assert float(iqm(values)) == pytest.approx(trim_mean(np.repeat(values, 4), 0.25), abs=1e-9)


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=8),
    st.lists(st.integers(0, 6), min_size=1, max_size=8),
)
def test_improvement_is_mann_whitneys_u_with_ties_counting_half(x, y):
    runs = {"x": np.array(x, float), "y": np.array(y, float)}
    weights = resample({key: len(values) for key, values in runs.items()}, 10)
    u = mannwhitneyu(x, y).statistic
    found, _ = improvement(runs, weights, [("x", "y")])
    assert found.value == pytest.approx(u / (len(x) * len(y)))


def test_improvement_averages_over_matches_whatever_their_sizes():
    runs = {"a": np.array([1.0]), "b": np.zeros(9), "c": np.zeros(5), "d": np.array([2.0, 3.0])}
    weights = resample({key: len(values) for key, values in runs.items()}, 10)
    assert improvement(runs, weights, [("a", "b"), ("c", "d")])[0].value == 0.5


def test_draws_of_the_probability_are_those_of_resampled_runs():
    rng = np.random.default_rng(0)
    runs = {"x": rng.normal(size=6), "y": rng.normal(size=7)}
    weights = resample({"x": 6, "y": 7}, 20)
    _, draws = improvement(runs, weights, [("x", "y")])
    for k in range(20):
        x, y = (
            np.repeat(runs[key], np.round(weights[key][k] * (len(runs[key]) - 1)).astype(int))
            for key in ("x", "y")
        )
        assert (len(x), len(y)) == (5, 6)
        assert draws[k] == pytest.approx(mannwhitneyu(x, y).statistic / 30)


TIMES = st.tuples(st.integers(1, 5), st.booleans())


@given(TIMES, TIMES)
def test_a_run_is_earlier_only_if_it_is_whatever_the_other_would_have_done(x, y):
    """A run that ended without may reach the threshold at any later episode."""
    later = [[t] if there else [t + wait for wait in (0.5, 1.5, 2.5, 9.5)] for t, there in (x, y)]
    outcomes = {float(np.sign(b - a)) for a, b in itertools.product(*later)}
    expected = {frozenset({1.0}): 1.0, frozenset({-1.0}): 0.0}.get(frozenset(outcomes), 0.5)
    assert earlier(np.array([x], float), np.array([y], float))[0, 0] == expected


def test_two_runs_that_never_reached_the_threshold_are_not_comparable():
    never = np.array([[100.0, 0.0], [10_000.0, 0.0]])
    assert np.all(earlier(never, never) == 0.5)


def coverage(trials, one):
    return np.mean([one(np.random.default_rng(seed), seed) for seed in range(trials)])


def test_intervals_of_many_cells_of_three_runs_hold_the_truth_as_often_as_they_say():
    """Drawing three of three would hold it in 91 or 92 of 100."""
    truth = NormalDist().cdf(0.5 / math.sqrt(2))

    def one(rng, seed):
        runs = {(side, k): rng.normal(0.5 * side, 1, 3) for side in (0, 1) for k in range(9)}
        weights = resample(dict.fromkeys(runs, 3), 400, seed)
        found, _ = improvement(runs, weights, [((1, k), (0, k)) for k in range(9)])
        return found.low <= truth <= found.high

    assert 0.935 <= coverage(600, one) <= 0.985


def test_interval_of_the_interquartile_mean_holds_the_centre_of_cells():
    def one(rng, seed):
        runs = {k: rng.normal(0, 1, 3) for k in range(9)}
        found = iqm_of(runs, resample(dict.fromkeys(runs, 3), 400, seed), list(runs))
        return found.low <= 0 <= found.high

    assert 0.9 <= coverage(400, one) <= 0.995


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
    found, draws = improvement(runs, weights, [("a", "b")])
    assert (found.low, found.high, draws) == (None, None, None)


@pytest.mark.parametrize(("n", "known"), [(3, False), (5, False), (6, True)])
def test_separation_of_fewer_than_six_runs_has_no_interval(n, known):
    runs = {"a": np.arange(n) + 10.0, "b": np.arange(n) * 1.0}
    found, _ = improvement(runs, resample({"a": n, "b": n}), [("a", "b")])
    assert found.value == 1.0
    assert (found.low is not None) == known
    assert found.verdict(0.5) == (HOLDS if known else INCONCLUSIVE)


@pytest.mark.parametrize(
    ("n", "verdict"),
    [(3, (INCONCLUSIVE, INCONCLUSIVE)), (5, (INCONCLUSIVE, INCONCLUSIVE)), (6, (HOLDS, FAILS))],
)
def test_many_cells_against_one_have_an_interval_if_that_one_has_six_runs(n, verdict):
    runs = {k: np.arange(3) + 10.0 for k in range(9)} | {"one": np.arange(1.0 * n)}
    weights = resample({key: len(values) for key, values in runs.items()})
    pairs = [(k, "one") for k in range(9)]
    found = [improvement(runs, weights, side)[0] for side in (pairs, [p[::-1] for p in pairs])]
    assert tuple(one.verdict(0.5) for one in found) == verdict


def test_many_cells_against_ten_runs_that_all_share_hardly_err():
    """With three shared runs 19 of 100 verdicts without effect would be conclusive."""

    def one(rng, seed):
        runs = {k: rng.normal(size=3) for k in range(36)} | {"one": rng.normal(size=10)}
        weights = resample({key: len(values) for key, values in runs.items()}, 400, seed)
        return (
            improvement(runs, weights, [(k, "one") for k in range(36)])[0].verdict(0.5)
            != INCONCLUSIVE
        )

    assert coverage(400, one) <= 0.1


def test_the_interval_of_a_mean_of_fewer_than_six_runs_is_their_range():
    for n, ranged in ((2, True), (5, True), (6, False)):
        values = np.arange(n) ** 2.0
        found = mean_of(values, resample({"a": n})["a"])
        assert ((found.low, found.high) == (0.0, values[-1])) == ranged


@pytest.mark.parametrize("n", [1, 2, 5, 6, 12])
def test_a_curve_has_the_interval_of_a_mean_at_every_point(n):
    runs = np.random.default_rng(n).normal(size=(n, 4))
    weights = resample({"a": n})["a"]
    mean, low, high = mean_curve(runs, weights)
    for point in range(4):
        expected = mean_of(runs[:, point], weights)
        assert mean[point] == pytest.approx(expected.value)
        if n > 1:
            ends = pytest.approx((expected.low, expected.high), abs=1e-8)
            assert (low[point], high[point]) == ends
    if n == 1:
        assert np.isnan([low, high]).all()
    np.testing.assert_array_equal(mean_curve(runs), (mean, low, high))


def test_an_interval_is_called_95_percent_from_six_runs_on_alone():
    assert ["95" in interval_label(n) for n in range(1, 9)] == [False] * 5 + [True] * 3
    assert 1 - 0.5 ** (MIN_RUNS - 1) > 0.95 > 1 - 0.5 ** (MIN_RUNS - 2)
    assert interval_label(3) == "range of 3 runs"


def test_a_cell_in_several_matches_is_resampled_once():
    """Otherwise its deviation would be averaged away, and the interval would be too short."""
    rng = np.random.default_rng(1)
    runs = {k: rng.normal(size=6) for k in range(30)} | {"y": rng.normal(size=6)}
    shared = improvement(runs, resample(dict.fromkeys(runs, 6)), [(k, "y") for k in range(30)])[0]
    apart = {k: runs[k] for k in range(30)} | {("y", k): runs["y"] for k in range(30)}
    pairs = [(k, ("y", k)) for k in range(30)]
    single = improvement(apart, resample(dict.fromkeys(apart, 6)), pairs)[0]
    assert shared.value == single.value
    assert shared.high - shared.low > 1.5 * (single.high - single.low)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.51, 0.9, HOLDS),
        (0.1, 0.49, FAILS),
        (0.4, 0.6, INCONCLUSIVE),
        (0.5, 0.9, INCONCLUSIVE),
        (0.1, 0.5, INCONCLUSIVE),
    ],
)
def test_a_verdict_needs_an_interval_that_excludes_the_null(low, high, verdict):
    assert Estimate(0.5, low, high).verdict(0.5) == verdict


def test_ties_everywhere_are_one_half_exactly():
    runs = {k: np.full(3 + k % 3, 1000.0) for k in range(14)}
    weights = resample({k: len(v) for k, v in runs.items()})
    found, _ = improvement(runs, weights, [(k, k + 7) for k in range(7)])
    assert found == Estimate(0.5, 0.5, 0.5)
    assert found.verdict(0.5) == INCONCLUSIVE


def test_rise_is_that_of_the_least_squares_line():
    values = [1.0, 5.0, 2.0, 9.0]
    slope = np.polyfit(range(4), values, 1)[0]
    draws = [np.full(8, v) for v in values]
    assert rise(values, draws).value == pytest.approx(3 * slope)
    assert rise(values, draws).low == pytest.approx(3 * slope)
    assert rise(values, [*draws[:3], None]).low is None


@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3, 0.9])
def test_a_flat_line_does_not_rise_by_rounding(value):
    assert rise([value] * 4, [np.full(8, value)] * 4).verdict(0.0) == INCONCLUSIVE


def test_the_same_seed_draws_the_same_runs():
    a, b, c = (resample({"x": 5}, 50, seed)["x"] for seed in (0, 0, 1))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    np.testing.assert_allclose(a.sum(1), 1.0)


def test_what_cannot_be_computed_is_refused():
    with pytest.raises(InvalidInput, match="no runs of x"):
        resample({"x": 0})
    with pytest.raises(InvalidInput, match="no runs to compare"):
        improvement({}, {}, [])


def test_higher_and_its_reverse_add_up_to_one():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.5])
    np.testing.assert_array_equal(higher(x, y) + higher(y, x).T, 1.0)
    assert estimate(1.0, None) == Estimate(1.0)
