"""What the explorer stores is what `solve` and `gap_certificate` find, rounded to the safe side."""

import numpy as np
import pytest

from refusals import refused
from tsallax import MDP, Hard, NotConverged, Soft, Sparse, Tsallis, gap_certificate, problems, solve
from tsallax.explorer import exploration
from tsallax.explorer.exploration import check_size, policy_codes, solve_settings


@pytest.fixture(scope="module")
def mdp():
    return problems.gridworld(4, 5, goals={(0, 4): 1.0, (2, 2): -1.0}, step_reward=-0.04)


@pytest.fixture(scope="module")
def found(mdp):
    return solve_settings(mdp, [0.05, 0.3], (1.0, 1.5, 2.0), 1e-6, lambda share: None)


def test_settings_are_in_order_and_agree_with_solve(mdp, found):
    assert (found.alphas, found.qs) == ((0.05, 0.3), (1.0, 1.5, 2.0))
    settings = [Hard(), Soft(0.05), Soft(0.3), Tsallis(0.05, 1.5), Tsallis(0.3, 1.5),
                Sparse(0.05), Sparse(0.3)]  # fmt: skip
    assert len(found.lower) == len(settings)
    for i, regularizer in enumerate(settings):
        exact = solve(mdp, regularizer, 1e-10)
        lower, upper = (side[i] / 10.0**found.decimals for side in (found.lower, found.upper))
        assert (lower <= exact.value + 1e-10).all()
        assert (exact.value - 1e-10 <= upper).all()
        assert (upper - lower <= 2e-6 + 2.0 * 10.0**-found.decimals).all()
        gap = gap_certificate(mdp, exact)
        shown = found.gaps[i] / 10.0**found.gap_decimals
        np.testing.assert_array_less(gap - 1e-9, shown + 1e-12)
        np.testing.assert_allclose(shown, gap, atol=2.0 * 10.0**-found.gap_decimals)
        probabilities = np.maximum(found.codes[i].astype(float) - 1.0, 0.0) / 1000.0
        np.testing.assert_allclose(probabilities, exact.pair_policy, atol=0.00051)
        np.testing.assert_array_equal(found.codes[i] > 0, exact.pair_policy > 0.0)


def test_a_soft_policy_has_no_exact_zeros():
    policy = np.array([0.0, 1.0, 0.00049, 0.0006])
    assert policy_codes(policy, sparse=False).tolist() == [1, 1001, 1, 2]
    assert policy_codes(policy).tolist() == [0, 1001, 1, 2]


def test_alphas_by_default_span_few_actions_to_many():
    mdp = problems.multigoal(9, grid=7)
    found = solve_settings(mdp, None, (2.0,), None, lambda share: None)
    assert len(found.alphas) == exploration.N_ALPHAS
    used = np.count_nonzero(found.codes, axis=1) / mdp.n_pairs
    assert used[1] < 0.3
    assert used[-1] > 0.9


@pytest.mark.parametrize("scale", [0.0, 1e-6, 1e6])
def test_rewards_may_be_of_any_size(scale):
    rewards = scale * np.array([[1.0, 0.0], [0.5, 2.0]])
    mdp = MDP([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]], rewards, 0.9)
    found = solve_settings(mdp, None, (2.0,), None, lambda share: None)
    value = solve(mdp, Hard(), 1e-9 * max(scale, 1e-3)).value
    assert (found.lower[0] <= value * 10.0**found.decimals).all()
    assert (value * 10.0**found.decimals <= found.upper[0]).all()
    assert (found.upper - found.lower <= 3 * found.upper.max() / 1e5 + 2).all()


def test_the_tolerance_by_default_is_one_that_can_be_proven():
    mdp = MDP([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]], [[1, 0], [0.5, 2]], 1 - 1e-9)
    found = solve_settings(mdp, None, (2.0,), None, lambda share: None)
    largest = found.upper.max() / 10.0**found.decimals
    assert found.decimals < 0
    assert 1e9 < largest < 1e12
    assert found.tolerance < 1e-3 * largest
    exact = solve(mdp, Hard(), found.tolerance)
    assert (found.lower[0] / 10.0**found.decimals <= exact.upper).all()
    assert (exact.lower <= found.upper[0] / 10.0**found.decimals).all()
    with pytest.raises(NotConverged, match=r"tolerance 0\.1 is below what float64 can prove"):
        solve_settings(mdp, [1.0], (2.0,), 0.1, lambda share: None)


def test_models_that_are_too_large_are_refused():
    check_size(
        exploration.MAX_STATES, exploration.MAX_ACTIONS,
        exploration.MAX_TRANSITIONS, exploration.MAX_PROBABILITIES,
    )  # fmt: skip
    for i, word in enumerate(("states", "actions", "transitions", "pairs")):
        with refused(word, "at most"):
            check_size(*(10**9 if j == i else 1 for j in range(4)))
