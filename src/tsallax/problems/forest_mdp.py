"""Forest management: wait for old trees, or cut before a fire takes them."""

import numpy as np
from scipy.sparse import coo_array

from tsallax import checks
from tsallax.planning.mdp import MDP


def forest(
    states: int = 3,
    fire: float = 0.1,
    reward_old: float = 4.0,
    reward_cut: float = 2.0,
    discount: float = 0.9,
) -> MDP:
    """Build the textbook forest: r(oldest, wait) = reward_old, r(oldest, cut) = reward_cut.

    State s is the age class of the forest, the youngest first. Action 0 waits: the forest burns
    with probability `fire` and is young again, otherwise it grows one class older. Action 1 cuts:
    it is young again. Cutting earns 0 in the youngest class, `reward_cut` in the oldest and 1 in
    between; waiting earns `reward_old` in the oldest class and 0 before.

    Args:
        states: number of age classes, at least 2.
        fire: probability of a fire in a year of waiting.
        reward_old: reward of waiting in the oldest class.
        reward_cut: reward of cutting the oldest class.
        discount: γ in [0, 1).

    >>> forest().table(forest().rewards)
    array([[0., 0.],
           [0., 1.],
           [4., 2.]])
    """
    states = checks.count("states", states, at_least=2)
    fire = checks.probability("fire", fire)
    age = np.arange(states)
    older = np.minimum(age + 1, states - 1)
    rows = np.concatenate([2 * age, 2 * age, 2 * age + 1])
    columns = np.concatenate([older, np.zeros(2 * states, int)])
    chances = np.repeat([1.0 - fire, fire, 1.0], states)
    rewards = np.zeros((states, 2))
    rewards[1:, 1] = 1.0
    rewards[-1, 0] = checks.number("reward_old", reward_old)
    rewards[-1, 1] = checks.number("reward_cut", reward_cut)
    transitions = coo_array((chances, (rows, columns)), shape=(2 * states, states))
    return MDP(transitions, rewards, discount, action_names=["wait", "cut"])
