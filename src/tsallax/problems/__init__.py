"""Problems to plan in: functions that return an `MDP`."""

from tsallax.problems.forest_mdp import forest
from tsallax.problems.garnet_mdp import garnet
from tsallax.problems.grid_mdps import gridworld, maze
from tsallax.problems.inventory_mdps import inventory, perishables
from tsallax.problems.multigoal_mdp import multigoal
from tsallax.problems.savings_mdp import savings
from tsallax.problems.unicycle_mdp import unicycle

__all__ = [
    "forest", "garnet", "gridworld", "inventory", "maze", "multigoal", "perishables", "savings",
    "unicycle",
]  # fmt: skip
