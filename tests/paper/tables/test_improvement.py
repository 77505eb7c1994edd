"""Probabilities of improvement over matched cells, and leads by number of actions."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from tsallax.paper.sweep.sweep_tasks import REACHER
from tsallax.paper.tables.cells import gather
from tsallax.paper.tables.improvement import (
    all_improvements,
    group_rows,
    improvement_between,
    improvement_rows,
    leads,
)
from tsallax.statistics import INCONCLUSIVE


def test_the_probability_is_the_mean_of_mann_whitneys_u_over_matched_cells(data):
    found = improvement_between(data, "explore", "sparse", "soft", "return", [9, 121])
    shares = [
        mannwhitneyu(data.greedy[x], data.greedy[y]).statistic
        / (len(data.greedy[x]) * len(data.greedy[y]))
        for n in (9, 121)
        for x, y in data.matches("explore", "sparse", "soft", n)
    ]
    assert found.chance.value == pytest.approx(np.mean(shares))
    assert (found.matches, found.actions) == (len(shares), (9, 121))
    assert found.won + found.lost == pytest.approx(1)


def test_matches_in_which_no_run_reached_the_threshold_are_left_out(whole):
    rows = [dataclasses.replace(r, reached=None) if r.actions == 9 else r for r in whole]
    data = gather(REACHER, rows)
    found = improvement_between(data, "explore", "sparse", "soft", "episodes", REACHER.actions)
    assert found.actions == (121, 961, 2601)
    alone = improvement_between(data, "explore", "sparse", "soft", "episodes", [9])
    assert (alone.chance.value, alone.verdict, alone.won, alone.lost) == (0.5, INCONCLUSIVE, 0, 0)
    assert set(leads(data, "sparse", "soft", "episodes")) == {121, 961, 2601}
    rows = improvement_rows(all_improvements(data))
    assert not any((x["actions"], x["measure"]) == (9, "episodes") for x in rows)


def test_nothing_to_match_is_none(whole):
    data = gather(REACHER, [r for r in whole if r.explore == "sparse"])
    assert improvement_between(data, "explore", "sparse", "soft", "return", [9]) is None
    assert leads(data, "sparse", "soft", "return") == {}


def test_leads_are_differences_of_means(data):
    found = leads(data, "sparse", "epsilon", "return")
    pairs = data.matches("explore", "sparse", "epsilon", 961)
    mean = np.mean([data.greedy[x].mean() - data.greedy[y].mean() for x, y in pairs])
    assert found[961][0] == pytest.approx(mean)
    assert found[961][1].mean() == pytest.approx(mean, abs=0.02)


def test_groups_count_the_pooled_algorithm_once_and_its_runs_all(data):
    rows = group_rows(data)
    (row,) = [
        r for r in rows if (r["way"], r["actions"], r["factor"]) == ("epsilon", 9, "exploration")
    ]
    assert (row["algorithms"], row["runs"]) == (7, 27)
    assert row["runs_that_reached_the_threshold"] == 27
