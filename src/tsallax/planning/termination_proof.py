"""Proves that every policy of an MDP ends, and how long that can take on average.

Without discount, values are finite under every policy where every policy ends.  In a finite MDP
that holds unless some states have actions that stay among them for ever (an end component; de
Alfaro 1997).  The proof is a vector w, an upper bound on the expected number of steps, with

    w(s) >= 1 + sum_s' T(s'|s, a) w(s')     for all s, a,

checked with rounding.  Then v + c w with c >= max(Uv - v, 0) is a supersolution of V = UV,

    U(v + c w) <= Uv + c (w - 1) <= v + c w,   hence   V* <= Uv + c (w - 1),

and from below in the same way.  Everything that holds with a discount gamma < 1 holds with
1 - 1/max w in its place, where 1/(1 - gamma) is the longest expected duration, max w.

The least such w is the value of the hard MDP in which every step earns 1; policy iteration finds it
to a few digits, which is enough, as any w that passes the check will do.
"""

import math
from weakref import WeakKeyDictionary

import numpy as np

from tsallax.errors import InvalidInput
from tsallax.planning.forms import frozen, named
from tsallax.planning.kernels.end_components import endless_pairs
from tsallax.planning.kernels.mdp_arrays import Floats, MDPArrays, action_values
from tsallax.planning.linear_systems import Order, PolicySystem, order_to_ends
from tsallax.planning.mdp import MDP
from tsallax.planning.operator import UNIT_ROUNDOFF

MAX_POLICIES = 200
"""Policies after which the search for w is given up."""
SUFFICIENT_DECREASE = 0.9
"""The least w(s) - max_a sum T(s'|s, a) w(s') that is accepted; w is divided by it."""
LINEAR_TOLERANCE = 1e-3
"""The residual of the linear systems, in steps."""

_PROVEN: WeakKeyDictionary[MDP, Floats] = WeakKeyDictionary()
"""The result for each MDP in memory, which is read-only."""


def longest_durations(mdp: MDP, arrays: MDPArrays, of_policy: bool = False) -> Floats:
    """w(s): proven upper bounds on the expected number of steps from each state, of any policy.

    Refuses an MDP with a policy that never ends, and names states and actions of it.  With
    `of_policy` the MDP is the Markov chain of a policy, of which messages speak then.
    """
    if mdp not in _PROVEN:
        _PROVEN[mdp] = frozen(_proven_durations(mdp, arrays, of_policy))
    return _PROVEN[mdp]


def _proven_durations(mdp: MDP, arrays: MDPArrays, of_policy: bool) -> Floats:
    _refuse_endless(mdp, arrays, of_policy)
    undiscounted = arrays._replace(discount=1.0, rewards=np.zeros(mdp.n_pairs))
    order = order_to_ends(arrays)
    w = np.where(mdp.terminal, 0.0, 1.0)
    following = np.empty(mdp.n_pairs)
    action_values(undiscounted, w, following)
    for _ in range(MAX_POLICIES):
        pi, longest = _slowest(mdp, following)
        w = _duration(mdp, undiscounted, pi, w, longest, order)
        if not (np.isfinite(w).all() and w.min() >= 0.0):
            break
        action_values(undiscounted, w, following)
        decrease = _proven_decrease(mdp, w, following)
        if decrease >= SUFFICIENT_DECREASE:
            return np.where(mdp.terminal, 0.0, np.nextafter(w / decrease, math.inf))
    subject = "this policy" if of_policy else "every policy of this MDP"
    raise InvalidInput(
        f"{subject} ends, but after too many steps to prove it in float64: "
        f"more than {max(float(np.nanmax(w)), 1.0):.2g} on average; use a discount below 1"
    )


def _slowest(mdp: MDP, following: Floats) -> tuple[Floats, Floats]:
    """The policy of the largest `following` in every state, and these numbers."""
    pi = np.zeros(mdp.n_pairs)
    longest = np.zeros(mdp.n_states)
    filled = np.flatnonzero(~mdp.terminal)
    starts = mdp.pointer[:-1][filled]
    longest[filled] = np.maximum.reduceat(following, starts)
    best = np.flatnonzero(following == longest[mdp.state_of])
    _, first = np.unique(mdp.state_of[best], return_index=True)
    pi[best[first]] = 1.0
    return pi, longest


def _duration(
    mdp: MDP, arrays: MDPArrays, pi: Floats, w: Floats, longest: Floats, order: Order
) -> Floats:
    """The expected number of steps of a policy, from the guess w, `longest` being T_pi w."""
    system = PolicySystem(arrays, pi, order)
    steps = np.where(mdp.terminal, 0.0, 1.0)
    residual = steps + longest - w
    x, left = system.solve(residual, LINEAR_TOLERANCE)
    if not left <= LINEAR_TOLERANCE:
        x = system.solve_exactly(residual)
    return w + x


def _proven_decrease(mdp: MDP, w: Floats, following: Floats) -> float:
    """A lower bound on the least w(s) - sum_s' T(s'|s, a) w(s'), rounding included."""
    rounding = (mdp.max_successors + 4) * UNIT_ROUNDOFF * float(w.max())
    return float((w[mdp.state_of] - following).min()) - 2.0 * rounding


def _refuse_endless(mdp: MDP, arrays: MDPArrays, of_policy: bool) -> None:
    """Refuse an MDP with states and actions that an episode need never leave."""
    ends = np.zeros(0) if mdp.termination is None else np.array(mdp.termination)
    endless = endless_pairs(arrays, ends)
    if not endless.any():
        return
    pair_of = np.full(mdp.n_states, -1)
    pairs = np.flatnonzero(endless)[::-1]
    pair_of[mdp.state_of[pairs]] = pairs
    seen: dict[int, int] = {}
    s = int(mdp.state_of[pairs[-1]])
    path: list[int] = []
    while s not in seen:
        seen[s] = len(path)
        path.append(s)
        s = int(mdp.transitions.indices[mdp.transitions.indptr[pair_of[s]]])
    cycle = path[seen[s] :]
    shown = [named("state", s, mdp.state_names) for s in cycle[:4]]
    problem = "discount 1 needs an end, and this policy never ends"
    if not of_policy:
        problem = "discount 1 needs an end under every policy, but an episode may go on for ever"
        for i, s in enumerate(cycle[:4]):
            action = named("action", int(mdp.action_of[pair_of[s]]), mdp.action_names)
            shown[i] += f" by {action}"
    if len(cycle) > 4:
        shown.append(f"... ({len(cycle)} states)")
    remedy = "use a discount below 1, or a horizon" + " in solve and evaluate" * (not of_policy)
    raise InvalidInput(f"{problem}: {', '.join(shown)}, and again; {remedy}")
