"""A summary of the solution of a model from functions, as aligned text; all of it is cheap."""

from __future__ import annotations

from dataclasses import dataclass

from tsallax.planning.functional_solution import FunctionalSolution
from tsallax.planning.summary import aligned, proven_digits, regularizer_text, shared_numbers
from tsallax.wording import plural


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
    support_ratio: float  # the share of the pairs that the policy uses
    regularized_return: float  # d'V
    performance_bound: float  # a bound on J(pi*) - J, by Theorem 4 or 5


def summarize_functional(source: str, solution: FunctionalSolution) -> FunctionalSummary:
    """Summarise a solution.

    >>> from tsallax import Sparse, problems, solve
    >>> model = problems.inventory(capacity=4, lead_time=1, max_order=2, discount=0.9)
    >>> summary = summarize_functional("inventory", solve(model, Sparse(0.5)))
    >>> summary.states, summary.actions, summary.post_decision_states, summary.events
    (15, 3, 15, 5)
    """
    mdp = solution.mdp
    return FunctionalSummary(
        **shared_numbers(source, solution),
        post_decision_states=None if mdp.post is None else mdp.post.size,
        events=mdp.events.size,
        regularized_return=solution.regularized_return,
    )


def functional_text(s: FunctionalSummary) -> str:
    """The summary as aligned lines, with as many digits as are proven."""
    digits = proven_digits(s.error)
    sizes = [plural(s.states, "state"), plural(s.actions, "action")]
    if s.post_decision_states is not None:
        sizes.append(plural(s.post_decision_states, "post-decision state"))
    sizes.append(plural(s.events, "event"))
    return aligned({
        "problem": f"{s.source}, discount {s.discount:.12g}",
        "size": ", ".join(sizes),
        "regularizer": regularizer_text(s.regularizer, s.alpha, s.q),
        "method": f"{s.method}: {plural(s.iterations, 'iteration')}, {plural(s.sweeps, 'sweep')}, "
        f"{s.seconds:.3g} s",
        "value": f"{s.value_min:,.{digits}f} to {s.value_max:,.{digits}f}",
        "error": f"{s.error:.2g} at most (tolerance {s.tolerance:g}; "
        f"enclosure width {2 * s.error:.2g})",
        "support ratio": f"{s.support_ratio:.4f} of {s.pairs:,} pairs",
        "regularized return": f"{s.regularized_return:,.{digits}f}",
        "performance bound": f"{s.performance_bound:.6g} "
        "(the most that the exact optimum's J can lose, by theorem)",
    })  # fmt: skip
