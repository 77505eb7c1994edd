"""The states in breadth-first order along the transitions, against their direction (compiled)."""

from typing import Any

import numpy as np

from tsallax.planning.kernels.compilation import njit


@njit()
def breadth_first_order(m: Any, targets: Any) -> Any:
    """(order, steps): the states by the least number of transitions that lead to a target.

    States that lead to none come last, with one step more than all others.
    """
    states = len(m.pointer) - 1
    seen = np.full(states, -1, np.int64)
    start = np.zeros(states + 1, np.int64)
    for s in range(states):
        for k in range(m.indptr[m.pointer[s]], m.indptr[m.pointer[s + 1]]):
            j = m.indices[k]
            if seen[j] != s:
                seen[j] = s
                start[j + 1] += 1
    for s in range(states):
        start[s + 1] += start[s]
    filled = start[:-1].copy()
    before = np.empty(start[states], np.uint32)
    seen[:] = -1
    for s in range(states):
        for k in range(m.indptr[m.pointer[s]], m.indptr[m.pointer[s + 1]]):
            j = m.indices[k]
            if seen[j] != s:
                seen[j] = s
                before[filled[j]] = s
                filled[j] += 1
    order = np.empty(states, np.uint32)
    steps = np.full(states, -1, np.int32)
    size = 0
    for s in targets:
        order[size] = s
        steps[s] = 0
        size += 1
    head = 0
    while head < size:
        here = np.int64(order[head])
        head += 1
        for k in range(start[here], start[here + 1]):
            j = before[k]
            if steps[j] < 0:
                steps[j] = steps[here] + 1
                order[size] = j
                size += 1
    last = 0 if size == 0 else steps[order[size - 1]] + 1
    for s in range(states):
        if steps[s] < 0:
            steps[s] = last
            order[size] = s
            size += 1
    return order, steps
