"""Breadth-first distances against SciPy's shortest paths."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from planning_problems import BY_NAME
from tsallax.planning.bellman import kernel_arrays
from tsallax.planning.kernels.breadth_first import breadth_first_order
from tsallax.problems import garnet, maze

MDPS = {"garnet": garnet(60, 2, 2), "maze": maze(9), "ends": BY_NAME["terminal-ragged"].mdp()}


@pytest.mark.parametrize("mdp", MDPS.values(), ids=MDPS.keys())
@pytest.mark.parametrize("targets", [[0], [1, 4], []], ids=str)
def test_states_come_by_their_distance_to_the_targets(mdp, targets):
    order, steps = breadth_first_order(kernel_arrays(mdp), np.array(targets, np.int64))
    assert sorted(order) == list(range(mdp.n_states))
    assert np.all(np.diff(steps[order]) >= 0)
    if not targets:
        assert np.all(steps == 0)
        return
    successors = mdp.transitions.indices
    predecessors = np.repeat(mdp.state_of, np.diff(mdp.transitions.indptr))
    shape = (mdp.n_states, mdp.n_states)
    backwards = csr_array((np.ones(len(successors)), (successors, predecessors)), shape=shape)
    distance = dijkstra(backwards, unweighted=True, indices=targets).min(axis=0)
    reachable = np.isfinite(distance)
    assert np.array_equal(steps[reachable], distance[reachable])
    assert np.all(steps[~reachable] == distance[reachable].max() + 1)
