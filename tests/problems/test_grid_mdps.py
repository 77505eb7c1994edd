"""Gridworlds and mazes move as described."""

import time
import tracemalloc
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdp_checks import assert_stochastic, bytes_of, optimal_values
from tsallax.errors import InvalidInput
from tsallax.planning.mdp import MDP
from tsallax.problems import gridworld, maze

STEPS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}


def moved(cell, action, walls):
    """Say where a move ends, one cell at a time."""
    row, column = cell[0] + STEPS[action][0], cell[1] + STEPS[action][1]
    inside = 0 <= row < walls.shape[0] and 0 <= column < walls.shape[1]
    return (row, column) if inside and not walls[row, column] else cell


@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 5)).filter(lambda s: s != (1, 1)),
    noise=st.sampled_from([0.0, 0.2, 0.75, 0.9]),
    seed=st.integers(0, 10**6),
)
def test_gridworld_moves_as_described(shape, noise, seed):
    rng = np.random.default_rng(seed)
    walls = rng.random(shape) < 0.3
    walls.ravel()[:2] = False
    free = [(int(r), int(c)) for r, c in np.argwhere(~walls)]
    goals = {free[i]: float(rng.normal()) for i in rng.permutation(len(free))[: len(free) // 3 + 1]}
    goals = dict(list(goals.items())[: len(free) - 1])
    mdp = gridworld(*shape, goals=goals, walls=walls, noise=noise, step_reward=-0.5)
    assert mdp.state_names == tuple(f"{r},{c}" for r, c in free)
    assert mdp.action_names == tuple(STEPS)
    assert {free[s] for s in np.flatnonzero(mdp.terminal)} == set(goals)
    assert_stochastic(mdp)
    rows = mdp.transitions.toarray()
    for pair, (state, action) in enumerate(zip(mdp.state_of, mdp.action_of, strict=True)):
        chance: defaultdict[tuple[int, int], float] = defaultdict(float)
        for other, name in enumerate(STEPS):
            weight = 1 - noise if other == action else noise / 3
            chance[moved(free[state], name, walls)] += weight
        np.testing.assert_allclose(rows[pair], [chance[cell] for cell in free], atol=1e-15)
        reward = -0.5 + sum(p * goals.get(cell, 0.0) for cell, p in chance.items())
        assert mdp.rewards[pair] == pytest.approx(reward, abs=1e-14)


def test_gridworld_without_noise_counts_the_moves():
    mdp = gridworld(7, 5, noise=0.0, discount=0.9)
    distance = np.add.outer(6 - np.arange(7), 4 - np.arange(5)).ravel()
    np.testing.assert_allclose(-optimal_values(mdp), (1 - 0.9**distance) / 0.1, atol=1e-10)


def test_gridworld_starts_where_told():
    mdp = gridworld(3, start=(1, 2))
    assert mdp.initial[5] == 1.0
    np.testing.assert_allclose(gridworld(3).initial, [*[0.125] * 8, 0.0])
    walls = np.zeros((3, 3), int)
    walls[1, 1] = walls[2, 2] = 1
    blocked = gridworld(3, walls=walls)
    assert blocked.n_states == 7
    assert np.flatnonzero(blocked.terminal).tolist() == [6]


def test_a_million_states_are_built_in_little_more_than_their_own_memory():
    tracemalloc.start()
    start = time.process_time()
    mdp = gridworld(1000)
    seconds = time.process_time() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (mdp.n_states, mdp.n_pairs) == (10**6, 4 * (10**6 - 1))
    assert peak < 1.6 * bytes_of(mdp)
    assert seconds < 10
    assert mdp.state_names is None


def passages(mdp: MDP) -> int:
    """Count the open walls of a maze: two directed steps for each, but none out of goals."""
    csr = mdp.transitions[mdp.action_of == 0].tocoo()
    source = mdp.state_of[mdp.action_of == 0][csr.coords[0]]
    steps = {frozenset(e) for e in zip(source.tolist(), csr.coords[1].tolist(), strict=True)}
    return sum(len(step) == 2 for step in steps)


@given(
    shape=st.tuples(st.integers(1, 12), st.integers(2, 12)),
    loops=st.sampled_from([0.0, 0.1, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_every_cell_of_a_maze_reaches_the_goal(shape, loops, seed):
    mdp = maze(*shape, seed=seed, loops=loops)
    cells = shape[0] * shape[1]
    assert mdp.n_states == cells
    assert_stochastic(mdp)
    csr = mdp.transitions.tocoo()
    graph = np.zeros((cells, cells), bool)
    graph[mdp.state_of[csr.coords[0]], csr.coords[1]] = True
    reached, frontier = {cells - 1}, [cells - 1]
    while frontier:
        new = set(np.flatnonzero(graph[:, frontier.pop()]).tolist()) - reached
        reached |= new
        frontier += new
    assert len(reached) == cells
    walls = shape[0] * (shape[1] - 1) + (shape[0] - 1) * shape[1]
    if loops == 0.0:
        assert passages(mdp) == cells - 1
    elif loops == 1.0:
        assert passages(mdp) == walls
        open_grid = gridworld(*shape)
        assert (open_grid.transitions != mdp.transitions).nnz == 0
    else:
        assert cells - 1 <= passages(mdp) <= walls


def test_a_maze_is_reproducible_quick_and_far_from_open():
    start = time.process_time()
    mdp = maze(300, seed=3)
    assert time.process_time() - start < 2.0
    assert mdp.n_states == 90_000
    again, other = maze(300, seed=3), maze(300, seed=4)
    assert (mdp.transitions != again.transitions).nnz == 0
    assert mdp.transitions.nnz != other.transitions.nnz
    walls_left = 2 * 300 * 299 - passages(mdp)
    assert walls_left / (2 * 300 * 299 - (90_000 - 1)) == pytest.approx(0.98, abs=0.005)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: gridworld(1), "at least two cells, not 1 x 1"),
        (lambda: gridworld(0, 5), "rows must be an integer of at least 1, got 0"),
        (lambda: gridworld(5, "a"), "columns must be an integer of at least 1, got 'a'"),
        (lambda: gridworld(3, noise=1.0), "noise must be a number of .* got 1.0"),
        (lambda: gridworld(3, step_reward="a"), "step_reward must be a number, got 'a'"),
        (lambda: gridworld(3, walls=[[0], [0, 1]]), "walls must be a regular array"),
        (lambda: gridworld(3, walls=[[0, 1]]), r"walls must be a mask of shape \(3, 3\)"),
        (lambda: gridworld(3, walls=np.ones((3, 3))), "walls must be a mask"),
        (lambda: gridworld(3, walls=np.ones((3, 3), bool)), "walls leave no free cell"),
        (lambda: gridworld(3, goals=5), r"goals must be cells \(row, column\), not 5"),
        (lambda: gridworld(3, goals=(1, 2)), r"goal 1 is not a cell \(row, column\)"),
        (lambda: gridworld(3, goals=[]), "goals is empty"),
        (lambda: gridworld(3, goals=[(3, 0)]), r"goal \(3, 0\) lies outside the 3 x 3 grid"),
        (lambda: gridworld(3, goals={(2, 2): "a"}), r"reward of goal \(2, 2\) must be a number"),
        (lambda: gridworld(1, 2, walls=[[0, 1]]), "goals cover every free cell"),
        (lambda: gridworld(3, start=(2, 2)), r"start \(2, 2\) is a goal"),
        (lambda: gridworld(3, start=(-1, 0)), r"start \(-1, 0\) lies outside"),
        (lambda: gridworld(1, 3, walls=[[0, 1, 0]], start=(0, 1)), r"start \(0, 1\) is a wall"),
        (lambda: maze(3, seed="a"), "seed must be an integer of at least 0 .* got 'a'"),
        (lambda: maze(5, loops=1.1), "loops must be a number of .* got 1.1"),
        (lambda: maze(1), "at least two cells"),
    ],
)
def test_unusable_parameters_are_named(build, message):
    with pytest.raises(InvalidInput, match=message):
        build()
