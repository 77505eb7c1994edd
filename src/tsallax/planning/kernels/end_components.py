"""The states of an MDP from which an episode can be kept from ending for ever (compiled)."""

from typing import Any

import numpy as np

from tsallax.planning.kernels.compilation import njit

_ONE = np.uint64(1)


@njit()
def endless_pairs(m: Any, termination: Any) -> Any:
    """A mask of the pairs that lead only to states that have such a pair, the largest such set.

    The union of all end components: pairs that may end the episode, or lead to a state without a
    pair left, are removed until none is left to remove. `termination` is empty where no pair ends.
    """
    states, pairs = len(m.pointer) - 1, len(m.rewards)
    start = np.zeros(states + 1, np.int64)  # pairs that lead to state s, as a CSR
    for i in range(pairs):
        for k in range(m.indptr[i], m.indptr[i + 1]):
            start[m.indices[k] + _ONE] += 1
    for s in range(states):
        start[s + 1] += start[s]
    filled = start[:-1].copy()
    into = np.empty(start[states], np.int64)
    owner = np.empty(pairs, np.int64)
    for s in range(states):
        for i in range(m.pointer[s], m.pointer[s + 1]):
            owner[i] = s
            for k in range(m.indptr[i], m.indptr[i + 1]):
                j = m.indices[k]
                into[filled[j]] = i
                filled[j] += 1
    alive = np.ones(pairs, np.bool_)
    left = np.empty(states, np.int64)
    queue = np.empty(states, np.int64)
    size = 0
    for s in range(states):
        left[s] = m.pointer[s + 1] - m.pointer[s]
        for i in range(m.pointer[s], m.pointer[s + 1]):
            ends = len(termination) > 0 and termination[i] > 0.0
            if ends or m.indptr[i] == m.indptr[i + 1]:
                alive[i] = False
                left[s] -= 1
        if left[s] == 0:
            queue[size] = s
            size += 1
    done = 0
    while done < size:
        j = queue[done]
        done += 1
        for k in range(start[j], start[j + 1]):
            i = into[k]
            if alive[i]:
                alive[i] = False
                s = owner[i]
                left[s] -= 1
                if left[s] == 0:
                    queue[size] = s
                    size += 1
    return alive
