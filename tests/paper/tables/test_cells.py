"""Runs by algorithm and number of actions, and the ranking of algorithms."""

import dataclasses

import numpy as np
import pytest

from made_up_rows import judged, made_up_sweep
from tsallax.errors import InvalidInput
from tsallax.paper.sweep.sweep_tasks import PENDULUM, REACHER
from tsallax.paper.tables.cells import PLAIN_EPSILON_GREEDY, gather, ranking


def test_the_top_five_are_those_that_were_made_best():
    best = ["Soft+SparseBellman-1", "EpsGrdy+SoftBellman-0.1", "Sparse+Bellman-0.01"]
    best += ["Sparse+SoftBellman-1", "Soft+Bellman-0.1"]
    rows = made_up_sweep(effect=lambda v, k: 9.0 - best.index(v.name) if v.name in best else 0.0)
    order = ranking(gather(REACHER, rows))
    assert list(order.names[:5]) == best
    for top in (order.top, order.top_by_mean, *order.first):
        assert top.tolist() == [1.0] * 5 + [0.0] * 20


def test_one_failure_costs_a_rank_and_not_the_mean():
    name = "Sparse+Bellman-1"
    rows = made_up_sweep(effect=lambda v, k: (-99.0 if k == 0 else 9.0) * (v.name == name))
    order = ranking(gather(REACHER, rows))
    assert order.top_by_mean[order.names.index(name)] == 0
    assert name in order.names[:5]


def test_ties_share_the_last_of_the_top_five_however_they_are_listed():
    best = ["Sparse+Bellman-1", "Soft+Bellman-1", "EpsGrdy+SoftBellman-1"]
    rows = [
        dataclasses.replace(r, greedy=1000.0 if r.algorithm in best else 990.0, reached=500)
        for r in made_up_sweep(PENDULUM)
        if r.actions
    ]
    order = ranking(gather(PENDULUM, rows))
    assert set(order.names[:3]) == set(best)
    for top in (order.top, order.top_by_mean, order.first[0]):
        np.testing.assert_allclose(top, [1] * 3 + [2 / 22] * 22)
    count = judged(rows, PENDULUM, ranked=True)["Most of the top five explore sparsely"].found
    assert count.value == pytest.approx(1 + 8 * 2 / 22, abs=1e-6)
    late = [dataclasses.replace(r, reached=900) if r.algorithm != best[2] else r for r in rows]
    assert ranking(gather(PENDULUM, late)).names[0] == best[2], "ties are broken by episodes"


def test_epsilon_greedy_with_the_plain_update_is_one_algorithm(whole, data):
    assert len(data.cells[PLAIN_EPSILON_GREEDY, 9]) == 9
    assert len(data.algorithms) == 25
    assert len(data.matches("explore", "sparse", "epsilon", 9)) == 9
    assert data.cells_of_kind("explore", "epsilon", 9).count((PLAIN_EPSILON_GREEDY, 9)) == 3
    same = [dataclasses.replace(r, seed=r.seed % 1000) for r in whole]
    assert len(gather(REACHER, same).cells[PLAIN_EPSILON_GREEDY, 9]) == 3


def test_matched_cells_differ_in_one_way_alone(data):
    for factor, other in (("explore", "update"), ("update", "explore")):
        for x, y in data.matches(factor, "sparse", "soft", 121):
            a, b = data.cells[x][0], data.cells[y][0]
            assert (getattr(a, other), a.alpha, a.actions) == (getattr(b, other), b.alpha, 121)
            assert (getattr(a, factor), getattr(b, factor)) == ("sparse", "soft")


def test_other_tasks_are_left_out_and_none_is_refused(whole):
    both = [*whole, *made_up_sweep(PENDULUM)]
    assert len(gather(PENDULUM, both).rows) == len(both) - len(whole)
    with pytest.raises(InvalidInput, match="no runs of pendulum"):
        gather(PENDULUM, whole)
    mixed = [dataclasses.replace(whole[0], threshold=-7.0), *whole[1:]]
    with pytest.raises(InvalidInput, match="thresholds -7 and -6"):
        gather(REACHER, mixed)
