"""Inventories, as models from functions: with a lead time, and of two perishable products."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tsallax import checks
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.mdp import MDP
from tsallax.problems.lattice import point

Floats = NDArray[np.float64]


def inventory(
    capacity: int = 50,
    lead_time: int = 2,
    max_order: int = 10,
    demand: float = 5.0,
    price: float = 3.0,
    order_cost: float = 1.0,
    fixed_cost: float = 2.0,
    holding_cost: float = 0.1,
    discount: float = 0.99,
) -> FunctionalMDP:
    """An inventory whose orders arrive after a lead time; unmet demand is lost.

    Args:
        capacity: the largest stock; what would exceed it is lost on arrival.
        lead_time: steps from an order to its arrival, at least 1.
        max_order: the largest order.
        demand: the mean of the Poisson demand of a step; its tail counts as the capacity.
        price, order_cost, fixed_cost, holding_cost: for a unit sold, for a unit ordered, for an
            order, and for a unit held at the end of a step.
        discount: gamma.

    A state is the stock and the orders on their way, the next to arrive first.

    >>> inventory(capacity=20, lead_time=1, max_order=5)
    FunctionalMDP(126 states, 6 actions, 126 post-decision states, 21 events, discount 0.99)
    """
    from scipy.stats import poisson  # half a second

    capacity, max_order = checks.count("capacity", capacity), checks.count("max_order", max_order)
    lead_time = checks.count("lead_time", lead_time)
    amounts = {"price": price, "order_cost": order_cost, "fixed_cost": fixed_cost}
    for name, amount in {**amounts, "holding_cost": holding_cost}.items():
        checks.number(name, amount)
    p = poisson.pmf(np.arange(capacity + 1), checks.number("demand", demand, above=0))
    p[-1] += 1.0 - p.sum()

    def decide(state, action):  # type: ignore[no-untyped-def]
        stock, *orders = state
        cost = order_cost * action + fixed_cost * (action > 0)
        return (jnp.minimum(stock + orders[0], capacity), *orders[1:], action), -cost, True

    def evolve(post, event):  # type: ignore[no-untyped-def]
        stock, *orders = post
        sold = jnp.minimum(stock, event)
        return (stock - sold, *orders), price * sold - holding_cost * (stock - sold), False

    space = (capacity + 1, *[max_order + 1] * lead_time)
    return MDP.from_functions(
        decide, evolve, states=space, actions=max_order + 1, post=space, events=capacity + 1,
        probabilities=p, discount=discount,
    )  # fmt: skip


def perishables(
    max_order: int = 5,
    demand: tuple[float, float] = (5.0, 5.0),
    substitution: float = 0.5,
    order_cost: tuple[float, float] = (0.5, 0.5),
    price: tuple[float, float] = (1.0, 1.0),
    discount: float = 0.99,
) -> FunctionalMDP:
    """Two perishable products that live for three steps, of which one may replace the other.

    The problem of Hendrix et al. (2019, doi 10.1002/cmm4.1027) with a useful life of three steps.
    In each step both products are ordered, the Poisson demand is met from the oldest stock, some
    of those who do not get product b take a instead, what is left of the oldest stock is discarded,
    and the order arrives.

    Args:
        max_order: the largest order of each product; 15 makes 16^6 = 16,777,216 states.
        demand: the means of the demand of a and b.
        substitution: the probability that an unmet demand for b accepts a.
        order_cost, price: of a unit of a and b.
        discount: gamma.

    A state is the fresh, middle-aged and oldest stock of a, then of b. The post-decision state has
    the stock without the oldest units and the orders; an event is the number of units taken from
    that stock, whose probability depends on all of the state and not on the orders.

    >>> perishables(max_order=2)
    FunctionalMDP(729 states, 9 actions, 729 post-decision states, 25 events, discount 0.99)
    """
    size = checks.count("max_order", max_order) + 1
    means = [checks.number("demand", mean, above=0) for mean in point("demand", demand).tolist()]
    order_cost_a, order_cost_b = point("order_cost", order_cost).tolist()
    price_a, price_b = point("price", price).tolist()
    issued = _issued(3 * max_order, means, checks.probability("substitution", substitution))
    units = np.arange(3 * max_order + 1)
    revenue = np.einsum("abij,i->ab", issued, price_a * units)
    revenue += np.einsum("abij,j->ab", issued, price_b * units)
    # indexed by [none of a taken beside the oldest, none of b, total a, total b, issued a, b]
    along_a = np.cumsum(issued, axis=2)
    tables = np.stack([
        np.stack([issued, np.cumsum(issued, axis=3)]),
        np.stack([along_a, np.cumsum(along_a, axis=3)]),
    ])  # fmt: skip
    taken = jnp.arange(2 * max_order + 1)

    def decide(state, action):  # type: ignore[no-untyped-def]
        fresh_a, middle_a, oldest_a, fresh_b, middle_b, oldest_b = state
        order_a, order_b = action
        expected = jnp.asarray(revenue)[
            fresh_a + middle_a + oldest_a, fresh_b + middle_b + oldest_b
        ]
        reward = expected - order_cost_a * order_a - order_cost_b * order_b
        return (fresh_a, middle_a, fresh_b, middle_b, order_a, order_b), reward, True

    def evolve(post, event):  # type: ignore[no-untyped-def]
        fresh_a, middle_a, fresh_b, middle_b, order_a, order_b = post
        after_a = _take(fresh_a, middle_a, event[0])
        after_b = _take(fresh_b, middle_b, event[1])
        return (order_a, *after_a, order_b, *after_b), 0.0, False

    def probabilities(state):  # type: ignore[no-untyped-def]
        fresh_a, middle_a, oldest_a, fresh_b, middle_b, oldest_b = state
        total_a, total_b = fresh_a + middle_a + oldest_a, fresh_b + middle_b + oldest_b
        a, b = taken[:, None], taken
        return jnp.asarray(tables)[
            (a == 0).astype(int), (b == 0).astype(int), total_a, total_b,
            oldest_a + a, oldest_b + b,
        ]  # fmt: skip

    return MDP.from_functions(
        decide, evolve, states=(size,) * 6, actions=(size,) * 2, post=(size,) * 6,
        events=(2 * max_order + 1,) * 2, probabilities=probabilities, given="state",
        discount=discount,
    )  # fmt: skip


def _take(fresh, middle, units):  # type: ignore[no-untyped-def]
    """Fresh and middle-aged stock after `units` were taken, the older first."""
    left = jnp.maximum(middle - units, 0)
    return jnp.maximum(fresh - jnp.maximum(units - middle, 0), 0), left


def _issued(capacity: int, means: list[float], substitution: float) -> Floats:
    """P(i, j | a, b): units issued of both products, for each stock a and b, (n, n, n, n)."""
    from scipy.stats import binom, poisson

    n = capacity + 1
    most = int(poisson.isf(1e-16, max(means))) + n
    demand_a, demand_b = (poisson.pmf(np.arange(most + 1), mean) for mean in means)
    issued = np.zeros((n, n, n, n))
    for b in range(n):
        # the demand for a is increased by those that find no b: a binomial share of the excess
        excess = np.arange(most + 1 - b)
        moved = binom.pmf(excess[:, None], excess[None, :], substitution) @ demand_b[b:]
        increased = np.convolve(demand_a, moved)
        for a in range(n):
            issued[a, b, :, :b] = _capped(demand_a, a, n)[:, None] * demand_b[:b]
            issued[a, b, :, b] = _capped(increased, a, n)
    issued /= issued.sum(axis=(2, 3), keepdims=True)
    return issued


def _capped(demand: Floats, stock: int, n: int) -> Floats:
    """The distribution of min(demand, stock) over 0, ..., n-1."""
    out = np.zeros(n)
    out[:stock] = demand[:stock]
    out[stock] = demand[stock:].sum()
    return out
