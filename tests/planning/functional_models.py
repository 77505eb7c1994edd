"""Small models from functions for the tests, and their transitions written out by hand."""

import jax.numpy as jnp
import numpy as np

from tsallax import MDP

LEVELS = 6
PROBABILITIES = np.array([0.2, 0.3, 0.5])


def decide(stock, order):
    return stock + order, -1.0 * order, stock + order < LEVELS


def evolve(stock, demand):
    sold = jnp.minimum(stock, demand)
    return stock - sold, 3.0 * sold - 0.1 * stock, (stock == LEVELS - 1) & (demand == 0)


def stock_model(**changes):
    """Orders arrive at once; the episode ends where a full store sells nothing."""
    arguments = {
        "decide": decide, "evolve": evolve, "states": LEVELS, "actions": 4, "post": LEVELS,
        "events": 3, "probabilities": PROBABILITIES, "discount": 0.9,
    }  # fmt: skip
    return MDP.from_functions(**(arguments | changes))


def weather_model(needed=lambda weather: weather):
    """Weather w brings a demand of up to w, which a stock below `needed` could not meet."""
    demand = jnp.array([[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.2, 0.3, 0.5]])
    return MDP.from_functions(
        lambda s, a: (
            s[0] + a, -1.0 * a, (s[0] + a < LEVELS) & (s[0] + a >= needed(s[1]))
        ),
        lambda x, e: ((x - e[0], e[1]), 3.0 * e[0], False),
        states=(LEVELS, 3), actions=4, post=LEVELS, events=(3, 3),
        probabilities=lambda s: jnp.outer(demand[s[1]], jnp.ones(3) / 3),
        given="state", discount=0.9,
    )  # fmt: skip


def stock_mdp():
    """The same as an MDP, from plain loops."""
    pairs, rows, rewards, termination = [], [], [], []
    for stock in range(LEVELS):
        for order in range(min(4, LEVELS - stock)):
            full, row, reward, end = stock + order, np.zeros(LEVELS), -1.0 * order, 0.0
            for demand, p in enumerate(PROBABILITIES):
                sold = min(full, demand)
                reward += p * (3.0 * sold - 0.1 * full)
                if full == LEVELS - 1 and demand == 0:
                    end += p
                else:
                    row[full - sold] += p
            pairs.append((stock, order))
            rows.append(row)
            rewards.append(reward)
            termination.append(end)
    return MDP(np.array(rows), rewards, 0.9, pairs=pairs, termination=termination)
