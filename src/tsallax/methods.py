"""How a solver gets from one value to the next: a method is a function (U, certificate) -> v.

All methods see the same certificate, made by one sweep at the current v: Uv, the greedy policy and
the enclosure of V*.  They differ in how far they follow that policy before they look again.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tsallax import memory
from tsallax.bellman import Bellman, Certificate, Floats
from tsallax.kernels import cpu
from tsallax.linear import PolicySystem, permuted, policy_matrix

SINGLE = 1e-4
"""1 - gamma above which Newton's steps are made in single precision, with up to 100 actions."""

Step = Callable[[Certificate], Floats]


def value_iteration(bellman: Bellman, tolerance: float) -> Step:
    """The paper's sparse value iteration, x <- Ux; a sweep is all the work."""
    return lambda c: c.updated


def modified_policy_iteration(bellman: Bellman, tolerance: float, least: int = 8) -> Step:
    """Follow the greedy policy for some sweeps, x <- r_pi + gamma T_pi x, then improve it.

    How many, `least` or more, is learned on the way: more while the error falls fast, and fewer for
    good where that made it fall slowly, since following a poor policy far is worse than not
    following it.  The first policy sees one reward ahead, and traces of it in x can take long to
    fade: it is not followed.  The sweeps also stop when the change has become constant, because the
    enclosure then tells the rest.
    """
    follow, most, last = least, 64, math.inf

    def step(c: Certificate) -> Floats:
        nonlocal follow, most, last
        first, fast, last = last == math.inf, c.error < 0.5 * last, c.error
        if first:
            return c.updated
        most = most if fast else most // 2
        follow = max(min(2 * follow + 1 if fast else follow // 2, most), least)
        stop = max(1e-4 * (c.change[1] - c.change[0]), 0.1 * _gap(bellman, tolerance))
        return bellman.follow(c.updated if bellman.ends else c.middle, follow, stop)[0]

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
            nearest, steps = cpu.reach(bellman.arrays, near)
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
        if left > 0.5 * float(np.abs(missing).max()):
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

    A Newton step costs as much as tens of sweeps, so the cheap method may take its time, unless it
    stalls or its rate promises no end.
    """
    cheap = modified_policy_iteration(bellman, tolerance, least=2)
    newton = policy_iteration(bellman, tolerance)
    errors: list[float] = []
    slow = False

    def step(c: Certificate) -> Floats:
        nonlocal slow
        errors.append(c.error)
        n = len(errors)
        stalls = n >= 8 and errors[-1] > 0.8 * errors[-5]
        endless = n >= 24 and errors[-1] * (errors[-1] / errors[-12]) ** 2 > tolerance
        slow = slow or stalls or endless
        return newton(c) if slow else cheap(c)

    return step


def _gap(bellman: Bellman, tolerance: float) -> float:
    """The residual that makes an error of `tolerance`."""
    return tolerance * (1.0 - bellman.mdp.discount)


METHODS: dict[str, Callable[[Bellman, float], Step]] = {
    "auto": auto,
    "value_iteration": value_iteration,
    "policy_iteration": policy_iteration,
    "modified_policy_iteration": modified_policy_iteration,
}
