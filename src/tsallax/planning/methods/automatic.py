"""The default method: modified policy iteration, then policy iteration where that is quicker."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

from tsallax.planning.methods.modified_policy_iteration import (
    WARM_UP_POLICIES,
    ModifiedPolicyIteration,
    PartialEvaluation,
    estimated_work,
)
from tsallax.planning.methods.policy_iteration import NewtonState, PolicyIteration
from tsallax.planning.operator import Certificate, Iterate, Operator

NEWTON_BREAK_EVEN_SWEEPS = 300.0
"""Remaining sweeps of a policy from which policy iteration is quicker."""

PATIENT_GAP = 2e-3
"""1 - gamma below which a slow start is enough to change to policy iteration."""

PATIENT_POLICIES = 2
"""Improvements before the decrease of the error is judged there; elsewhere `WARM_UP_POLICIES`."""


class AutomaticState(NamedTuple):
    """The state of the method in use, and the progress of the first one."""

    evaluation: PartialEvaluation  # the state of modified policy iteration
    history: tuple[tuple[float, float], ...] = ()  # error and work so far, of the last certificates
    policy_work: float = 0.0  # work spent on evaluating policies, in passes over the transitions
    newton: bool = False  # whether policy iteration is in use
    policy_iteration: NewtonState | None = None  # the state of policy iteration


@dataclass(frozen=True)
class Automatic:
    """Modified policy iteration, and policy iteration from where that would take too long.

    The remaining work is estimated from the sweeps of the last policy, where its value is all that
    is missing, and else from the decrease of the error over the last policies.
    """

    tolerance: float
    max_stalls: ClassVar[int] = 100

    @cached_property
    def modified(self) -> ModifiedPolicyIteration:
        """The method to start with."""
        return ModifiedPolicyIteration(self.tolerance, min_sweeps=2)

    def init(self) -> AutomaticState:
        """Start with modified policy iteration."""
        return AutomaticState(self.modified.init())

    def step(
        self, operator: Operator, certificate: Certificate, state: AutomaticState
    ) -> tuple[Iterate, AutomaticState]:
        """A step of the method that is estimated to be quicker; policy iteration stays."""
        if not state.newton:
            state = self._observe(operator, certificate, state)
        if state.newton:
            iterate, after = PolicyIteration(self.tolerance).step(
                operator, certificate, state.policy_iteration
            )
            return iterate, state._replace(policy_iteration=after)
        v, evaluation = self.modified.advance(operator, certificate, state.evaluation)
        work = state.policy_work + evaluation.sweeps * certificate.support_ratio
        return certificate.iterate(v), state._replace(evaluation=evaluation, policy_work=work)

    def _observe(
        self, operator: Operator, certificate: Certificate, state: AutomaticState
    ) -> AutomaticState:
        """Take in a certificate and decide whether to change to policy iteration."""
        evaluation = self.modified.observe(certificate, state.evaluation)
        work = evaluation.policies * operator.sweep_cost + state.policy_work
        patient = 1.0 - operator.discount < PATIENT_GAP
        warm_up = PATIENT_POLICIES if patient else WARM_UP_POLICIES
        history = (*state.history, (certificate.error, work))[-1 - warm_up :]
        newton = evaluation.remaining_sweeps > NEWTON_BREAK_EVEN_SWEEPS
        if evaluation.policies > warm_up:
            (before, work_before), (after, work_after) = history[0], history[-1]
            stalled = after > 0.8 * before
            judged = evaluation.policies >= 2 * WARM_UP_POLICIES
            remaining = estimated_work(
                before, after, work_after - work_before, certificate.error / self.tolerance
            )
            slow = remaining > NEWTON_BREAK_EVEN_SWEEPS * certificate.support_ratio
            newton = newton or stalled or (judged and slow)
        return state._replace(evaluation=evaluation, history=history, newton=newton)
