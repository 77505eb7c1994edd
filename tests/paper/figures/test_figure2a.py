"""Figure 2a: gaps, certificates and bounds are what their columns say."""

import pytest

from tsallax.errors import InvalidInput
from tsallax.paper.figures import figure2a
from tsallax.paper.result import BoundViolated
from tsallax.planning.evaluation import evaluate, performance_bound
from tsallax.planning.solver import solve
from tsallax.problems.unicycle_mdp import unicycle
from tsallax.regularizer import Hard, Sparse

GRID = (7, 7, 8)


@pytest.fixture(scope="module")
def result(computed):
    return computed(figure2a.compute, actions=(9, 25, 49, 81), grid=GRID)


def test_gaps_add_up_to_the_certificate(result):
    rows = result.tables[0].rows
    assert len(rows) == 16
    for row in rows:
        total = row["value_gap"] + row["return_gap"]
        assert total == pytest.approx(row["certificate"], rel=1e-6, abs=1e-6)


def test_columns_are_those_of_solutions_and_evaluations(result):
    mdp = unicycle(9, grid=GRID)
    hard, sparse = (solve(mdp, regularizer, 1e-9) for regularizer in (Hard(), Sparse(0.1)))
    row = result.tables[0].rows[0]
    assert (row["regularizer"], row["alpha"], row["actions"]) == ("sparse", 0.1, 9)
    best = float(mdp.initial @ hard.value)
    plain = evaluate(mdp, sparse.policy).expected_return
    assert row["return_gap"] == pytest.approx(best - plain, abs=1e-6)
    assert row["value_gap"] == pytest.approx(float(mdp.initial @ sparse.value) - best, abs=1e-5)
    assert row["bound"] == pytest.approx(performance_bound(mdp, Sparse(0.1)), rel=1e-6)


def test_soft_value_gap_grows_like_a_logarithm_and_the_sparse_one_levels_off(result):
    rows = result.tables[0].rows
    slope = figure2a.log_slope(rows, 0.1, "soft", "value_gap")
    assert slope == pytest.approx(0.1 / (1 - result.parameters["discount"]), rel=0.05)
    assert figure2a.log_slope(rows, 0.1, "sparse", "value_gap") < 0.1 * slope


@pytest.mark.parametrize(
    "wrong",
    [{"value_gap": -0.1}, {"return_gap": -0.1}, {"value_gap": 1.1}, {"return_gap": 1.1},
     {"certificate": 2.1}, {"bound": float("nan")}],
)  # fmt: skip
def test_a_violated_inequality_raises(wrong):
    fine = {"value_gap": 0.4, "return_gap": 0.6, "certificate": 1.0, "bound": 2.0}
    assert figure2a.gap_row(9, Sparse(1.0), **fine)["margin"] == pytest.approx(1.4)
    with pytest.raises(BoundViolated):
        figure2a.gap_row(9, Sparse(1.0), **(fine | wrong))


@pytest.mark.parametrize("actions", [(9,), (25, 9)])
def test_actions_that_do_not_increase_are_refused(actions):
    with pytest.raises(InvalidInput, match="increasing"):
        figure2a.compute(actions=actions)
