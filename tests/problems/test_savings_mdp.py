"""Saving against the optimum of a household that knows its income."""

import numpy as np
import pytest

from tsallax import Hard, InvalidInput, problems, solve


def test_without_interest_and_risk_an_impatient_household_spends_its_assets():
    model = problems.savings(assets=30, incomes=(1.0,), interest=0.0, largest=4.0, discount=0.5)
    solution = solve(model.to_mdp(), Hard())
    chosen = solution.policy.argmax(1)
    assert (chosen <= np.arange(30)).all()
    assert chosen[0] == 0
    np.testing.assert_allclose(solution.value[0], 0.0, atol=1e-6)  # log 1 for ever


def test_rewards_are_not_rounded_to_float32_on_the_way():
    mdp = problems.savings(assets=7).to_mdp()
    grid = 20.0 * (np.arange(7) / 6) ** 2
    state, action = mdp.state_of, mdp.action_of
    consumed = 1.03 * grid[state // 3] + np.array([0.5, 1.0, 1.5])[state % 3] - grid[action]
    np.testing.assert_allclose(mdp.rewards, np.log(consumed), rtol=1e-12)


def test_income_stays_with_its_probability_and_else_changes_evenly():
    mdp = problems.savings(assets=3, persistence=0.6).to_mdp()
    row = mdp.transitions[[0]].toarray()[0]  # assets 0, income 0, keeps 0
    np.testing.assert_allclose(row[:3], [0.6, 0.2, 0.2])


@pytest.mark.parametrize(
    "options",
    [
        {"assets": 1}, {"incomes": 1.0}, {"incomes": ("a",)}, {"incomes": ()},
        {"incomes": [[1], [1, 2]]}, {"interest": None}, {"persistence": 2}, {"largest": "a"},
    ],
)  # fmt: skip
def test_unusable_parameters_are_named(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        problems.savings(**options)
