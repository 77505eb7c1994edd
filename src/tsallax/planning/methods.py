"""How a solver gets from one value to the next: a method is a function (U, certificate) -> v.

All methods see the same certificate, made by one sweep at the current v: Uv, the greedy policy and
the enclosure of V*.  They differ in how far they follow that policy before they look again.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tsallax import memory
from tsallax.planning.bellman import Bellman, Certificate, Floats
from tsallax.planning.kernels import sweep
from tsallax.planning.kernels.sparse_linear import largest
from tsallax.planning.linear_systems import PolicySystem, permuted, policy_matrix

SINGLE = 1e-4
"""1 - gamma above which Newton's steps are made in single precision, with up to 100 actions."""

FURTHEST = 64
"""How many sweeps at most a policy is followed before it is improved."""

NEWS = 4
"""How many policies are improved before it is asked what came of following one."""

NEWTON = 300.0
"""How many sweeps of a policy it takes to make Newton's steps worth their while."""

Step = Callable[[Certificate], Floats]


def value_iteration(bellman: Bellman, tolerance: float) -> Step:
    """The paper's sparse value iteration, x <- Ux; a sweep is all the work."""
    return lambda c: c.updated


class Following:
    """Follow the greedy policy for some sweeps, x <- r_pi + gamma T_pi x, then improve it.

    How many, `least` or more, is learned on the way.  More while the error falls fast, and while
    it is the policy's own value that is missing: where the change by a sweep of U is hardly less
    constant than the last by the policy.  Fewer for good elsewhere, since following a poor policy
    far is worse than not following it.  The first sweeps but spread the news, and tell little; the
    first policy sees one reward ahead, and traces of it in x can take long to fade: it is not
    followed.  The sweeps also stop when the change has become constant, because the enclosure then
    tells the rest.
    """

    def __init__(self, bellman: Bellman, tolerance: float, least: int = 8) -> None:
        self.bellman, self.tolerance, self.least = bellman, tolerance, least
        self.sweeps_left = 0.0
        """About how often the policy has to be followed, where its value is all that is missing."""
        self._most, self._cap = least, FURTHEST
        self._error = math.inf
        self._looks = self._times = 0
        self._before = self._after = math.nan

    def look(self, c: Certificate) -> None:
        """Take note of what came of following the last policy."""
        span = c.change[1] - c.change[0]
        fast = c.error < 0.5 * self._error
        followed = self._times == self._most and self._looks >= NEWS
        good = followed and span <= 2.0 * self._after
        self.sweeps_left = 0.0
        if good:
            self.sweeps_left = _effort(self._before, self._after, self._times, c, self.tolerance)
            self._cap = min(2 * self._cap, FURTHEST)
        elif not fast and self._looks:
            self._cap //= 2
        if self._looks:
            most = 2 * self._most + 1 if good or fast else self._most // 2
            self._most = max(min(most, self._cap), self.least)
        self._error, self._before = c.error, span
        self._looks += 1

    def step(self, c: Certificate) -> Floats:
        """The next v."""
        if self._looks == 1:
            return c.updated
        stop = max(1e-4 * self._before, 0.1 * _gap(self.bellman, self.tolerance))
        start = c.updated if self.bellman.ends else c.middle
        v, self._times, self._after = self.bellman.follow(start, self._most, stop)
        return v


def modified_policy_iteration(bellman: Bellman, tolerance: float) -> Step:
    """Follow each greedy policy for some sweeps, see `Following`."""
    following = Following(bellman, tolerance)

    def step(c: Certificate) -> Floats:
        following.look(c)
        return following.step(c)

    return step


def policy_iteration(bellman: Bellman, tolerance: float) -> Step:
    """Newton's method: solve v = r_pi + gamma T_pi v for the greedy policy, then improve it.

    Newton is monotone from below and quick once the policy is right in most states, but from
    nothing it extends a good policy only a few steps at a time.  So it starts from the policy that
    heads for the best states, and numbers the states by their distance to them for the linear
    solver.  The hard operator has kinks, at which Newton dawdles: one Gauss-Seidel sweep of U in
    the same order spreads the news before it looks again.  What is missing of the value is solved
    for in single precision, unless the discount is so near to one that it would be lost.
    """
    order: NDArray[np.uint32] | None = None
    single = 1.0 - bellman.mdp.discount > SINGLE * max(1.0, bellman.width / 100)
    precision = np.float32 if single else np.float64

    def step(c: Certificate) -> Floats:
        nonlocal order
        gap = _gap(bellman, tolerance)
        guess = c.updated
        if order is None:
            low, high = c.updated.min(), c.updated.max()
            lost = c.error > 1e-3 * (high - low)
            if lost:
                bellman.forget()
            near = np.flatnonzero(c.updated >= high - 0.01 * (high - low))
            nearest, steps = sweep.reach(bellman.arrays, near)
            order = nearest[::-1].copy()
            if lost:
                guess = c.shifted(c.low)
                scale = 100.0 * (np.ptp(bellman.mdp.rewards) + bellman.alpha + 1.0)
                bellman.certify(-scale * steps)
            del near, nearest, steps
        size = max(abs(c.change[0]), abs(c.change[1]))
        missing, _, _ = bellman.follow(guess, 1, math.inf)
        missing -= guess
        matrix = policy_matrix(bellman.arrays, bellman.policy.weight, precision)
        bellman.forget()
        matrix = permuted(matrix, order)
        memory.trim(matrix[2].nbytes)
        system = PolicySystem(matrix, order)
        v, left = system.solve(missing, max(1e-2 * size, 0.1 * gap))
        if left > 0.5 * largest(missing):
            v = system.solve_exactly(missing)
        v += guess
        if guess is not c.updated:
            np.maximum(v, guess, out=v)
        if bellman.alpha == 0.0:
            bellman.relax(order[::-1], v)
        return v

    return step


def auto(bellman: Bellman, tolerance: float) -> Step:
    """Modified policy iteration, and policy iteration from where that would take too long.

    How long it would take is foretold from the policy that was followed, where its value is all
    that is missing, and else from how the error fell by the last sweeps.
    """
    cheap = Following(bellman, tolerance, least=2)
    newton = policy_iteration(bellman, tolerance)
    seen: list[tuple[float, float]] = []
    slow = False

    def step(c: Certificate) -> Floats:
        nonlocal slow
        if not slow:
            cheap.look(c)
            seen.append((c.error, bellman.work))
            slow = cheap.sweeps_left > NEWTON
            if len(seen) > NEWS:
                (before, work), (after, done) = seen[-1 - NEWS], seen[-1]
                left = _effort(before, after, done - work, c, tolerance)
                slow = slow or after > 0.8 * before
                slow = slow or (len(seen) >= 2 * NEWS and left > NEWTON * bellman.share)
        return newton(c) if slow else cheap.step(c)

    return step


def _effort(before: float, after: float, spent: float, c: Certificate, tolerance: float) -> float:
    """What it takes to reach the tolerance, if it goes on as from `before` to `after`."""
    if not after < before:
        return math.inf
    return spent * math.log(c.error / tolerance) / math.log(before / max(after, 1e-300 * before))


def _gap(bellman: Bellman, tolerance: float) -> float:
    """The residual that makes an error of `tolerance`."""
    return tolerance * (1.0 - bellman.mdp.discount)


METHODS: dict[str, Callable[[Bellman, float], Step]] = {
    "auto": auto,
    "value_iteration": value_iteration,
    "policy_iteration": policy_iteration,
    "modified_policy_iteration": modified_policy_iteration,
}
