"""How a solver gets from one value to the next: a method is a function (U, certificate) -> v.

All methods see the same certificate, made by one sweep at the current v: Uv, the greedy policy and
the enclosure of V*.  They differ in how far they follow that policy before they look again.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tsallax.bellman import Bellman, Certificate, Floats
from tsallax.kernels import cpu
from tsallax.linear import PolicySystem

Step = Callable[[Certificate], Floats]


def value_iteration(bellman: Bellman, tolerance: float) -> Step:
    """The paper's sparse value iteration, x <- Ux; a sweep is all the work."""
    return lambda c: c.updated


def modified_policy_iteration(bellman: Bellman, tolerance: float) -> Step:
    """Follow the greedy policy for some sweeps, x <- r_pi + gamma T_pi x, then improve it.

    The sweeps stop when the change has become constant, since the enclosure then tells the rest.
    """

    def step(c: Certificate) -> Floats:
        span = c.change[1] - c.change[0]
        stop = max(1e-3 * span, 0.1 * tolerance * (1.0 - bellman.mdp.discount))
        support = max(int(bellman.policy.size.sum()), 1)
        most = min(max(2 * bellman.mdp.n_pairs // support, 8), 64)
        return bellman.follow(c.updated if bellman.ends else c.middle, most, stop)

    return step


def policy_iteration(bellman: Bellman, tolerance: float) -> Step:
    """Newton's method: solve v = r_pi + gamma T_pi v for the greedy policy, then improve it.

    Newton is monotone from below and quick once the policy is right in most states, but from
    nothing it extends a good policy only a few steps at a time.  So it starts from the policy that
    heads for the best states, and numbers the states by their distance to them for the linear
    solver.  The hard operator has kinks, at which Newton dawdles: one Gauss-Seidel sweep of U in
    the same order spreads the news before it looks again.
    """
    order: NDArray[np.uint32] | None = None

    def step(c: Certificate) -> Floats:
        nonlocal order
        gap = tolerance * (1.0 - bellman.mdp.discount)
        if order is None:
            below = c.shifted(c.low)
            near = c.updated.max() - 0.01 * (c.updated.max() - c.updated.min())
            order, steps = cpu.reach(bellman.arrays, np.flatnonzero(c.updated >= near))
            scale = 100.0 * (np.ptp(bellman.mdp.rewards) + bellman.alpha + 1.0)
            bellman.certify(-scale * steps)
            system = PolicySystem(bellman.arrays, bellman.policy, order[::-1])
            heading = system.solve(bellman.policy.reward, below, 0.1 * gap)
            v = np.maximum(below, heading)
        else:
            size = max(abs(c.change[0]), abs(c.change[1]))
            system = PolicySystem(bellman.arrays, bellman.policy, order[::-1])
            v = system.solve(bellman.policy.reward, c.updated, max(1e-2 * size, 0.1 * gap))
        if bellman.alpha == 0.0:
            bellman.relax(order, v)
        return v

    return step


def auto(bellman: Bellman, tolerance: float) -> Step:
    """Modified policy iteration, and policy iteration from where its error falls too slowly."""
    trial = modified_policy_iteration(bellman, tolerance)
    newton = policy_iteration(bellman, tolerance)
    errors: list[float] = []
    slow = False

    def step(c: Certificate) -> Floats:
        nonlocal slow
        errors.append(c.error)
        if not slow and len(errors) >= 4:
            rate = (errors[-1] / errors[-4]) ** (1 / 3)
            slow = errors[-1] * rate**12 > tolerance
        return newton(c) if slow else trial(c)

    return step


METHODS: dict[str, Callable[[Bellman, float], Step]] = {
    "auto": auto,
    "value_iteration": value_iteration,
    "policy_iteration": policy_iteration,
    "modified_policy_iteration": modified_policy_iteration,
}
