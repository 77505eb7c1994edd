"""The regularised solutions of an MDP at many alphas: `solve_path`."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tsallax import checks
from tsallax.errors import InvalidInput
from tsallax.interrupts import interruptible
from tsallax.planning.alpha_continuation import continued_points, point_solver, regularizer_family
from tsallax.planning.bellman import check_problem
from tsallax.planning.forms import Floats, frozen, numbers
from tsallax.planning.functional_mdp import FunctionalMDP
from tsallax.planning.mdp import MDP
from tsallax.planning.solution import make_frame
from tsallax.progress import bar
from tsallax.regularizer import Hard


@dataclass(frozen=True, eq=False, repr=False)
class AlphaPath:
    """Value, support and certified gap of the optimal policies at several alphas.

    Entry i of an array, and row i of `values`, belongs to alphas[i].

    Attributes:
        regularizer: the name of the regularisers.
        q: their entropic index.
        alphas: the coefficients, as given, shape (n,).
        values: V(s), shape (n, S), within `errors` of V*.
        errors: a bound on |values - V*| in every state, shape (n,).
        support_ratios: the share of the pairs that the policy uses, shape (n,); of a model from
            functions of all pairs of a state and an action, whether allowed or not.
        gaps: the largest loss of expected return, from the start, that the regulariser can cause:
            d'(V* - V_pi) of the plain MDP is at most this; shape (n,).
        worst_gaps: the same from the worst state, shape (n,).
        regularized_returns: d'V, shape (n,).
        expected_returns: J of the policy, d'V less its entropy bonus, to within the tolerance or
            1e-4 of the largest bonus; shape (n,).
    """

    mdp: MDP | FunctionalMDP
    regularizer: str
    q: float
    alphas: Floats
    values: Floats
    errors: Floats
    support_ratios: Floats
    gaps: Floats
    worst_gaps: Floats
    regularized_returns: Floats
    expected_returns: Floats

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """One row for each alpha, as arrays by name: all but the values of the states.

        >>> from tsallax import problems, solve_path
        >>> columns = solve_path(problems.forest(), [0.1, 1.0, 10.0]).to_columns()
        >>> columns["alpha"], columns["gap"].round(3)
        (array([ 0.1,  1. , 10. ]), array([ 0.   ,  0.   , 20.165]))
        """
        return {
            "alpha": self.alphas,
            "error": self.errors,
            "support_ratio": self.support_ratios,
            "gap": self.gaps,
            "worst_gap": self.worst_gaps,
            "regularized_return": self.regularized_returns,
            "expected_return": self.expected_returns,
        }

    def to_frame(self) -> Any:
        """The table of `to_columns` as a `pandas.DataFrame`; pandas has to be installed.

        >>> path.to_frame().plot("alpha", "gap", logx=True)  # doctest: +SKIP
        """
        return make_frame(self.to_columns)

    def plot(self, file: str | PathLike[str]) -> None:
        """Draw certified gap, return and support over alpha, into a file such as `path.png`."""
        from matplotlib.figure import Figure

        from tsallax.plotting import SPARSE, paper_style

        target = checks.output_file("file", file)
        known = Figure().canvas.get_supported_filetypes()
        if target.suffix and target.suffix[1:].lower() not in known:
            endings = ", ".join(f".{kind}" for kind in known)
            raise InvalidInput(f"file {file}: the name must end in one of {endings}")
        order = np.argsort(self.alphas)
        panels = (
            (self.gaps, "certified gap"),
            (self.expected_returns, "expected return"),
            (self.support_ratios, "support ratio"),
        )
        with paper_style():
            figure = Figure(figsize=(7.0, 2.2), layout="constrained")
            for axes, (numbers_of, label) in zip(figure.subplots(1, 3), panels, strict=True):
                axes.plot(self.alphas[order], numbers_of[order], "o-", color=SPARSE)
                axes.set(xscale="log", xlabel="alpha", ylabel=label)
            figure.savefig(target)

    def __repr__(self) -> str:
        return (
            f"AlphaPath({self.regularizer}, {len(self.alphas)} alphas from {self.alphas.min():.6g} "
            f"to {self.alphas.max():.6g}: gap {self.gaps.min():.3g} to {self.gaps.max():.3g}, "
            f"support {self.support_ratios.min():.1%} to {self.support_ratios.max():.1%}, "
            f"error <= {self.errors.max():.2g})"
        )


@interruptible()
def solve_path(
    mdp: MDP | FunctionalMDP,
    alphas: ArrayLike,
    regularizer: str = "sparse",
    tolerance: float = 1e-6,
    *,
    q: float | None = None,
    progress: bool | None = None,
) -> AlphaPath:
    """Solve the regularised MDP for many alphas, each from a prediction by the ones before.

    Every alpha has its own certificate; the result is that of as many calls of `solve` and
    `gap_certificate`.

    Args:
        mdp: the problem, stored or from functions.
        alphas: positive numbers, in any order.
        regularizer: "sparse", "soft" or "tsallis".
        tolerance: the largest allowed |value - V*|.
        q: the entropic index of "tsallis".
        progress: show a progress bar; default: on a terminal, for more than two seconds.

    >>> from tsallax import problems
    >>> path = solve_path(problems.forest(), [0.1, 1.0, 10.0])
    >>> path.support_ratios.round(2), path.gaps.round(3)
    (array([0.5, 0.5, 1. ]), array([ 0.   ,  0.   , 20.165]))
    """
    check_problem("solve_path", mdp, Hard(), (MDP, FunctionalMDP))
    tolerance = checks.number("tolerance", tolerance, above=0)
    make = regularizer_family(regularizer, q)
    given = np.array(numbers(alphas, "alphas"), np.float64)
    if given.ndim != 1 or given.size == 0:
        raise InvalidInput(f"alphas must be a list of numbers, not of shape {given.shape}")
    for alpha in given:
        make(float(alpha))
    n = len(given)
    values = np.empty((n, mdp.n_states))
    summary = {name: np.empty(n) for name in
               ("errors", "support_ratios", "gaps", "worst_gaps", "regularized_returns",
                "expected_returns")}  # fmt: skip
    rising = np.argsort(given, kind="stable")
    points = continued_points(point_solver(mdp, tolerance), [make(float(x)) for x in given[rising]])
    with bar("solving", progress) as report:
        for done, (i, point) in enumerate(zip(rising, points, strict=True)):
            values[i] = point.value
            start = float(mdp.initial @ point.value)
            summary["errors"][i] = point.error
            summary["support_ratios"][i] = point.support_ratio
            summary["gaps"][i] = float(mdp.initial @ point.gap)
            summary["worst_gaps"][i] = float(point.gap.max())
            summary["regularized_returns"][i] = start
            summary["expected_returns"][i] = start - float(mdp.initial @ point.bonus)
            report((done + 1) / n)
    return AlphaPath(
        mdp=mdp,
        regularizer=regularizer,
        q=float(make(1.0).q),
        alphas=frozen(given),
        values=frozen(values),
        **{name: frozen(array) for name, array in summary.items()},
    )
