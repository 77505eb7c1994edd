"""The alpha of a given loss against the certified losses of single solves."""

import pytest

from planning.functional_models import stock_mdp, stock_model
from tsallax import (
    MDP,
    InvalidInput,
    NotConverged,
    Soft,
    Sparse,
    Tsallis,
    choose_alpha,
    gap_certificate,
    problems,
    solve,
)

FAMILIES = {
    "sparse": (Sparse, None),
    "soft": (Soft, None),
    "tsallis": (lambda alpha: Tsallis(alpha, 1.5), 1.5),
}


@pytest.mark.parametrize("worst_case", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_chosen_alpha_is_within_the_gap_and_hardly_a_larger_one_is(family, worst_case):
    mdp, (make, q) = problems.garnet(300, 5, 5, discount=0.99, seed=1), FAMILIES[family]
    alpha, gap, solution = choose_alpha(mdp, 0.2, family, q=q, worst_case=worst_case)

    def certified(solution):
        bound = gap_certificate(mdp, solution)
        return float(bound.max() if worst_case else mdp.initial @ bound)

    assert certified(solution) == gap <= 0.2
    assert solution.regularizer == make(alpha)
    # 1% by the search, 0.1% from the tolerance of a thousandth, on a bound that grows with alpha
    assert certified(solve(mdp, make(1.02 * alpha))) > 0.2 * 0.998


def test_a_small_gap_is_found_where_the_theorem_promises_less():
    mdp = problems.forest()
    found = choose_alpha(mdp, 1e-4, precision=0.1)
    assert found.alpha > 1.0  # the policy is deterministic: entropy comes at once, with alpha 3


def test_a_gap_below_rounding_is_named_and_not_a_tolerance_that_nobody_gave():
    with pytest.raises(NotConverged, match="max_gap 1e-14 asks for values to within 1e-17: alpha"):
        choose_alpha(problems.forest(), 1e-14)
    with pytest.raises(NotConverged, match=r"max_gap to a thousand times what can be proven$"):
        choose_alpha(problems.forest(), 1.4e-11)
    with pytest.raises(NotConverged, match=r"raise max_gap or tolerance$"):
        choose_alpha(problems.forest(), 1e-10, tolerance=1e-14)
    assert choose_alpha(problems.forest(), 1.7e-9).gap <= 1.7e-9


def test_an_alpha_far_above_the_one_that_the_theorem_allows_is_found():
    scale = 2.0**16
    mdp = problems.forest()
    large = MDP(
        mdp.transitions, scale * mdp.rewards.reshape(3, 2), mdp.discount, initial=mdp.initial
    )
    alpha = choose_alpha(large, 1e-4).alpha
    assert alpha == pytest.approx(scale * choose_alpha(mdp, 1e-4).alpha, rel=0.02)


def test_where_no_choice_is_reached_from_the_start_the_worst_case_is_named():
    rows = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    mdp = MDP(rows, [1.0, 0.0, 1.0], 0.9, pairs=[(0, 0), (1, 0), (1, 1)], initial=0)
    with pytest.raises(NotConverged, match=r"alpha changes nothing, and worst_case=True bounds"):
        choose_alpha(mdp, 0.1)
    assert choose_alpha(mdp, 0.1, worst_case=True).gap <= 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: choose_alpha(m, 0.0), "max_gap must be a number above 0, got 0"),
        (lambda m: choose_alpha(m, -1.0), "max_gap must be a number above 0, got -1"),
        (lambda m: choose_alpha(m, 1.0, tolerance=0.5), "tolerance must be .* up to 0.1"),
        (lambda m: choose_alpha(m, 1.0, precision=0), "precision must be a number above 0"),
        (lambda m: choose_alpha(problems.garnet(3, 1, 1), 1.0), "alpha changes nothing"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(call, message):
    with pytest.raises(InvalidInput, match=message) as refusal:
        call(problems.forest())
    assert "\n" not in str(refusal.value)


def test_an_alpha_is_chosen_for_a_model_from_functions():
    alpha, gap, solution = choose_alpha(stock_model(), 0.2)
    stored = choose_alpha(stock_mdp(), 0.2)
    assert gap <= 0.2
    assert gap == stock_model().initial @ gap_certificate(solution.mdp, solution)
    assert alpha == pytest.approx(stored.alpha, rel=0.02)
