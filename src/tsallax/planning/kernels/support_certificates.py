"""Which actions are proven to be in the optimal policy's support, or out of it (compiled)."""

import math
from typing import Any

import numpy as np

from tsallax.planning.kernels.compilation import njit
from tsallax.planning.kernels.row import regularized_maximum, sparse_threshold
from tsallax.planning.kernels.vectors import padded_length


@njit()
def certify_support(
    pointer: Any, alpha: Any, q: Any, width: Any, low: Any, high: Any, verdict: Any
) -> None:
    """verdict = +1 where low <= Q* <= high proves an action in the support, -1 where out of it.

    The pairs of state s are pointer[s] to pointer[s+1] - 1. alpha and q may be None as in
    `sweep_range`; q is not 1 or less, where all are in.
    """
    if alpha is None:
        _certify_best(pointer, low, high, verdict)
    else:
        _certify_threshold(pointer, alpha, q, width, low, high, verdict)


@njit()
def _certify_best(pointer: Any, low: Any, high: Any, verdict: Any) -> None:
    """`certify_support` of the hard operator: in are the best actions."""
    for s in range(len(pointer) - 1):
        first, last = pointer[s], pointer[s + 1]
        if first == last:
            continue
        out = low[first:last].max()
        best = first + np.uint64(high[first:last].argmax())
        second = -math.inf
        for i in range(first, last):
            if i != best:
                second = max(second, high[i])
        for i in range(first, last):
            rest = second if i == best else high[best]
            verdict[i] = 1 if low[i] >= rest else 0
            if high[i] < out:
                verdict[i] = -1


@njit()
def _certify_threshold(
    pointer: Any, alpha: Any, q: Any, width: Any, low: Any, high: Any, verdict: Any
) -> None:
    p = np.empty(padded_length(width))
    at = np.empty(width, np.uint32)
    for s in range(len(pointer) - 1):
        first, last = pointer[s], pointer[s + 1]
        if last - first == 1:
            verdict[first] = 1
            continue
        if first == last:
            continue
        below, slack = _threshold(low[first:last], alpha, q, p, at)
        out = below - slack
        above, slack = _threshold(high[first:last], alpha, q, p, at)
        inside = above + slack
        for i in range(first, last):
            if high[i] <= out:
                verdict[i] = -1
            elif low[i] > inside:
                verdict[i] = 1


@njit()
def _threshold(row: Any, alpha: Any, q: Any, p: Any, at: Any) -> Any:
    """(what an action must be worth to be in the support, its rounding)."""
    n = np.uint64(len(row))
    top = row.max()
    rounding = 1e-15 * (n + 8.0) * (abs(top) + alpha) + 2.0**-1050 * (n + 8.0)
    if q is None:
        return top + sparse_threshold(row, n, top, alpha, -alpha), rounding
    t, _, _, _ = regularized_maximum(row, n, top, alpha, q, 0.0, p, at)
    return top + alpha * (t - 1.0 / (q - 1.0)), rounding
