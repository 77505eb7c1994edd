"""Simulated episodes of an MDP, compiled.

Every episode has random numbers of its own, a stream of xoshiro256++ (Blackman and Vigna 2019),
so that results do not depend on the number of threads or on how steps are divided into calls.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tsallax.planning.kernels.compilation import njit
from tsallax.planning.kernels.mdp_arrays import Floats

_ONE = np.uint64(1)
_ALWAYS = 2.0  # above all random numbers
ENDED = -1


class Episodes(NamedTuple):
    """Episodes in progress: entry i of each array belongs to episode i."""

    random: NDArray[np.uint64]  # (n, 4), the states of the generators
    state: NDArray[np.int64]  # ENDED after an episode that ended on a pair
    running: NDArray[np.bool_]
    length: NDArray[np.int64]
    returns: Floats
    discounted: Floats
    weight: Floats  # gamma^length


class StepRecord(NamedTuple):
    """The steps of all episodes; those of episode i start at offsets[i]. May be empty."""

    offsets: NDArray[np.int64]
    states: NDArray[np.int32]
    actions: NDArray[np.int32]
    rewards: Floats


@njit()
def _rotated(x: Any, k: Any) -> Any:
    return (x << k) | (x >> (np.uint64(64) - k))


@njit()
def next_uniform(generator: Any) -> Any:
    """The next number, uniform on [0, 1), of a generator's state (4,)."""
    a, b, c, d = generator[0], generator[1], generator[2], generator[3]
    result = _rotated(a + d, np.uint64(23)) + a
    t = b << np.uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= t
    d = _rotated(d, np.uint64(45))
    generator[0], generator[1], generator[2], generator[3] = a, b, c, d
    return (result >> np.uint64(11)) * 2.0**-53


@njit()
def cumulative(pointer: Any, weights: Any, out: Any) -> None:
    """Cumulative sums of weights[pointer[s]:pointer[s+1]], so that `draw` finds no weight of 0."""
    for s in range(len(pointer) - 1):
        total = 0.0
        last = pointer[s]
        for i in range(pointer[s], pointer[s + 1]):
            total += weights[i]
            out[i] = total
            if weights[i] > 0.0:
                last = i
        for i in range(last, pointer[s + 1]):
            out[i] = _ALWAYS


@njit()
def draw(sums: Any, first: Any, last: Any, u: Any) -> Any:
    """The first i in first..last - 1 with u < sums[i], by bisection; last - 1 if none has."""
    low, high = np.uint64(first), np.uint64(last) - _ONE
    while low < high:
        middle = (low + high) >> _ONE
        if u < sums[middle]:
            high = middle
        else:
            low = middle + _ONE
    return low


@njit()
def _successor(m: Any, i: Any, u: Any) -> Any:
    """The successor of pair i at u, from 0 to the sum of its probabilities."""
    first, last = m.indptr[i], m.indptr[i + _ONE]
    if first == last:
        return ENDED
    total = 0.0
    for k in range(first, last):
        total += m.data[k]
        if u < total:
            return np.int64(m.indices[k])
    return np.int64(m.indices[last - _ONE])


@njit()
def _start_range(pointer: Any, sums: Any, begin: Any, end: Any, e: Any) -> None:
    for i in range(begin, end):
        s = draw(sums, 0, len(sums), next_uniform(e.random[i]))
        e.state[i] = s
        e.running[i] = pointer[s] < pointer[s + _ONE]
        e.length[i], e.returns[i], e.discounted[i], e.weight[i] = 0, 0.0, 0.0, 1.0


@njit()
def _advance_range(
    m: Any, sums: Any, termination: Any, action_of: Any, steps: Any, begin: Any, end: Any, e: Any,
    record: Any,
) -> None:  # fmt: skip
    recorded = len(record.offsets) > 0
    ends = len(termination) > 0
    for j in range(begin, end):
        if not e.running[j]:
            continue
        s, length, weight = np.uint64(e.state[j]), e.length[j], e.weight[j]
        total, discounted = e.returns[j], e.discounted[j]
        generator = e.random[j]
        for _ in range(steps):
            i = draw(sums, m.pointer[s], m.pointer[s + _ONE], next_uniform(generator))
            reward = m.rewards[i]
            if recorded:
                at = record.offsets[j] + length
                record.states[at] = s
                record.actions[at] = action_of[i]
                record.rewards[at] = reward
            total += reward
            discounted += weight * reward
            weight *= m.discount
            length += 1
            u = next_uniform(generator)
            stop = termination[i] if ends else 0.0
            after = ENDED if u < stop else _successor(m, i, u - stop)
            e.state[j] = after
            if after == ENDED:
                e.running[j] = False
                break
            s = np.uint64(after)
            if m.pointer[s] == m.pointer[s + _ONE]:
                e.running[j] = False
                break
        e.length[j], e.weight[j] = length, weight
        e.returns[j], e.discounted[j] = total, discounted


@njit(parallel=True)
def start_episodes(pointer: Any, sums: Any, blocks: Any, e: Any) -> None:
    """Draw the initial state of every episode; `sums` are those of the initial distribution."""
    n = len(e.state)
    for b in prange(blocks):
        _start_range(pointer, sums, b * n // blocks, (b + 1) * n // blocks, e)


@njit(parallel=True)
def advance_episodes(
    m: Any, sums: Any, termination: Any, action_of: Any, steps: Any, blocks: Any, e: Any,
    record: Any,
) -> None:  # fmt: skip
    """Take up to `steps` steps in every episode that is running.

    `sums` are those of the policy; `termination` is empty where no episode ends on a pair.
    """
    n = len(e.state)
    for b in prange(blocks):
        _advance_range(
            m, sums, termination, action_of, steps, b * n // blocks, (b + 1) * n // blocks, e,
            record,
        )  # fmt: skip
