"""Tabular Q-learning, compiled: draw an action, draw a successor, update one entry of Q.

One step from the pair i = (s, a) to s', with n the earlier visits of that pair (eq. of sparse
Q-learning, for every regulariser):

    Q_i <- Q_i + eta(n) [r_i + gamma value(Q(s', .)) - Q_i],   eta(n) = 1 / (1 + scale n)^omega.

Random numbers are passed in, uniform on [0, 1), so that a run does not depend on how its steps
are divided into calls. The pairs of state s are pointer[s], ..., pointer[s+1] - 1. A pair that its
state does not allow has Q = -inf, and is neither drawn nor part of a maximum.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tsallax.planning.kernels.compilation import njit
from tsallax.planning.kernels.episodes import draw
from tsallax.planning.kernels.row import regularized_maximum

_ONE = np.uint64(1)
_NONE = np.uint64(0)
Floats = NDArray[np.float64]


class QTable(NamedTuple):
    """Q and the number of visits of every pair; `p` and `at` are scratch space for one row."""

    pointer: NDArray[np.uint64]
    q: Floats
    visits: NDArray[np.int64]
    p: Floats
    at: NDArray[np.uint32]


class Rule(NamedTuple):
    """The parameters: alpha and index q of the regularisers of update and exploration,
    the share of uniform actions, gamma, and the two parameters of eta."""

    alpha: float
    q: float
    explore_alpha: float
    explore_q: float
    epsilon: float
    discount: float
    scale: float
    omega: float


class SamplingArrays(NamedTuple):
    """An MDP to sample: `chances` and `starts` are cumulative, along each row and the states."""

    indptr: NDArray[np.uint64]
    indices: NDArray[Any]
    chances: Floats
    rewards: Floats
    termination: Floats
    starts: Floats
    limit: int


@njit()
def cumulative_rows(indptr: Any, data: Any, out: Any) -> None:
    """Cumulative sums of each row, for `draw`."""
    for i in range(len(indptr) - 1):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k]
            out[k] = total


@njit()
def _greedy(row: Any, u: Any) -> Any:
    """The position of a maximum, drawn uniformly from all maxima."""
    top, ties = row[0], 0
    for x in row:
        if x > top:
            top, ties = x, 1
        elif x == top:
            ties += 1
    left = min(int(u * ties), ties - 1)  # u may have been rounded to 1
    for i in range(len(row)):
        if row[i] == top:
            if left == 0:
                return np.uint64(i)
            left -= 1
    return _NONE


@njit()
def _uniform(row: Any, u: Any) -> Any:
    """The position of an entry above -inf, drawn uniformly from all of them."""
    n = 0
    for x in row:
        n += x > -np.inf
    left = min(int(u * n), n - 1)
    if n == len(row):
        return np.uint64(left)
    for i in range(len(row)):
        if row[i] > -np.inf:
            if left == 0:
                return np.uint64(i)
            left -= 1
    return _NONE


@njit()
def choose(t: Any, rule: Any, s: Any, u: Any) -> Any:
    """Draw a pair of state s: uniformly with probability epsilon, else from the policy."""
    state = np.uint64(s)
    first, last = t.pointer[state], t.pointer[state + _ONE]
    n = last - first
    row = t.q[first:last]
    if u < rule.epsilon:
        return first + _uniform(row, u / rule.epsilon)
    u = (u - rule.epsilon) / (1.0 - rule.epsilon)
    if rule.explore_alpha == 0.0:
        return first + _greedy(row, u)
    alpha, q = rule.explore_alpha, rule.explore_q
    top = row.max()
    _, _, _, k = regularized_maximum(row, n, top, alpha, q, 0.0, t.p, t.at)
    x = u
    for i in range(k - _ONE):
        x -= t.p[i]
        if x < 0.0:
            return first + np.uint64(t.at[i])
    return first + np.uint64(t.at[k - _ONE])


@njit()
def _value(t: Any, rule: Any, s: Any) -> Any:
    """The regularised maximum of Q(s, .), 0 for a terminal state."""
    first, last = t.pointer[s], t.pointer[s + _ONE]
    if first == last:
        return 0.0
    row = t.q[first:last]
    top = row.max()
    return regularized_maximum(row, last - first, top, rule.alpha, rule.q, 0.0, t.p, t.at)[1]


@njit()
def update(t: Any, rule: Any, i: Any, reward: Any, s: Any, ended: Any) -> None:
    """Move Q_i towards reward + gamma value(Q(s, .)), towards the reward alone if `ended`."""
    pair = np.uint64(i)
    target = reward
    if not ended:
        target += rule.discount * _value(t, rule, np.uint64(s))
    base = 1.0 + rule.scale * t.visits[pair]
    eta = 1.0 / base if rule.omega == 1.0 else base**-rule.omega
    t.q[pair] += eta * (target - t.q[pair])
    t.visits[pair] += 1


@njit()
def simulate(
    m: Any, t: Any, rule: Any, uniforms: Any, place: Any, total: Any, returns: Any, lengths: Any
) -> Any:
    """Take a step for each row of `uniforms`; return the number of episodes that ended.

    place = [state, steps of this episode] and total = [its return so far] are updated in place;
    an episode of no steps has yet to draw its first state. Returns and lengths of the episodes
    that end are written into `returns` and `lengths`.
    """
    episodes = 0
    state, length, earned = np.uint64(place[0]), place[1], total[0]
    for j in range(len(uniforms)):
        if length == 0:
            state = draw(m.starts, _NONE, np.uint64(len(m.starts)), uniforms[j, 2])
        i = choose(t, rule, state, uniforms[j, 0])
        first, last = m.indptr[i], m.indptr[i + _ONE]
        stays = m.chances[last - _ONE] if last > first else 0.0
        x = uniforms[j, 1] * (stays + m.termination[i])
        ended = x >= stays and m.termination[i] > 0.0
        if not ended:
            state = np.uint64(m.indices[draw(m.chances, first, last, x)])
            ended = t.pointer[state] == t.pointer[state + _ONE]
        update(t, rule, i, m.rewards[i], state, ended)
        length += 1
        earned += m.rewards[i]
        if ended or length >= m.limit:
            returns[episodes], lengths[episodes] = earned, length
            episodes += 1
            length, earned = 0, 0.0
    place[0], place[1], total[0] = state, length, earned
    return episodes


@njit()
def values_and_policy(t: Any, rule: Any, value: Any, policy: Any) -> None:
    """Write value(Q(s, .)) of every state and policy(Q(s, .)) of every pair into zeros."""
    for s in range(len(value)):
        state = np.uint64(s)
        first, last = t.pointer[state], t.pointer[state + _ONE]
        if first == last:
            continue
        n = last - first
        row = t.q[first:last]
        top = row.max()
        _, value[s], _, k = regularized_maximum(row, n, top, rule.alpha, rule.q, 0.0, t.p, t.at)
        for i in range(k):
            policy[first + np.uint64(t.at[i])] = t.p[i]
