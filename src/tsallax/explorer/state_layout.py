"""Where the states of an MDP lie on a map: given by the user, or read off the states' names.

A position is (x, y), with y upwards, or (x, y, layer), where one layer is shown at a time.  A state
that is named by its coordinates has a position: "(0.2, -1)" is a point, "(0.2, -1, 3.14)" a point
in a layer, and "4,2" the cell in row 4 and column 2.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.planning.forms import Floats, numbers
from tsallax.planning.names import Index, in_order_of_names

MAX_POSITION = 1e30
"""The largest coordinate: the page holds them in float32."""
CELL = re.compile(r"(\d+),(\d+)")


def read_positions(
    positions: ArrayLike, n_states: int, names: tuple[str, ...] | None = None
) -> Floats:
    """Positions as given by the user, of shape (S, 2) or (S, 3); `names` are those of the states.

    >>> read_positions([(0, 0), (1, 0)], 2).shape
    (2, 2)
    """
    axes = Index("state", n_states, names), Index("coordinate", 0, None)
    positions = in_order_of_names(positions, "positions", axes)
    given = np.array(numbers(positions, "positions"), np.float64)
    if given.ndim != 2 or len(given) != n_states or given.shape[1] not in (2, 3):
        raise InvalidInput(
            f"positions must have shape ({n_states}, 2) or ({n_states}, 3), not {given.shape}"
        )
    if not (np.abs(given) <= MAX_POSITION).all():
        raise InvalidInput(f"positions must be finite numbers, up to {MAX_POSITION:g}")
    return given


def named_positions(names: Sequence[str] | None) -> Floats | None:
    """The positions of states that are named by their coordinates; None where some are not.

    >>> named_positions(["(0, -1)", "(0.5, 1)"])
    array([[ 0. , -1. ],
           [ 0.5,  1. ]])
    >>> named_positions(["0,0", "2,1"])
    array([[ 0.,  0.],
           [ 1., -2.]])
    >>> named_positions(["works", "broken"])
    """
    if not names:
        return None
    cells = [CELL.fullmatch(name) for name in names]
    if all(cells):
        return np.array([(float(cell[2]), 0.0 - float(cell[1])) for cell in cells if cell])
    points = [_coordinates(name) for name in names]
    lengths = {len(point) for point in points}
    return np.array(points) if lengths in ({2}, {3}) else None


def _coordinates(name: str) -> tuple[float, ...]:
    if not (name.startswith("(") and name.endswith(")")):
        return ()
    try:
        point = tuple(float(part) for part in name[1:-1].split(","))
    except ValueError:
        return ()
    return point if np.isfinite(point).all() else ()


def widened(positions: Floats) -> Floats:
    """Positions with the shorter side of the map stretched to half the longer, if it is below.

    For coordinates x and y that have no unit in common.

    >>> widened(np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]]))[-1]
    array([9. , 4.5])
    """
    sides = np.ptp(positions[:, :2], axis=0)
    if not sides.all():
        return positions
    scale = np.ones(positions.shape[1])
    scale[:2] = np.maximum(0.5 * sides.max() / sides, 1.0)
    wide: Floats = positions * scale
    return wide


def load_positions(path: str | PathLike[str]) -> Any:
    """The table of positions in a file: .npy, or text with one line for each state.

    >>> load_positions("absent.csv")
    Traceback (most recent call last):
    tsallax.errors.InvalidInput: absent.csv: no such file
    """
    file = checks.input_file(path)
    try:
        if file.suffix == ".npy":
            return np.load(file, allow_pickle=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of a file without lines
            return np.loadtxt(file, delimiter=",", ndmin=2)
    except (UserWarning, ValueError, OSError, UnicodeDecodeError, EOFError, MemoryError):
        raise InvalidInput(
            "must hold one line x,y or x,y,layer for each state and no header, "
            "or be a NumPy file .npy",
            source=file,
        ) from None
