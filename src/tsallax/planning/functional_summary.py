"""A summary of the solution of a model from functions, as aligned text.

The return and the gap certificate take the evaluation of the policy, which is given up where it
takes longer than the solve or does not fit into memory.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from tsallax.errors import InvalidInput
from tsallax.planning.functional_evaluation import functional_gap, plain_value
from tsallax.planning.functional_solution import FunctionalSolution
from tsallax.planning.summary import proven_digits, regularizer_text, shared_numbers
from tsallax.time_limits import DeadlineReached, deadline
from tsallax.wording import aligned, plural

MIN_SECONDS = 10.0
"""The time that the evaluation of a policy may take, however short the solve was."""


@dataclass(frozen=True)
class FunctionalSummary:
    """The numbers of a solution, by the names that the Python API has for them."""

    source: str
    states: int
    actions: int
    pairs: int  # states times actions
    post_decision_states: int | None
    events: int
    discount: float
    regularizer: str
    alpha: float  # 0 for a hard regulariser
    q: float | None  # None for a hard regulariser
    method: str
    tolerance: float
    iterations: int
    sweeps: int
    seconds: float
    converged: bool
    error: float  # a bound on |value - V*|, half the widest enclosure
    value_min: float
    value_max: float
    support_ratio: float  # the share of the pairs, allowed or not, that the policy uses
    expected_return: float | None  # J, without entropy; NaN: given up, None: not asked for
    regularized_return: float  # d'V
    performance_bound: float  # a bound on J(pi*) - J, by Theorem 4 or 5
    gap_certificate: float | None  # the same for this model and policy, from the start


def summarize_functional(
    source: str, solution: FunctionalSolution, evaluated: bool = True
) -> FunctionalSummary:
    """Summarise a solution, and evaluate its policy where that takes no longer than the solve.

    Where it is not `evaluated`, the return and the gap certificate are None.

    >>> from tsallax import Sparse, problems, solve
    >>> model = problems.inventory(capacity=4, lead_time=1, max_order=2, discount=0.9)
    >>> summary = summarize_functional("inventory", solve(model, Sparse(0.5)))
    >>> summary.states, summary.actions, summary.post_decision_states, summary.events
    (15, 3, 15, 5)
    """
    mdp = solution.mdp
    expected_return, gap = _certified_return(solution) if evaluated else (None, None)
    return FunctionalSummary(
        **shared_numbers(source, solution),
        post_decision_states=None if mdp.post is None else mdp.post.size,
        events=mdp.events.size,
        expected_return=expected_return,
        regularized_return=solution.regularized_return,
        gap_certificate=gap,
    )


def _certified_return(solution: FunctionalSolution) -> tuple[float, float]:
    """J and the gap certificate from the start; NaN where they take too much time or memory."""
    initial = solution.mdp.initial
    try:
        with deadline(time.monotonic() + max(solution.seconds, MIN_SECONDS)):
            plain = plain_value(solution)
    except (DeadlineReached, InvalidInput, MemoryError):
        return math.nan, math.nan
    gap = functional_gap(solution, plain)
    return float(initial @ plain.value), float(initial @ gap)


def functional_text(s: FunctionalSummary) -> str:
    """The summary as aligned lines, with as many digits as are proven."""
    digits = proven_digits(s.error)
    sizes = [plural(s.states, "state"), plural(s.actions, "action")]
    if s.post_decision_states is not None:
        sizes.append(plural(s.post_decision_states, "post-decision state"))
    sizes.append(plural(s.events, "event"))
    rows = {
        "problem": f"{s.source}, discount {s.discount:.12g}",
        "size": ", ".join(sizes),
        "regularizer": regularizer_text(s.regularizer, s.alpha, s.q),
        "method": f"{s.method}: {plural(s.iterations, 'iteration')}, {plural(s.sweeps, 'sweep')}, "
        f"{s.seconds:.3g} s",
        "value": f"{s.value_min:,.{digits}f} to {s.value_max:,.{digits}f}",
        "error": f"{s.error:.2g} at most (tolerance {s.tolerance:g}; "
        f"enclosure width {2 * s.error:.2g})",
        "support ratio": f"{s.support_ratio:.4f} of {s.pairs:,} pairs, states times actions",
        "expected return": _computed(s.expected_return, f".{digits}f", "(J)"),
        "regularized return": f"{s.regularized_return:,.{digits}f}",
        "performance bound": f"{s.performance_bound:.6g} "
        "(the most that the exact optimum's J can lose, by theorem)",
        "gap certificate": _computed(
            s.gap_certificate, ".6g", "(the most that J of this policy can lose)"
        ),
    }
    if s.gap_certificate is None:
        del rows["expected return"], rows["gap certificate"]
    return aligned(rows.items())


def _computed(x: float | None, form: str, meaning: str) -> str:
    """A number and what it means, or why it is not there."""
    if x is None or math.isnan(x):
        return "not computed: it would take longer than the solve, or too much memory"
    return f"{x:,{form}} {meaning}"
