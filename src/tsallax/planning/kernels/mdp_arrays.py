"""An MDP as compiled code sees it, and the expectations over its transitions.

Everything is summed in a fixed order and without `fastmath`, so that a result does not depend on
the number of threads.  Index arrays come as unsigned views: Numba then omits its test for negative
indices, which makes a sweep 2.4 times faster.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tsallax.planning.kernels.compilation import njit

Floats = NDArray[np.float64]
Index = NDArray[Any]


class MDPArrays(NamedTuple):
    """Transitions in CSR form and rewards; pair i of state s has pointer[s] <= i < pointer[s+1]."""

    indptr: Index
    indices: Index
    data: Floats
    rewards: Floats
    pointer: Index
    discount: float


class Policy(NamedTuple):
    """A greedy policy: weights[i] of every pair, rewards[s] = r_pi(s) + alpha Omega(pi(s)).

    thresholds[s] is t of `regularized_maximum` (at q = 2: alpha (t - 1)); empty where none is
    searched for.
    """

    weights: Floats
    rewards: Floats
    thresholds: Floats


@njit(forceinline=True)
def expected_value(m: Any, i: Any, v: Any) -> Any:
    """sum_s' T_i(s') v(s') of pair i.

    One running sum on purpose: with two, LLVM vectorises the gather, and a sweep takes four times
    as long.
    """
    total = 0.0
    for k in range(m.indptr[i], m.indptr[i + 1]):
        total += m.data[k] * v[m.indices[k]]
    return total


@njit(forceinline=True)
def row_values(m: Any, s: Any, v: Any, row: Any) -> Any:
    """row = r(s, .) + gamma * sum_s' T(s'|s, .) v(s'); returns its maximum."""
    first = m.pointer[s]
    top = -math.inf
    for i in range(first, m.pointer[s + 1]):
        value = m.rewards[i] + m.discount * expected_value(m, i, v)
        row[i - first] = value
        top = top if value <= top else value
    return top


@njit(forceinline=True)
def best_action(m: Any, s: Any, v: Any) -> Any:
    """(max, pair) of the largest action value, the first if several are."""
    first = m.pointer[s]
    best, at = -math.inf, first
    for i in range(first, m.pointer[s + 1]):
        total = m.rewards[i] + m.discount * expected_value(m, i, v)
        at = at if total <= best else i
        best = best if total <= best else total
    return best, at


@njit()
def action_values(m: Any, v: Any, out: Any) -> None:
    """out[i] = r_i + gamma * sum_s' T_i(s') v(s') for every pair i: Q from V."""
    for s in range(len(m.pointer) - 1):
        row_values(m, s, v, out[m.pointer[s] : m.pointer[s + 1]])
