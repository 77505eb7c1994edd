"""Policy iteration, which is Newton's method for v = Uv."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tsallax.planning.bellman import Bellman, Certificate, Floats, Iterate
from tsallax.planning.kernels.bellman_sweep import relax
from tsallax.planning.kernels.breadth_first import breadth_first_order
from tsallax.planning.kernels.sparse_linear import max_abs
from tsallax.planning.linear_systems import PolicySystem, permuted, policy_matrix

Order = NDArray[np.uint32]

SINGLE_PRECISION_GAP = 1e-4
"""1 - gamma above which linear systems are solved in single precision, with up to 100 actions."""


@dataclass(frozen=True)
class PolicyIteration:
    """Solve v = r_pi + alpha Omega(pi) + gamma T_pi v for the greedy policy, then improve it.

    Newton's method is monotone from below and quick once the policy is right in most states, but
    from v = 0 it extends a good policy only a few steps at a time.  So it starts from the policy
    that heads for the best states, and numbers the states by their distance to them for the linear
    solver.  The hard operator has kinks, at which Newton's method is slow: one Gauss-Seidel sweep
    of U in the same order follows each step.  The correction of v is solved for in single
    precision, unless the discount is so near to one that pivots would cancel.
    """

    tolerance: float

    def init(self) -> Order | None:
        """The order of the states is found in the first step."""
        return None

    def step(
        self, operator: Bellman, certificate: Certificate, state: Order | None
    ) -> tuple[Iterate, Order]:
        """The value of the greedy policy, from a linear system."""
        sweeps, greedy, guess, order = 0, certificate, certificate.updated, state
        if order is None:
            order, steps = _order_by_distance(operator, certificate)
            if certificate.error > 1e-3 * np.ptp(certificate.updated):  # v says little yet
                # the policy that takes the shortest way to the best states
                scale = 100.0 * (np.ptp(operator.mdp.rewards) + operator.alpha + 1.0)
                greedy = operator.certify(Iterate(-scale * steps, certificate.policy.thresholds))
                sweeps, guess = 1, certificate.shifted(certificate.low)
        largest_change = max(abs(certificate.change[0]), abs(certificate.change[1]))
        v = self._correction(operator, greedy, guess, order, largest_change)
        v += guess
        if guess is not certificate.updated:
            np.maximum(v, guess, out=v)
        if operator.alpha == 0.0:
            relax(operator.arrays, order[::-1], v)
            sweeps += 1
        return Iterate(v, greedy.policy.thresholds, sweeps), order

    def _correction(
        self, operator: Bellman, greedy: Certificate, guess: Floats, order: Order, change: float
    ) -> Floats:
        """V_pi - guess of the policy pi of `greedy`, to about a hundredth of the last change."""
        missing, _, _ = operator.policy_sweeps(greedy, guess, 1, math.inf)
        missing -= guess
        gap = 1.0 - operator.mdp.discount
        single = gap > SINGLE_PRECISION_GAP * max(1.0, operator.width / 100)
        precision = np.float32 if single else np.float64
        matrix = permuted(policy_matrix(operator.arrays, greedy.policy.weights, precision), order)
        system = PolicySystem(matrix, order)
        x, left = system.solve(missing, max(1e-2 * change, 0.1 * (self.tolerance * gap)))
        return system.solve_exactly(missing) if left > 0.5 * max_abs(missing) else x


def _order_by_distance(
    operator: Bellman, certificate: Certificate
) -> tuple[Order, NDArray[np.int32]]:
    """The states, the farthest from the best ones first, and their distances in steps."""
    low, high = certificate.updated.min(), certificate.updated.max()
    best = np.flatnonzero(certificate.updated >= high - 0.01 * (high - low))
    nearest_first, steps = breadth_first_order(operator.arrays, best)
    return nearest_first[::-1].copy(), steps
