"""What the explorer shows: solutions of one MDP for many alphas and several q, as small integers.

Numbers are stored in the digits in which they are shown, and so that what is shown is true:

    lower   floor(10^d lower),  so that the enclosure shown contains the one that was proven
    upper   ceil(10^d upper)
    gap     ceil(10^e gap)
    policy  0 where an action has probability exactly zero, 1 where it has less than 0.05 %,
            and else 1 + round(1000 p)

The first setting is hard; then come all alphas of the first q, all of the second, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.planning.alpha_continuation import PathPoint, continued_points, point_solver
from tsallax.planning.evaluation import gap_certificate
from tsallax.planning.forms import Floats
from tsallax.planning.mdp import MDP
from tsallax.planning.solution import NotConverged, Solution
from tsallax.planning.solver import solve
from tsallax.regularizer import Hard, Tsallis

MAX_STATES = 10_000
MAX_ACTIONS = 65_535
MAX_TRANSITIONS = 5_000_000
MAX_PROBABILITIES = 20_000_000
"""States, actions, transitions, and pairs times settings of a model that one page can show."""
RELATIVE_TOLERANCE = 1e-7
"""The largest error of a value, in units of the largest value of the hard MDP, by default."""
MAX_RELATIVE_TOLERANCE = 1e-2
"""What that is raised to, at most, where float64 proves no less."""
LEAST_TOLERANCE = 1e-12
"""The largest error of a hard value, where all are zero."""
DEFAULT_QS = (1.0, 1.5, 2.0, 3.0)
N_ALPHAS = 12


@dataclass(frozen=True, eq=False)
class Exploration:
    """The solutions of all settings; row i of an array belongs to setting i.

    Attributes:
        alphas, qs: the coefficients and the entropic indices, in increasing order.
        decimals: d, the digits after the point of values; negative where values are beyond 2^30.
        gap_decimals: e, those of gaps.
        lower, upper, gaps: integers, shape (settings, S).
        codes: of the policy, shape (settings, pairs).
    """

    mdp: MDP
    alphas: tuple[float, ...]
    qs: tuple[float, ...]
    tolerance: float
    decimals: int
    gap_decimals: int
    lower: NDArray[np.int32]
    upper: NDArray[np.int32]
    gaps: NDArray[np.int32]
    codes: NDArray[np.uint16]


def check_size(states: int, actions: int, transitions: int, probabilities: int) -> None:
    """Refuse a model that is too large for one page."""
    for number, limit, what in (
        (states, MAX_STATES, "states"),
        (actions, MAX_ACTIONS, "actions"),
        (transitions, MAX_TRANSITIONS, "transitions"),
        (probabilities, MAX_PROBABILITIES, "pairs times settings"),
    ):
        if number > limit:
            raise InvalidInput(
                f"has {number:,} {what}, and a page shows at most {limit:,}: make a smaller "
                "model or fewer settings; solve and solve_path have no such limit"
            )


def solve_settings(
    mdp: MDP,
    alphas: Sequence[float] | None,
    qs: Sequence[float],
    tolerance: float | None,
    report: Callable[[float], None],
) -> Exploration:
    """Solve the hard MDP, and the regularised one for all alphas and q, which are increasing.

    Without a tolerance, it is the smallest that can be proven, by powers of ten.
    """
    if tolerance is not None:
        hard = solve(mdp, Hard(), tolerance, progress=False)
        return _solve_all(mdp, hard, alphas, qs, tolerance, report)
    relative = RELATIVE_TOLERANCE
    while True:
        try:
            hard = solve(mdp, Hard(), LEAST_TOLERANCE, relative_tolerance=relative, progress=False)
            largest = max(float(np.abs(hard.value).max()), _spread(mdp, hard.pair_q))
            return _solve_all(mdp, hard, alphas, qs, relative * largest, report)
        except NotConverged:
            relative *= 10.0
            if relative > MAX_RELATIVE_TOLERANCE:
                raise


def _solve_all(
    mdp: MDP,
    hard: Solution,
    alphas: Sequence[float] | None,
    qs: Sequence[float],
    tolerance: float,
    report: Callable[[float], None],
) -> Exploration:
    """The hard solution, and those of all alphas and q."""
    grid = default_alphas(_spread(mdp, hard.pair_q)) if alphas is None else alphas
    n = 1 + len(grid) * len(qs)
    lower, upper, gaps = (np.empty((n, mdp.n_states)) for _ in range(3))
    codes = np.empty((n, mdp.n_pairs), np.uint16)
    lower[0], upper[0], gaps[0] = hard.lower, hard.upper, gap_certificate(mdp, hard)
    codes[0] = policy_codes(hard.pair_policy)
    report(1 / n)
    solve_at = point_solver(mdp, tolerance, RELATIVE_TOLERANCE)
    i = 1
    for q in qs:
        for point in continued_points(solve_at, [Tsallis(alpha, q) for alpha in grid]):
            assert isinstance(point, PathPoint)
            lower[i], upper[i], gaps[i] = point.lower, point.upper, point.gap
            codes[i] = policy_codes(point.pair_policy, sparse=q > 1.0)
            i += 1
            report(i / n)
    largest = float(max(np.abs(lower).max(), np.abs(upper).max(), gaps.max()))
    wanted = max(0, math.ceil(-math.log10(tolerance)))
    decimals = min(wanted, math.floor(math.log10(2.0**30 / max(largest, 1e-9))))
    gap_decimals = min(decimals, max(0, decimals - 2))
    return Exploration(
        mdp=mdp,
        alphas=tuple(grid),
        qs=tuple(qs),
        tolerance=tolerance,
        decimals=decimals,
        gap_decimals=gap_decimals,
        lower=_rounded(lower, decimals, -1, mdp),
        upper=_rounded(upper, decimals, +1, mdp),
        gaps=_rounded(gaps, gap_decimals, +1, mdp),
        codes=codes,
    )


def default_alphas(spread: float) -> list[float]:
    """Twelve round numbers, from a hundredth of the spread of action values to fifty times it.

    >>> default_alphas(1.25)
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
    """
    first = math.floor(math.log10(spread)) - 2
    return [float(f"{(1, 2, 5)[i % 3]}e{first + i // 3}") for i in range(N_ALPHAS)]


def policy_codes(policy: Floats, sparse: bool = True) -> NDArray[np.uint16]:
    """What is shown of probabilities: 0 for zero, 1 for below 0.05 %, else 1 + round(1000 p).

    A policy that is not sparse has no zeros, only probabilities too small for float64.

    >>> policy_codes(np.array([0.0, 1e-9, 0.25, 1.0]))
    array([   0,    1,  251, 1001], dtype=uint16)
    """
    codes = 1 + np.rint(1000.0 * policy)
    return np.where((policy > 0.0) | (not sparse), codes, 0).astype(np.uint16)


def _spread(mdp: MDP, pair_q: Floats) -> float:
    """The median, over states with a choice, of the best action value less the worst."""
    choice = np.diff(mdp.pointer) > 1
    starts = mdp.pointer[:-1][~mdp.terminal]
    spread = np.maximum.reduceat(pair_q, starts) - np.minimum.reduceat(pair_q, starts)
    spread = spread[choice[~mdp.terminal]]
    middle = float(np.median(spread)) if spread.size else 0.0
    return middle or (float(spread.max()) if spread.size else 0.0) or 1.0


def _rounded(values: Floats, decimals: int, side: int, mdp: MDP) -> NDArray[Any]:
    """The integers next to 10^decimals values, on the safe side; 0 in terminal states."""
    scaled = np.nextafter(values * 10.0**decimals, side * math.inf)
    outward = np.floor(scaled) if side < 0 else np.ceil(scaled)
    return np.where(mdp.terminal, 0, outward).astype(np.int32)
