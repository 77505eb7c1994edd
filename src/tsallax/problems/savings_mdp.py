"""Consumption and saving under an uncertain income, as a model from functions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tsallax import checks
from tsallax.planning.forms import numbers, read_value
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.mdp import MDP


def savings(
    assets: int = 200,
    incomes: tuple[float, ...] = (0.5, 1.0, 1.5),
    persistence: float = 0.6,
    interest: float = 0.03,
    largest: float = 20.0,
    discount: float = 0.95,
) -> FunctionalMDP:
    """A household that consumes or saves: the reward is the logarithm of consumption.

    Args:
        assets: grid points of the assets, denser near zero; any may be chosen for the next step,
            so that there are `assets`**2 times the number of incomes pairs.
        incomes: what is earned in a step.
        persistence: the probability to keep one's income; all others are equally likely.
        interest: the rate of return of assets.
        largest: the largest assets.
        discount: gamma.

    A state is the assets and the income; the post-decision state has the assets chosen.

    >>> savings(assets=100)
    FunctionalMDP(300 states, 100 actions, 300 post-decision states, 3 events, discount 0.95)
    """
    earned = read_value("incomes", incomes, max(numbers(incomes, "incomes").size, 1))
    for name, amount in {"interest": interest, "largest": largest}.items():
        checks.number(name, amount)
    n, levels = checks.count("assets", assets, at_least=2), len(earned)
    keep = checks.probability("persistence", persistence)
    matrix = np.full((levels, levels), (1.0 - keep) / max(levels - 1, 1))
    np.fill_diagonal(matrix, keep if levels > 1 else 1.0)
    grid = largest * np.linspace(0.0, 1.0, n) ** 2

    def decide(state, action):  # type: ignore[no-untyped-def]
        position, income = state
        worth = jnp.asarray(grid)
        consumed = (1.0 + interest) * worth[position] + jnp.asarray(earned)[income] - worth[action]
        possible = consumed > 0.0
        return (action, income), jnp.log(jnp.where(possible, consumed, 1.0)), possible

    return MDP.from_functions(
        decide,
        lambda post, income: ((post[0], income), 0.0, False),
        states=(n, levels),
        actions=n,
        post=(n, levels),
        events=levels,
        probabilities=lambda post: jnp.asarray(matrix)[post[1]],
        discount=discount,
    )
