"""Solves regularised MDPs: `solve` returns V* and the policy to a proven accuracy.

The returned value is the centre of the enclosure, so |value - V*| <= error <= tolerance in every
state, and the returned policy is worth at least `lower` in the regularised MDP.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack, overload

import numpy as np
from jax.sharding import Mesh
from numpy.typing import ArrayLike

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.interrupts import interruptible
from tsallax.planning.accelerator.jax_bellman import JaxBellman
from tsallax.planning.bellman import Bellman, check_problem
from tsallax.planning.devices import make_operator
from tsallax.planning.finite_horizon import FiniteHorizonSolution, induct_backward
from tsallax.planning.forms import Floats, frozen, read_value
from tsallax.planning.functional_mdp import FunctionalMDP, no_finite_horizon
from tsallax.planning.functional_solution import FunctionalSolution
from tsallax.planning.iteration import Outcome, Target, iterate_to
from tsallax.planning.lost_process import reporting_lost_processes
from tsallax.planning.mdp import MDP
from tsallax.planning.methods import METHODS
from tsallax.planning.solution import NotConverged, Solution, SolveInterrupted
from tsallax.progress import bar
from tsallax.regularizer import Regularizer


def bellman(mdp: MDP | FunctionalMDP, regularizer: Regularizer, value: ArrayLike) -> Floats:
    """Uv: the Bellman operator of the regularised MDP applied once, in float64.

    >>> from tsallax import Hard, problems
    >>> bellman(problems.forest(), Hard(), [0.0, 0.0, 0.0])
    array([0., 1., 4.])
    """
    check_problem("bellman", mdp, regularizer, (MDP, FunctionalMDP))
    v = _read_value("value", mdp, value)
    if isinstance(mdp, MDP):
        stored = Bellman(mdp, regularizer, finite_horizon=True)
        return stored.sweep(stored.start(v))[0]
    operator = make_operator(mdp, regularizer)
    return operator.on_host(operator.certify(operator.start(v)).updated)


class Options(TypedDict, total=False):
    """The options of `solve`."""

    initial_value: ArrayLike | None
    max_sweeps: int | None
    relative_tolerance: float | None
    time_limit: float | None
    device: str
    precision: str
    mesh: Mesh | None
    progress: bool | None


@overload
def solve(
    mdp: MDP,
    regularizer: Regularizer,
    tolerance: float = ...,
    method: str = ...,
    **options: Unpack[Options],
) -> Solution: ...
@overload
def solve(
    mdp: FunctionalMDP,
    regularizer: Regularizer,
    tolerance: float = ...,
    method: str = ...,
    **options: Unpack[Options],
) -> FunctionalSolution: ...
@overload
def solve(
    mdp: MDP,
    regularizer: Regularizer,
    tolerance: float = ...,
    *,
    progress: bool | None = ...,
    horizon: int,
    final_value: ArrayLike | None = ...,
) -> FiniteHorizonSolution: ...
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
    relative_tolerance: float | None = None,
    time_limit: float | None = None,
    device: str = "auto",
    precision: str = "float64",
    mesh: Mesh | None = None,
    progress: bool | None = None,
    horizon: int | None = None,
    final_value: ArrayLike | None = None,
) -> Solution | FunctionalSolution | FiniteHorizonSolution:
    """Solve the regularised MDP to a proven error of at most `tolerance` in every state.

    Args:
        mdp: the problem.
        regularizer: `Hard()`, `Soft(alpha)`, `Sparse(alpha)` or `Tsallis(alpha, q)`.
        tolerance: the largest allowed |value - V*|. May be 0 with a `relative_tolerance`.
        method: "value_iteration", "modified_policy_iteration", "policy_iteration", or "auto",
            which starts with the second and changes to the third where that is quicker.
        initial_value: a first guess of V (warm start), such as the value of a similar problem.
        max_sweeps: the largest number of Bellman sweeps (default: what value iteration needs).
        relative_tolerance: the largest allowed |value - V*| in units of max|V*|. The solve ends
            when error <= max(tolerance, relative_tolerance * max|V*|).
        time_limit: the largest number of seconds; one sweep is made whatever it takes.
        device: "cpu", "gpu", or "auto", which takes a GPU where one is there and the problem is
            large enough for it to be the quicker.
        precision: "float64", or "float32", in JAX, which halves memory and proves less.
        mesh: divide the states over these devices, of this process or of several: a
            `jax.sharding.Mesh` with the axis "states".
        progress: show a progress bar; default: on a terminal, for solves over two seconds.
        horizon: the number of steps after which every episode ends, for a
            `FiniteHorizonSolution` by backward induction; the discount may be 1 then.
        final_value: with `horizon`, what each state is worth after the last step; default: 0.

    Raises:
        NotConverged: with the solution so far, where the tolerance is out of reach, or sweeps or
            seconds are used up.
        SolveInterrupted: on Ctrl-C, with the solution so far; a `KeyboardInterrupt`.
        RuntimeError: where another process of the mesh has ended.
        InvalidInput: where an argument makes no sense.

    >>> from tsallax import Sparse, problems
    >>> solution = solve(problems.forest(), Sparse(0.5), tolerance=1e-9)
    >>> solution.converged, solution.policy.round(3)
    (True, array([[1., 0.], [1., 0.], [1., 0.]]))
    >>> solve(problems.forest().with_discount(1.0), Sparse(0.5), horizon=10).value.round(3)
    array([26.022, 29.622, 33.622])
    """
    check_problem("solve", mdp, regularizer, (MDP, FunctionalMDP))
    if horizon is not None:
        unused = {
            "initial_value": initial_value,
            "max_sweeps": max_sweeps,
            "relative_tolerance": relative_tolerance,
            "time_limit": time_limit,
            "device": None if device in ("auto", "cpu") else device,
            "precision": None if precision == "float64" else precision,
            "mesh": mesh,
        }
        return _solve_finite(
            mdp, regularizer, tolerance, method, unused, horizon, final_value, progress
        )
    if final_value is not None:
        raise InvalidInput("final_value needs a horizon", add=("horizon", 100))
    checks.one_of("method", method, METHODS)
    target = _read_target(tolerance, relative_tolerance, max_sweeps, time_limit, mesh)
    started = time.monotonic()
    operator = make_operator(mdp, regularizer, device, precision, mesh)
    v = None if initial_value is None else _read_value("initial_value", mdp, initial_value)
    with bar("solving", progress) as report:
        found = iterate_to(operator, method, target, operator.start(v), report, started)
    solution = _solution_of(mdp, regularizer, operator, found, method, target, started)
    if found.interrupted:
        raise SolveInterrupted(found.reason, solution)
    if found.reason:
        raise NotConverged(found.reason, solution)
    return solution


def _solve_finite(
    mdp: MDP | FunctionalMDP,
    regularizer: Regularizer,
    tolerance: float,
    method: str,
    unused: Mapping[str, object],
    horizon: int,
    final_value: ArrayLike | None,
    progress: bool | None,
) -> FiniteHorizonSolution:
    """Backward induction; the options of `solve` that are `unused` must not be given."""
    if not isinstance(mdp, MDP):
        raise no_finite_horizon("horizon")
    if method != "auto":
        raise InvalidInput("with a horizon, the method is backward induction", omit="method")
    for name, given in unused.items():
        if given is not None:
            raise InvalidInput(f"{name} has no meaning with a horizon", omit=name)
    tolerance = checks.number("tolerance", tolerance, above=0)
    finite = induct_backward(mdp, regularizer, horizon, final_value, tolerance, progress)
    if not finite.converged:
        raise NotConverged(
            f"tolerance {tolerance:g} is below what float64 can prove here "
            f"({finite.error:.1g}): ask for a larger one, or scale rewards and alpha down",
            finite,
        )
    return finite


def _read_target(
    tolerance: float,
    relative_tolerance: float | None,
    max_sweeps: int | None,
    time_limit: float | None,
    mesh: Mesh | None,
) -> Target:
    """The tolerances and limits of a solve, checked."""
    relative = relative_tolerance
    if relative is not None:
        relative = checks.number("relative_tolerance", relative, above=0, below=1)
        tolerance = checks.number("tolerance", tolerance, at_least=0)
    else:
        tolerance = checks.number("tolerance", tolerance, above=0)
    target = Target(
        tolerance,
        relative or 0.0,
        None if max_sweeps is None else checks.count("max_sweeps", max_sweeps),
        None if time_limit is None else checks.number("time_limit", time_limit, above=0),
    )
    if target.time_limit is not None and mesh is not None and mesh.is_multi_process:
        problem = "a solve over several processes has no time limit: their clocks differ"
        raise InvalidInput(problem, omit="time_limit")
    return target


def _solution_of(
    mdp: MDP | FunctionalMDP,
    regularizer: Regularizer,
    operator: Bellman | JaxBellman,
    found: Outcome,
    method: str,
    target: Target,
    started: float,
) -> Solution | FunctionalSolution:
    """The value, its bounds and the policy that the certificate of a solve proves."""
    certificate = found.certificate
    value, lower, upper = (
        operator.on_host(operator.shifted(certificate.updated, end))
        for end in (certificate.middle, certificate.low, certificate.high)
    )
    if isinstance(operator, Bellman) and mdp.discount == 1.0:
        lower, upper = operator.weighted_enclosure(certificate)
        value = lower + 0.5 * (upper - lower)
    if not math.isfinite(certificate.error):
        lower, upper = np.full_like(lower, -math.inf), np.full_like(upper, math.inf)
    fields: dict[str, Any] = {
        "mdp": mdp,
        "regularizer": regularizer,
        "value": frozen(np.nan_to_num(value, copy=False)),
        "lower": frozen(lower),
        "upper": frozen(upper),
        "converged": not found.reason,
        "iterations": found.iterations,
        "sweeps": found.sweeps,
        "seconds": time.monotonic() - started,
        "method": method,
        "tolerance": target.error(certificate),
    }
    if isinstance(operator, JaxBellman) and isinstance(mdp, FunctionalMDP):
        return FunctionalSolution(greedy=operator.greedy(certificate), **fields)
    pair_policy = frozen(operator.pair_policy(certificate.policy))
    return Solution(pair_policy=pair_policy, **fields)


def _read_value(name: str, mdp: MDP | FunctionalMDP, value: ArrayLike) -> Floats:
    """A value function from the caller, as a copy that is 0 at terminal states."""
    if not isinstance(mdp, MDP):
        return read_value(name, value, mdp.n_states)
    v = read_value(name, value, mdp.n_states, mdp.state_names)
    v[mdp.terminal] = 0.0
    return v
