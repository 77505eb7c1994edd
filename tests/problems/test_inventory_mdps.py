"""Inventories against simulations of their rules and closed forms."""

import numpy as np
import pytest
from scipy.stats import poisson

from tsallax import Hard, InvalidInput, problems, solve
from tsallax.problems.inventory_mdps import _issued


def test_an_inventory_with_lead_time_earns_what_its_rules_say():
    model = problems.inventory(capacity=4, lead_time=2, max_order=2, demand=1.0, discount=0.9)
    mdp = model.to_mdp()
    state, action = np.ravel_multi_index((3, 2, 1), (5, 3, 3)), 2
    row = mdp.transitions[[state * 3 + action]].toarray()[0]
    p = poisson.pmf(np.arange(5), 1.0)
    p[-1] = 1.0 - p[:-1].sum()
    expected = np.zeros(mdp.n_states)
    reward = -(1.0 * 2 + 2.0)
    for demand in range(5):  # 3 + 2 arrive, of which 4 fit; 1 is next, 2 were ordered
        sold = min(4, demand)
        expected[np.ravel_multi_index((4 - sold, 1, 2), (5, 3, 3))] += p[demand]
        reward += p[demand] * (3.0 * sold - 0.1 * (4 - sold))
    np.testing.assert_allclose(row, expected, atol=1e-15)
    assert mdp.rewards[state * 3 + action] == pytest.approx(reward)


def test_issued_units_have_the_distribution_of_simulated_demand():
    rng = np.random.default_rng(0)
    n, stock_a, stock_b = 200_000, 3, 2
    demand_a, demand_b = rng.poisson(2.0, n), rng.poisson(3.0, n)
    extra = rng.binomial(np.maximum(demand_b - stock_b, 0), 0.4)
    issued = np.minimum(demand_a + extra, stock_a), np.minimum(demand_b, stock_b)
    share = np.histogram2d(*issued, bins=[np.arange(6) - 0.5] * 2)[0] / n
    expected = _issued(4, [2.0, 3.0], 0.4)[stock_a, stock_b]
    assert np.abs(share - expected).max() < 4 * 0.5 / np.sqrt(n)


def test_perishables_with_one_product_in_demand_keep_the_other_out():
    model = problems.perishables(max_order=2, demand=(3.0, 1e-9), discount=0.9)
    solution = solve(model.to_mdp(), Hard())
    orders = solution.policy.argmax(1).reshape(3, 3, 3, 3, 3, 3)
    assert (orders % 3 == 0).all()  # b is never ordered
    assert (orders[0, 0, 0, 0, 0, 0] // 3) == 2


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (problems.inventory, {"capacity": 0}), (problems.inventory, {"lead_time": 0}),
        (problems.inventory, {"demand": -1.0}), (problems.inventory, {"max_order": 0}),
        (problems.inventory, {"fixed_cost": "a"}), (problems.inventory, {"price": float("nan")}),
        (problems.perishables, {"demand": 5.0}), (problems.perishables, {"demand": (5.0, 0.0)}),
        (problems.perishables, {"price": (1.0,)}), (problems.perishables, {"order_cost": "ab"}),
    ],
)  # fmt: skip
def test_invalid_inventories_are_refused(make, options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        make(**options)
