"""Problems to plan in: functions that return an `MDP`."""

from tsallax.problems.forest import forest
from tsallax.problems.garnet import garnet
from tsallax.problems.gridworld import gridworld, maze
from tsallax.problems.multigoal import multigoal
from tsallax.problems.unicycle import unicycle

__all__ = ["forest", "garnet", "gridworld", "maze", "multigoal", "unicycle"]
