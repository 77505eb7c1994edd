"""The forest is the textbook's."""

import numpy as np
import pytest

from mdp_checks import assert_stochastic, optimal_values
from tsallax.errors import InvalidInput
from tsallax.problems import forest


def test_forest_has_its_textbook_values():
    mdp = forest()
    assert mdp.action_names == ("wait", "cut")
    np.testing.assert_allclose(optimal_values(mdp), [26.244, 29.484, 33.484], atol=1e-9)
    q = mdp.table(mdp.rewards + 0.9 * (mdp.transitions @ optimal_values(mdp)))
    assert q.argmax(axis=1).tolist() == [0, 0, 0]
    np.testing.assert_allclose(
        mdp.transitions.toarray(),
        [[0.1, 0.9, 0], [1, 0, 0], [0.1, 0, 0.9], [1, 0, 0], [0.1, 0, 0.9], [1, 0, 0]],
    )


def test_forest_pays_for_cutting_before_the_last_class():
    mdp = forest(5, fire=0.8, reward_old=1.0, reward_cut=3.0)
    np.testing.assert_array_equal(mdp.table(mdp.rewards), [[0, 0], [0, 1], [0, 1], [0, 1], [1, 3]])
    q = mdp.table(mdp.rewards + 0.9 * (mdp.transitions @ optimal_values(mdp)))
    assert q.argmax(axis=1).tolist() == [0, 1, 1, 1, 1]
    for fire in (0.0, 1.0):
        assert_stochastic(forest(4, fire))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": 1}, "states must be an integer of at least 2, got 1"),
        ({"fire": 1.5}, "fire must be a number of .* got 1.5"),
        ({"reward_cut": "a"}, "reward_cut must be a number, got 'a'"),
        ({"reward_old": float("inf")}, "reward_old must be a number, got inf"),
    ],
)
def test_unusable_parameters_are_named(options, message):
    with pytest.raises(InvalidInput, match=message):
        forest(**options)
