"""Solves regularised MDPs: `solve` returns V* and the policy to a proven accuracy.

The returned value is the centre of the enclosure, so |value - V*| <= error <= tolerance in every
state, and the returned policy is worth at least `lower` in the regularised MDP.
"""

from __future__ import annotations

import math
import time
from typing import Any, overload

import numpy as np
from jax.sharding import Mesh
from numpy.typing import ArrayLike

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.interrupts import interruptible
from tsallax.planning.bellman import Bellman, Floats, check_problem
from tsallax.planning.devices import make_operator
from tsallax.planning.forms import frozen
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.functional_solution import FunctionalSolution, functional_solution
from tsallax.planning.iteration import iterate_to
from tsallax.planning.lost_process import reporting_lost_processes
from tsallax.planning.mdp import MDP
from tsallax.planning.methods import METHODS
from tsallax.planning.solution import NotConverged, Solution
from tsallax.progress import bar
from tsallax.regularizer import Regularizer


def bellman(mdp: MDP, regularizer: Regularizer, value: ArrayLike) -> Floats:
    """Uv: the Bellman operator of the regularised MDP applied once, in float64.

    >>> from tsallax import Hard, problems
    >>> bellman(problems.forest(), Hard(), [0.0, 0.0, 0.0])
    array([0., 1., 4.])
    """
    check_problem("bellman", mdp, regularizer)
    operator = Bellman(mdp, regularizer)
    updated: Floats = operator.certify(operator.start(_read_value(mdp, value))).updated
    return updated


@overload
def solve(
    mdp: MDP, regularizer: Regularizer, tolerance: float = ..., method: str = ..., **options: Any
) -> Solution: ...
@overload
def solve(
    mdp: FunctionalMDP,
    regularizer: Regularizer,
    tolerance: float = ...,
    method: str = ...,
    **options: Any,
) -> FunctionalSolution: ...
@interruptible()
@reporting_lost_processes()
def solve(
    mdp: MDP | FunctionalMDP,
    regularizer: Regularizer,
    tolerance: float = 1e-6,
    method: str = "auto",
    *,
    initial_value: ArrayLike | None = None,
    max_sweeps: int | None = None,
    device: str = "auto",
    precision: str = "float64",
    mesh: Mesh | None = None,
    progress: bool | None = None,
) -> Solution | FunctionalSolution:
    """Solve the regularised MDP to a proven error of at most `tolerance` in every state.

    Args:
        mdp: the problem.
        regularizer: `Hard()`, `Soft(alpha)`, `Sparse(alpha)` or `Tsallis(alpha, q)`.
        tolerance: the largest allowed |value - V*|.
        method: "value_iteration", "modified_policy_iteration", "policy_iteration", or "auto",
            which starts with the second and changes to the third where that is quicker.
        initial_value: a first guess of V (warm start), such as the value of a similar problem.
        max_sweeps: the largest number of Bellman sweeps (default: what value iteration needs).
        device: "cpu", "gpu", or "auto", which takes a GPU where one is there and the problem is
            large enough for it to be the quicker.
        precision: "float64", or "float32", in JAX, which halves memory and proves less.
        mesh: divide the states over these devices, of this process or of several: a
            `jax.sharding.Mesh` with the axis "states".
        progress: show a progress bar; default: on a terminal, for solves over two seconds.

    Raises:
        NotConverged: with the solution so far, where the tolerance is out of reach.
        RuntimeError: where another process of the mesh has ended.
        InvalidInput: where an argument makes no sense.

    >>> from tsallax import Sparse, problems
    >>> solution = solve(problems.forest(), Sparse(0.5), tolerance=1e-9)
    >>> solution.converged, solution.policy.round(3)
    (True, array([[1., 0.], [1., 0.], [1., 0.]]))
    """
    check_problem("solve", mdp, regularizer, (MDP, FunctionalMDP))
    tolerance = checks.number("tolerance", tolerance, above=0)
    checks.one_of("method", method, METHODS)
    limit = None if max_sweeps is None else checks.count("max_sweeps", max_sweeps)
    started = time.perf_counter()
    operator = make_operator(mdp, regularizer, device, precision, mesh)
    v = None if initial_value is None else _read_value(mdp, initial_value)
    with bar("solving", progress) as report:
        found = iterate_to(operator, method, tolerance, operator.start(v), limit, report)
    certificate = found.certificate
    value, lower, upper = (
        operator.on_host(operator.shifted(certificate.updated, end))
        for end in (certificate.middle, certificate.low, certificate.high)
    )
    if not math.isfinite(certificate.error):
        lower, upper = np.full_like(lower, -math.inf), np.full_like(upper, math.inf)
    fields: dict[str, Any] = {
        "mdp": mdp,
        "regularizer": regularizer,
        "value": frozen(np.nan_to_num(value, copy=False)),
        "lower": frozen(lower),
        "upper": frozen(upper),
        "converged": bool(certificate.error <= tolerance),
        "iterations": found.iterations,
        "sweeps": found.sweeps,
        "seconds": time.perf_counter() - started,
        "method": method,
        "tolerance": tolerance,
    }
    solution: Solution | FunctionalSolution
    if isinstance(mdp, MDP):
        pair_policy = frozen(operator.pair_policy(certificate.policy))
        solution = Solution(pair_policy=pair_policy, **fields)
    else:
        solution = functional_solution(fields, operator.greedy(certificate))
    if not solution.converged:
        raise NotConverged(found.reason, solution)
    return solution


def _read_value(mdp: MDP | FunctionalMDP, value: ArrayLike) -> Floats:
    """A value function from the caller, as a copy that is 0 at terminal states."""
    try:
        v = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise InvalidInput(f"a value is an array of numbers, not {kind}") from None
    if v.shape != (mdp.n_states,):
        raise InvalidInput(f"a value of this MDP has shape ({mdp.n_states},), not {v.shape}")
    if not np.isfinite(v).all():
        s = int(np.flatnonzero(~np.isfinite(v))[0])
        raise InvalidInput(f"the value of state {s} is {v[s]}: it must be finite")
    if isinstance(mdp, MDP):
        v[mdp.terminal] = 0.0
    return v
