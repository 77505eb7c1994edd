"""A summary of a solution and its policy, as aligned text or as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from tsallax.errors import InvalidInput
from tsallax.planning.evaluation import evaluate, gap_certificate, performance_bound
from tsallax.planning.solution import Solution
from tsallax.regularizer import PARAMETERS
from tsallax.wording import aligned, plural


@dataclass(frozen=True)
class Summary:
    """The numbers of a solution, by the names that the Python API has for them."""

    source: str  # what was solved, and its size
    states: int
    terminal: int
    actions: int
    pairs: int
    transitions: int
    discount: float
    regularizer: str
    alpha: float  # 0 for a hard regulariser
    q: float | None  # None for a hard regulariser
    method: str  # how it was solved
    tolerance: float
    iterations: int
    sweeps: int
    seconds: float
    converged: bool
    error: float  # a bound on |value - V*|, half the widest enclosure
    value_min: float
    value_max: float
    support_ratio: float  # the share of the pairs that the policy uses
    certified_in: int | None  # pairs proven to be in the support of pi*; None: not computed
    certified_out: int | None  # pairs proven not to be in it
    certified_ratio: float  # the share of the pairs that are either
    expected_return: float  # J, the expected discounted reward from the start, without entropy
    entropy: float  # W or H, the expected discounted entropy
    regularized_return: float  # J + alpha * entropy
    performance_bound: float  # a bound on J(pi*) - J, by Theorem 4 or 5
    gap_certificate: float  # the same for this MDP and policy, from the start


def summarize(source: str, solution: Solution, evaluated: bool = True) -> Summary:
    """Evaluate the policy of a solution and summarise both.

    Where it is not `evaluated`, what takes passes over all transitions is NaN or None.

    >>> from tsallax import Sparse, problems, solve
    >>> forest = summarize("forest", solve(problems.forest(), Sparse(0.5)))
    >>> forest.states, forest.pairs, forest.support_ratio, forest.certified_ratio
    (3, 6, 0.5, 1.0)
    """
    mdp = solution.mdp
    expected_return, entropy, regularized_return = math.nan, math.nan, solution.regularized_return
    proven_in, proven_out, certified_ratio, gap = None, None, math.nan, math.nan
    if evaluated:
        expected_return, entropy, regularized_return = _returns(solution)
        certified = solution.pair_certified_support
        proven_in, proven_out = (int(np.count_nonzero(certified == sign)) for sign in (1, -1))
        certified_ratio = (proven_in + proven_out) / mdp.n_pairs
        gap = float(mdp.initial @ gap_certificate(mdp, solution))
    return Summary(
        **shared_numbers(source, solution),
        terminal=int(np.count_nonzero(mdp.terminal)),
        transitions=int(mdp.transitions.nnz),
        certified_in=proven_in,
        certified_out=proven_out,
        certified_ratio=certified_ratio,
        expected_return=expected_return,
        entropy=entropy,
        regularized_return=regularized_return,
        gap_certificate=gap,
    )


def shared_numbers(source: str, solution: Any) -> dict[str, Any]:
    """The numbers that the summaries of stored models and of models from functions share."""
    mdp, regularizer = solution.mdp, solution.regularizer
    copied = ("method", "iterations", "sweeps", "seconds", "converged", "error", "support_ratio")
    return {
        "source": source,
        "states": mdp.n_states,
        "actions": mdp.n_actions,
        "pairs": mdp.n_pairs,
        "discount": mdp.discount,
        "regularizer": regularizer.name,
        "alpha": float(regularizer.alpha),
        "q": regularizer.q if PARAMETERS[regularizer.name] else None,
        "tolerance": float(solution.tolerance),
        "value_min": float(solution.value.min()),
        "value_max": float(solution.value.max()),
        "performance_bound": performance_bound(mdp, regularizer),
        **{name: getattr(solution, name) for name in copied},
    }


def _returns(solution: Solution) -> tuple[float, float, float]:
    """J, entropy and regularised return; NaN where the discount is too near to 1 for float64."""
    try:
        found = evaluate(solution.mdp, solution.pair_policy, solution.regularizer)
    except InvalidInput:
        return math.nan, math.nan, math.nan
    return found.expected_return, found.entropy, found.regularized_return


def as_json(summary: Any, **more: Any) -> str:
    """A dataclass as a JSON object with `more` fields; a number that is not finite is null."""
    numbers = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(summary).items()
    }
    return json.dumps({**numbers, **more}, indent=2, allow_nan=False)


def proven_digits(error: float) -> int:
    """Decimals that an error bound leaves certain to within a unit, from 0 to 12.

    >>> proven_digits(3e-7), proven_digits(20.0)
    (7, 0)
    """
    return max(0, min(12, -math.floor(math.log10(error)) if error > 0 else 12))


def as_text(s: Summary) -> str:
    """The summary as aligned lines, with as many digits as are proven."""
    used = round(s.support_ratio * s.pairs)
    digits = proven_digits(s.error)

    number = partial(number_text, digits=digits)
    entropy = "not known" if math.isnan(s.entropy) else f"{s.entropy:.6g}"
    rows = {
        "problem": f"{s.source}, discount {s.discount:.12g}",
        "size": size_text(s),
        "regularizer": regularizer_text(s.regularizer, s.alpha, s.q),
        "method": f"{s.method}: {plural(s.iterations, 'iteration')}, {plural(s.sweeps, 'sweep')}, "
        f"{s.seconds:.3g} s",
        "value": f"{number(s.value_min)} to {number(s.value_max)}",
        "error": f"{s.error:.2g} at most (tolerance {s.tolerance:g}; "
        f"enclosure width {2 * s.error:.2g})",
        "support ratio": f"{s.support_ratio:.4f} ({used:,} of {s.pairs:,} pairs)",
        "certified": certified_text(s),
        "expected return": f"{number(s.expected_return)} (J)",
        "regularized return": f"{number(s.regularized_return)} (entropy {entropy})",
        "performance bound": f"{s.performance_bound:.6g} "
        "(the most that the exact optimum's J can lose, by theorem)",
        "gap certificate": f"{s.gap_certificate:.6g} (the most that J of this policy can lose)",
    }
    if s.certified_in is None:  # not evaluated
        del rows["expected return"], rows["gap certificate"], rows["certified"]
        rows["regularized return"] = number(s.regularized_return)
    return aligned(rows.items())


def number_text(x: float, digits: int) -> str:
    """A number with `digits` decimals.

    >>> number_text(1234.5, 2), number_text(math.nan, 2)
    ('1,234.50', 'not known')
    """
    return "not known" if math.isnan(x) else f"{x:,.{digits}f}"


def size_text(s: Any) -> str:
    """The size of the MDP of a summary."""
    ends = f" ({s.terminal} terminal)" if s.terminal else ""
    return (
        f"{plural(s.states, 'state')}{ends}, {plural(s.actions, 'action')}, "
        f"{plural(s.pairs, 'pair')}, {plural(s.transitions, 'transition')}"
    )


def regularizer_text(name: str, alpha: float, q: float | None) -> str:
    """The name of a regulariser with its parameters."""
    index = f", q {q:g}" if "q" in PARAMETERS[name] else ""
    return name + (f", alpha {alpha:g}{index}" if alpha else "")


def certified_text(s: Any) -> str:
    """How many pairs are proven to be in the support of pi* or not to be."""
    if s.certified_in is None or s.certified_out is None:
        return "not known"
    undecided = s.pairs - s.certified_in - s.certified_out
    return (
        f"{s.certified_ratio:.2%} of the pairs: {s.certified_in:,} in the support, "
        f"{s.certified_out:,} out, {undecided:,} open"
    )
