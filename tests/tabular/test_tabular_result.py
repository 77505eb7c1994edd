"""The result of tabular learning describes itself in one line and is read-only."""

import pickle

import numpy as np
import pytest

from planning_problems import BY_NAME
from tsallax.regularizer import Sparse
from tsallax.tabular.learning import q_learning
from tsallax.tabular.tabular_result import Interrupted


def test_the_representation_says_what_was_learnt_and_results_are_read_only():
    result = q_learning(BY_NAME["ladder-5"].mdp(initial=0), Sparse(0.5), steps=4_000)
    text = repr(result)
    assert "Sparse(alpha=0.5) on an MDP of 5 states and 4 pairs: 4,000 steps" in text
    assert "\n" not in text
    for name in ("q", "value", "policy", "visits", "returns", "lengths"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(result, name)[...] = 0
    assert (result.steps, result.episodes, result.tried) == (4_000, 1_000, 1.0)
    error = Interrupted("stopped", result)
    assert np.array_equal(pickle.loads(pickle.dumps(error)).result.q, result.q)
