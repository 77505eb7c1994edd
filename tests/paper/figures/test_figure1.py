"""Figure 1: the sparse policy has few modes and loses less than the softmax policy."""

import numpy as np
import pytest

from tsallax.paper.figures import figure1
from tsallax.paper.result import BoundViolated


@pytest.fixture(scope="module")
def result(computed):
    return computed(figure1.compute, grid=13)


def test_sparse_policy_moves_towards_the_four_goals_and_softmax_everywhere(result):
    actions = [row for row in result.tables[1].rows if row["actions"] == 49]
    used = {(row["vx"], row["vy"]) for row in actions if row["sparse_probability"] > 0}
    assert used == {(3, 0), (-3, 0), (0, 3), (0, -3)}
    assert all(row["soft_probability"] > 0 for row in actions)
    assert sum(row["sparse_probability"] for row in actions) == pytest.approx(1)


def test_sparse_policy_loses_less_and_suffers_less_from_more_actions(result):
    states = result.tables[0].rows
    for n in (9, 49):
        for row in states:
            assert -1e-6 <= row[f"sparse_difference_{n}"] < row[f"soft_difference_{n}"]
    rise = {
        kind: np.mean([r[f"{kind}_difference_49"] - r[f"{kind}_difference_9"] for r in states])
        for kind in ("sparse", "soft")
    }
    assert rise["sparse"] < 0.5 * rise["soft"]


def test_a_certificate_above_its_bound_stops_the_figure(monkeypatch):
    monkeypatch.setattr(figure1, "performance_bound", lambda mdp, regularizer: 1e-9)
    with pytest.raises(BoundViolated, match="certificate"):
        figure1.compute(grid=7)
