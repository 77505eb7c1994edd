"""Evaluation of policies over a finite horizon, one step at a time.

    v_T = final_value,   v_t = r_t + alpha Omega(pi_t) + gamma T_t v_{t+1}     (backwards)
    d_0 = d,             d_{t+1}' = gamma d_t' T_t                             (forwards)

with r_t and T_t the rewards and transitions under the policy pi_t of step t.  The visitation is the
sum of d_0 to d_{T-1}.
"""

from typing import NamedTuple

import numpy as np

from tsallax.planning.bellman import Bellman
from tsallax.planning.forms import Floats
from tsallax.planning.kernels.mdp_arrays import Policy
from tsallax.planning.kernels.policy_sweep import policy_sweeps_serial
from tsallax.planning.policies import sum_by_state
from tsallax.planning.step_policies import PolicyOfStep


class StepEvaluation(NamedTuple):
    """What policies are worth over T steps, and what they visit: the fields of an `Evaluation`."""

    value: Floats  # v_0(s)
    pair_q: Floats  # of the first step
    visitation: Floats  # of every state, discounted and summed over the steps
    pair_visitation: Floats
    entropy: float
    expected_return: float  # the final value included
    regularized_return: float
    error: float  # a bound on |value - v_0|


def evaluate_steps(
    operator: Bellman, policies: PolicyOfStep, horizon: int, final_value: Floats
) -> StepEvaluation:
    """Evaluate the policies of the steps 0 to T - 1, each of which is computed twice."""
    mdp = operator.mdp
    v, following, error = values_of_steps(operator, policies, horizon, final_value)
    visitation, pair_visitation = np.zeros(mdp.n_states), np.zeros(mdp.n_pairs)
    entropy = expected_return = 0.0
    d = np.array(mdp.initial)
    for t in range(horizon):
        pi = np.asarray(policies(t))
        taken = pi * d[mdp.state_of]
        visitation += d
        pair_visitation += taken
        expected_return += float(taken @ mdp.rewards)
        entropy += float(d @ operator.entropy(np.require(pi, np.float64, ["C", "W"])))
        d = mdp.discount * (mdp.transitions.T @ taken)
    expected_return += float(d @ final_value)
    pair_q = operator.action_values(following)
    total = expected_return + operator.alpha * entropy
    return StepEvaluation(
        v, pair_q, visitation, pair_visitation, entropy, expected_return, total, error
    )


def values_of_steps(
    operator: Bellman, policies: PolicyOfStep, horizon: int, final_value: Floats
) -> tuple[Floats, Floats, float]:
    """v_0 and v_1, and a bound on the error of v_0; the policy of every step is computed once."""
    mdp = operator.mdp
    v, following, error = np.array(final_value), np.array(final_value), 0.0
    for t in range(horizon - 1, -1, -1):
        pi = np.require(policies(t), np.float64, ["C", "W"])
        rewards = sum_by_state(mdp, pi * mdp.rewards) + operator.alpha * operator.entropy(pi)
        following, v = v, _preceding(operator, pi, rewards, v)
        growth = mdp.discount + operator.policy_sum_error
        error = growth * error + operator.action_value_rounding(v, following)
    return v, following, error


def entropy_of_steps(operator: Bellman, policies: PolicyOfStep, horizon: int) -> Floats:
    """W or H from every state: the expected discounted entropy of the policies of all steps."""
    collected = np.zeros(operator.mdp.n_states)
    if operator.alpha == 0.0:
        return collected
    for t in range(horizon - 1, -1, -1):
        pi = np.require(policies(t), np.float64, ["C", "W"])
        collected = _preceding(operator, pi, operator.entropy(pi), collected)
    return collected


def _preceding(operator: Bellman, pi: Floats, rewards: Floats, following: Floats) -> Floats:
    """rewards + gamma T_pi v, for the v of the next step."""
    v = np.empty_like(following)
    policy_sweeps_serial(operator.arrays, Policy(pi, rewards, v[:0]), following, v, 1, np.inf)
    return v
