"""Continuation in alpha saves sweeps, and names the alpha at which it fails."""

import numpy as np
import pytest

from planning.functional_models import stock_model
from tsallax import NotConverged, Sparse, problems, solve, solve_path
from tsallax.planning import alpha_continuation
from tsallax.planning.bellman import Bellman


def test_few_sweeps_are_needed_after_the_first_alpha(monkeypatch):
    sweeps = []
    certify = Bellman.certify
    monkeypatch.setattr(Bellman, "certify", lambda *a: sweeps.append(1) or certify(*a))
    mdp, alphas = problems.garnet(300, 5, 5, discount=0.99, seed=1), np.geomspace(0.01, 0.1, 10)
    solve_path(mdp, alphas)
    along = len(sweeps)
    sweeps.clear()
    for alpha in alphas:
        solve(mdp, Sparse(float(alpha)))
    assert along < 0.7 * len(sweeps)


def test_models_from_functions_take_fewer_sweeps_from_a_prediction(monkeypatch):
    sweeps = []
    solves = alpha_continuation.solve
    monkeypatch.setattr(
        alpha_continuation, "solve", lambda *a, **k: (sweeps.append(solves(*a, **k)), sweeps[-1])[1]
    )
    solve_path(stock_model(actions=32), [0.5, 0.55, 0.6])
    assert sweeps[2].sweeps < sweeps[0].sweeps


@pytest.mark.parametrize("mdp", [problems.forest(), stock_model()], ids=["stored", "functions"])
def test_a_tolerance_out_of_reach_names_its_alpha(mdp):
    with pytest.raises(NotConverged, match=r"alpha 0\.5: tolerance 1e-18 is below"):
        solve_path(mdp, [0.5, 1.0], tolerance=1e-18)
