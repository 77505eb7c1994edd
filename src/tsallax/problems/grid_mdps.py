"""Noisy moves on a grid: open gridworlds, with walls, and random mazes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.planning.forms import Floats, numbers
from tsallax.planning.mdp import MDP
from tsallax.problems.lattice import MAX_NAMED_STATES

Cell = tuple[int, int]
Goals = Mapping[Cell, float] | Iterable[Cell] | None
Mask = NDArray[np.bool_]
Ints = NDArray[np.int32]

MOVES = ("up", "right", "down", "left")


def gridworld(
    rows: int,
    columns: int | None = None,
    *,
    goals: Goals = None,
    walls: ArrayLike | None = None,
    noise: float = 0.2,
    step_reward: float = -1.0,
    start: Cell | None = None,
    discount: float = 0.99,
) -> MDP:
    """Build a grid on which a move takes a wrong direction with probability `noise`.

    Actions are up, right, down and left. A move takes the chosen direction with probability
    1 - noise and each of the three others with probability noise/3; a move into a wall or beyond
    the edge leaves the state unchanged. Each move earns `step_reward`, plus its reward when it
    enters a goal; goals are terminal. With the defaults, -V is the expected discounted number of
    moves to the goal.

    The states are the free cells, row by row.

    Args:
        rows: number of rows.
        columns: number of columns, by default as many as rows.
        goals: the goal cells (row, column), each with reward 0, or a mapping from cells to their
            rewards (negative for a trap). Default: the last cell that is free.
        walls: mask (rows, columns) of the cells that cannot be entered.
        noise: probability of a move in another direction than the chosen one, in [0, 1).
        step_reward: reward of each move.
        start: the cell an episode starts in, by default any that is not a goal.
        discount: γ in [0, 1).

    >>> gridworld(3, 4, goals={(0, 3): 1.0, (1, 3): -1.0}, step_reward=-0.04)
    MDP(12 states (2 terminal), 4 actions, 40 pairs, 148 transitions, discount 0.99, 0.0 MB)
    """
    shape = _shape(rows, columns)
    free = np.ones(shape, bool)
    if walls is not None:
        blocked = numbers(walls, "walls")
        if blocked.shape != shape or blocked.dtype.kind not in "biu":
            given = f"{blocked.dtype} {blocked.shape}"
            raise InvalidInput(f"walls must be a mask of shape {shape}, not {given}")
        free = blocked == 0
    grid = _Grid(free, free[:, 1:] & free[:, :-1], free[1:] & free[:-1])
    return _build(grid, goals, noise, step_reward, start, discount)


def maze(
    rows: int,
    columns: int | None = None,
    *,
    seed: int | np.random.Generator = 0,
    loops: float = 0.02,
    goals: Goals = None,
    noise: float = 0.2,
    step_reward: float = -1.0,
    start: Cell | None = None,
    discount: float = 0.99,
) -> MDP:
    """Build a random maze with walls between its cells, every cell reachable from every other.

    The passages are a random spanning tree of the grid (each wall gets a random weight and the
    lightest tree is opened), a perfect maze with exactly one path between two cells; then each
    wall left is opened with probability `loops`. All else is as in `gridworld`, and each of the
    rows·columns cells is a state.

    Args:
        rows: number of rows.
        columns: number of columns, by default as many as rows.
        seed: seed or generator of the randomness.
        loops: probability with which a wall of the perfect maze is opened, in [0, 1].
        goals, noise, step_reward, start, discount: as in `gridworld`.

    >>> maze(20, seed=1)
    MDP(400 states (1 terminal), 4 actions, 1596 pairs, ... transitions, discount 0.99, 0.1 MB)
    """
    shape = _shape(rows, columns)
    loops = checks.probability("loops", loops)
    rng = checks.generator(seed)
    grid = _Grid(np.ones(shape, bool), *_passages(rng, shape, loops))
    return _build(grid, goals, noise, step_reward, start, discount)


@dataclass(frozen=True)
class _Grid:
    """The free cells, and from which cells the moves right and down (and back) are possible."""

    free: Mask
    right: Mask
    down: Mask


def _shape(rows: int, columns: int | None) -> tuple[int, int]:
    rows = checks.count("rows", rows)
    shape = (rows, rows if columns is None else checks.count("columns", columns))
    if shape == (1, 1):
        raise InvalidInput("a grid needs at least two cells, not 1 x 1")
    return shape


def _passages(rng: np.random.Generator, shape: tuple[int, int], loops: float) -> tuple[Mask, Mask]:
    """The open walls, right and down: a random spanning tree and a share of the other walls."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    cell = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    one = np.concatenate([cell[:, :-1].ravel(), cell[:-1].ravel()])
    other = np.concatenate([cell[:, 1:].ravel(), cell[1:].ravel()])
    weight = rng.permutation(len(one)) + 1.0
    tree = minimum_spanning_tree(coo_array((weight, (one, other)), shape=(cell.size, cell.size)))
    opened = rng.random(len(one)) < loops
    opened[np.isin(weight, tree.data, assume_unique=True)] = True
    flat = shape[0] * (shape[1] - 1)
    return opened[:flat].reshape(shape[0], -1), opened[flat:].reshape(-1, shape[1])


def _build(
    grid: _Grid, goals: Goals, noise: float, step_reward: float, start: Cell | None, discount: float
) -> MDP:
    noise = checks.number("noise", noise, at_least=0, below=1)
    number = np.full(grid.free.shape, -1, np.int32)
    number[grid.free] = np.arange(np.count_nonzero(grid.free), dtype=np.int32)
    bonus = _goals(goals, number)
    states = int(number.max()) + 1
    terminal = np.zeros(states, bool)
    terminal[list(bonus)] = True
    if terminal.all():
        raise InvalidInput("goals cover every free cell: there is nothing to decide")
    first = None if start is None else _state(start, number, "start")
    if first in bonus:
        raise InvalidInput(f"start {start} is a goal, where an episode ends: choose another cell")
    moving = np.flatnonzero(~terminal).astype(np.int32)
    earned = np.zeros(states)
    earned[list(bonus)] = list(bonus.values())
    transitions, table = _rows(_targets(grid, number)[:, moving], moving, noise, terminal, earned)
    table += checks.number("step_reward", step_reward)
    table.flags.writeable = False  # so that the MDP need not copy it
    rewards = table.reshape(-1)
    pairs = np.empty((2, len(rewards)), np.int32)
    pairs.reshape(2, -1, 4)[0] = moving[:, None]
    pairs.reshape(2, -1, 4)[1] = np.arange(4)
    names = [f"{r},{c}" for r, c in np.argwhere(grid.free)] if states <= MAX_NAMED_STATES else None
    return MDP(
        transitions,
        rewards,
        discount,
        first,
        pairs=pairs.T,
        terminal=terminal,
        state_names=names,
        action_names=MOVES,
    )


def _state(cell: Cell, number: Ints, what: str) -> int:
    try:
        row, column = map(index, cell)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} {cell!r} is not a cell (row, column)") from None
    rows, columns = number.shape
    if not (0 <= row < rows and 0 <= column < columns):
        raise InvalidInput(f"{what} {cell} lies outside the {rows} x {columns} grid")
    if number[row, column] < 0:
        raise InvalidInput(f"{what} {cell} is a wall")
    return int(number[row, column])


def _goals(goals: Goals, number: Ints) -> dict[int, float]:
    """Return the reward of each goal state."""
    if number.max() < 0:
        raise InvalidInput("walls leave no free cell")
    if goals is None:
        return {int(number.max()): 0.0}
    try:
        cells = list(goals)
    except TypeError:
        raise InvalidInput(f"goals must be cells (row, column), not {goals!r}") from None
    if not cells:
        raise InvalidInput("goals is empty; leave it out for a goal in the last cell")
    rewards = [goals[cell] for cell in cells] if isinstance(goals, Mapping) else [0.0] * len(cells)
    return {
        _state(cell, number, "goal"): checks.number(f"reward of goal {cell}", reward)
        for cell, reward in zip(cells, rewards)
    }


def _targets(grid: _Grid, number: Ints) -> Ints:
    """Return the state in which each move ends, (4, S) in the order of `MOVES`."""
    up, right, down, left = targets = np.broadcast_to(number, (4, *number.shape)).copy()
    right[:, :-1][grid.right] = number[:, 1:][grid.right]
    left[:, 1:][grid.right] = number[:, :-1][grid.right]
    down[:-1][grid.down] = number[1:][grid.down]
    up[1:][grid.down] = number[:-1][grid.down]
    return targets[:, grid.free]


def _rows(
    targets: Ints, source: Ints, noise: float, terminal: Mask, earned: Floats
) -> tuple[csr_array, Floats]:
    """Return the transitions and the expected goal rewards, (states, 4), of the source states."""
    chances = np.full((4, 4), noise / 3.0)
    np.fill_diagonal(chances, 1.0 - noise)
    rewards = np.zeros((len(source), 4))
    for way, target in enumerate(targets):
        paid = np.flatnonzero(terminal[target])
        rewards[paid] += np.outer(earned[target[paid]], chances[:, way])
    return _transitions(targets, source, chances, len(terminal)), rewards


def _transitions(targets: Ints, source: Ints, chances: Floats, states: int) -> csr_array:
    """Write the rows of all pairs straight into CSR arrays, each row sorted.

    In the order of the cells the successors of a state are up < left < itself < right < down, and
    they are the same for its four actions.
    """
    stays = targets == source
    up, right, down, left = range(4)
    likely = chances > 0
    slots = [(targets[way], [way]) for way in (up, left, right, down)]
    slots.insert(2, (source, [up, right, down, left]))

    def occupied(ways: list[int], action: int) -> Mask:
        used = [way for way in ways if likely[action, way]]
        if len(ways) == 1:
            return ~stays[used[0]] if used else np.zeros(len(source), bool)
        stay: Mask = stays[used].any(axis=0)
        return stay

    lengths = np.zeros((len(source), 4), np.int8)
    for action in range(4):
        for _, ways in slots:
            lengths[:, action] += occupied(ways, action)
    indptr = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths.ravel(), out=indptr[1:])
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    indices = np.empty(indptr[-1], indptr.dtype)
    data = np.empty(indptr[-1])
    for action in range(4):
        position = indptr[action:-1:4].copy()
        for target, ways in slots:
            here = occupied(ways, action)
            at = position[here]
            indices[at] = target[here]
            if len(ways) == 1:
                data[at] = chances[action, ways[0]]
            else:
                data[at] = chances[action] @ stays[:, here]
            position += here
    return csr_array((data, indices, indptr), shape=(lengths.size, states))
