"""The default method: modified policy iteration, then policy iteration where that is quicker."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tsallax.planning.methods.modified_policy_iteration import (
    WARM_UP_POLICIES,
    ModifiedPolicyIteration,
    PartialEvaluation,
    estimated_work,
)
from tsallax.planning.methods.policy_iteration import NewtonState, PolicyIteration
from tsallax.planning.operator import Certificate, Iterate, Operator

SPREADING_SWEEPS = 10.0
"""Sweeps of U, in time, before the decrease of the error says how long it will go on."""


class AutomaticState(NamedTuple):
    """The state of the method in use, and the progress of the first one."""

    evaluation: PartialEvaluation  # the state of modified policy iteration
    history: tuple[tuple[float, float], ...] = ()  # error and work so far, of the last certificates
    policy_work: float = 0.0  # work spent on evaluating policies, in passes over the transitions
    newton: bool = False  # whether policy iteration is in use
    policy_iteration: NewtonState | None = None  # the state of policy iteration


@dataclass(frozen=True)
class Automatic:
    """Modified policy iteration, and policy iteration once that is estimated to be quicker.

    Sweeps cost the more the longer they go on, policy iteration costs about `newton_cost` of the
    operator: a ski rental problem.  The method changes once the remaining cost of sweeps is
    estimated to exceed that: from the sweeps of the last policy, where its value is all that is
    missing, and else from the decrease of the error over the last policies.  The latter counts
    after a few sweeps only, as rewards have to spread before the error falls.
    """

    tolerance: float
    max_stalls: ClassVar[int] = 100

    @property
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
        spent = evaluation.policies * operator.sweep_cost + state.policy_work
        history = (*state.history, (certificate.error, spent))[-1 - WARM_UP_POLICIES :]
        remaining = evaluation.remaining_sweeps * certificate.support_ratio
        if spent >= SPREADING_SWEEPS * operator.sweep_cost:
            (before, spent_before), ratio = history[0], certificate.error / self.tolerance
            work = estimated_work(before, certificate.error, spent - spent_before, ratio)
            remaining = max(remaining, work)
        newton = remaining > operator.newton_cost(certificate.support_ratio)
        return state._replace(evaluation=evaluation, history=history, newton=newton)
