"""Figure 2a: what regularisation costs, against the number of actions.

With pi the optimal policy of the regularised MDP, three numbers at the start d are

    value gap    d'V_reg - d'V*      how far the regularised optimum lies above the plain one
    return gap   d'V* - d'V_pi       how much reward the policy gives away: J(pi*) - J(pi)
    certificate  alpha W(pi)         the entropy that the policy collects

Both gaps are at least 0, they add up to the certificate, and the certificate is at most the bound
alpha Omega_max(|A|)/(1 - gamma) of Theorem 4 (sparse) and Theorem 5 (soft).
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from tsallax.errors import InvalidInput
from tsallax.paper.result import (
    Comparison,
    Line,
    Picture,
    Progress,
    Result,
    Table,
    chosen,
    require_within,
    tidy,
)
from tsallax.planning.evaluation import evaluate, gap_certificate, performance_bound
from tsallax.planning.mdp import MDP
from tsallax.planning.solver import solve
from tsallax.plotting import COLOUR, GREY, MARKER, letter, paper_style
from tsallax.problems.unicycle_mdp import unicycle
from tsallax.regularizer import Hard, Regularizer, by_name

KINDS = ("sparse", "soft")
TOLERANCE = 1e-7
NAMES = {"value_gap": "value gap $d'V_{reg}-d'V^*$", "return_gap": "return gap $J(\\pi^*)-J(\\pi)$"}
LINES: dict[str, Any] = {
    "certificate": {"linestyle": ":", "linewidth": 1.2},
    "bound": {"linestyle": (0, (5, 2)), "linewidth": 1.2},
}


def compute(
    report: Progress = lambda share: None,
    *,
    actions: Sequence[int] = (9, 25, 49, 81, 121, 169, 225, 289),
    alphas: tuple[float, float] = (0.1, 0.001),
    grid: tuple[int, int, int] = (15, 15, 12),
) -> Result:
    """Both gaps, the certificate and the bound of sparse and soft, for each number of actions.

    `actions` are two or more squares, from few to many; each alpha has a row of panels.
    """
    if len(actions) < 2 or list(actions) != sorted(set(actions)):
        raise InvalidInput(f"actions must be two or more increasing numbers, not {actions}")
    rows: list[Line] = []
    for i, n in enumerate(actions):
        mdp = unicycle(n, grid=grid)
        rows += _measure(mdp, n, alphas)
        report(sum(actions[: i + 1]) / (1.05 * sum(actions)))
    gamma = mdp.discount
    with paper_style():
        picture = Picture("figure2a", _draw(rows, alphas), _alt(alphas))
    report(1.0)
    return Result(
        name="figure2a",
        caption=_caption(rows, alphas, grid, gamma),
        parameters={
            "problem": "unicycle",
            **chosen(unicycle, actions=actions, grid=grid),
            "alphas": alphas,
            "tolerance": TOLERANCE,
        },
        tables=(Table("figure2a", "gaps and bounds at the start", tuple(rows), "folded"),),
        comparison=_comparison(rows, alphas, gamma),
        pictures=(picture,),
    )


def _measure(mdp: MDP, n: int, alphas: Sequence[float]) -> list[Line]:
    """One row for each regulariser, after checking every inequality between its numbers."""
    cases = [by_name(kind, alpha) for alpha in alphas for kind in KINDS]
    solutions = [solve(mdp, regularizer, TOLERANCE, progress=False) for regularizer in cases]
    nearest = min(solutions, key=lambda s: performance_bound(mdp, s.regularizer))
    optimum = solve(mdp, Hard(), TOLERANCE, initial_value=nearest.value, progress=False)
    best = float(mdp.initial @ optimum.value)
    return [
        gap_row(
            n,
            solution.regularizer,
            value_gap=float(mdp.initial @ solution.value) - best,
            return_gap=best - evaluate(mdp, solution.pair_policy).expected_return,
            certificate=float(mdp.initial @ gap_certificate(mdp, solution)),
            bound=performance_bound(mdp, solution.regularizer),
        )
        for solution in solutions
    ]


def gap_row(
    n: int,
    regularizer: Regularizer,
    *,
    value_gap: float,
    return_gap: float,
    certificate: float,
    bound: float,
) -> Line:
    """A row of the data; BoundViolated where 0 <= gaps <= certificate <= bound does not hold."""
    slack = 10 * TOLERANCE
    name = f"{regularizer} with {n} actions:"
    for what, gap in (("value gap", value_gap), ("return gap", return_gap)):
        require_within(f"{name} minus the {what}", -gap, 0.0, slack)
        require_within(f"{name} the {what}", gap, certificate, slack)
    require_within(f"{name} the certificate", certificate, bound, slack)
    return {
        "alpha": float(regularizer.alpha),
        "regularizer": regularizer.name,
        "actions": n,
        "value_gap": tidy(value_gap),
        "return_gap": tidy(return_gap),
        "certificate": tidy(certificate),
        "bound": tidy(bound),
        "margin": tidy(bound - max(value_gap, return_gap)),
    }


def _series(rows: Sequence[Line], alpha: float, kind: str, column: str) -> np.ndarray:
    chosen = [row for row in rows if row["alpha"] == alpha and row["regularizer"] == kind]
    return np.array([float(row[column]) for row in chosen])


def log_slope(rows: Sequence[Line], alpha: float, kind: str, column: str) -> float:
    """Least-squares slope of a column against log|A|."""
    x = np.log(_series(rows, alpha, kind, "actions"))
    y = _series(rows, alpha, kind, column)
    return float(np.polyfit(x, y, 1)[0])


def _draw(rows: Sequence[Line], alphas: Sequence[float]) -> Figure:
    figure = Figure(figsize=(7.4, 2.75 * len(alphas) + 0.5), layout="constrained")
    panels = figure.subplots(len(alphas), 2, squeeze=False)
    for i, alpha in enumerate(alphas):
        for j, (column, name) in enumerate(NAMES.items()):
            axes = panels[i, j]
            _draw_panel(axes, rows, alpha, column)
            axes.set_title(f"{name}, $\\alpha={alpha:g}$")
            axes.set_ylabel("gap" if j == 0 else "gap (logarithmic)")
            letter(axes, f"({'abcdefgh'[2 * i + j]})", x=-0.1)
            if i == len(alphas) - 1:
                axes.set_xlabel("number of actions (logarithmic)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, columnspacing=2.0)
    return figure


def _draw_panel(axes: Axes, rows: Sequence[Line], alpha: float, column: str) -> None:
    theorem = {"sparse": "Theorem 4", "soft": "Theorem 5"}
    for measure, words in (
        (column, "measured gap"),
        ("certificate", "certificate of the instance"),
        ("bound", "bound of {}"),
    ):
        for kind in KINDS:
            n = _series(rows, alpha, kind, "actions")
            style = {column: {"marker": MARKER[kind]}, **LINES}[measure]
            label = f"{kind}: {words.format(theorem[kind])}"
            y = _series(rows, alpha, kind, measure)
            axes.plot(n, y, color=COLOUR[kind], label=label, **style)
    axes.set_xscale("log")
    ticks = [int(t) for t in n]
    crowded = [b < 1.3 * a for a, b in pairwise(ticks)] + [False]
    axes.set_xticks(ticks, ["" if c else str(t) for t, c in zip(ticks, crowded, strict=True)])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", colors=GREY)
    if column == "return_gap":
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def _ends(rows: Sequence[Line], alpha: float, kind: str, gap: str, paper: str) -> Comparison:
    """A gap for the fewest and for the most actions, next to what the paper says."""
    y = _series(rows, alpha, kind, f"{gap}_gap")
    return Comparison(f"{kind} {gap} gap, α = {alpha:g}", paper, f"{y[0]:.3g} to {y[-1]:.3g}")


def _trend(rows: Sequence[Line], alpha: float, kind: str) -> str:
    """The trend of the return gap over the range, with its ends."""
    y = _series(rows, alpha, kind, "return_gap")
    bound = _series(rows, alpha, kind, "bound")[-1]
    word = "climbs" if y[-1] > 1.1 * y[0] else "falls" if y[-1] < 0.9 * y[0] else "is flat"
    if max(y) < 0.01 * bound:
        word = "stays below a hundredth of its bound"
    return f"{word} ({y[0]:.3g} to {y[-1]:.3g})"


def _caption(
    rows: Sequence[Line], alphas: Sequence[float], grid: tuple[int, ...], gamma: float
) -> tuple[str, ...]:
    large, small = alphas[0], alphas[-1]
    n = _series(rows, large, "soft", "actions")
    size = " × ".join(str(g) for g in grid)
    return (
        f"The unicycle on a grid of {size} (x, y, heading), γ = {gamma:g}, with {n[0]:.0f} to "
        f"{n[-1]:.0f} actions. The paper measures the absolute difference between the expected "
        "returns of the plain and of the regularised MDP, which can be read in two ways. Left: "
        "the value gap, by which the optimal value of the regularised MDP, entropy included, lies "
        "above that of the plain MDP. Right: the return gap, the reward that the regularised "
        "policy gives away. Both are at least zero; together they are exactly α times the entropy "
        "that the policy collects (dotted: the certificate of this instance); and that is at most "
        "the theorem's bound (dashed). Each of these inequalities is checked when the figure is "
        "made.",
        "It is the value gap that does what the paper describes: sparse levels off, soft grows "
        f"like a logarithm (at α = {large:g} its slope against log|A| is "
        f"{log_slope(rows, large, 'soft', 'value_gap'):.2f}, where α/(1 − γ) is "
        f"{large / (1 - gamma):.2f}). The return gap need not: finer steps inside one and the same "
        "box of speeds and turns let a softmax policy converge to a density over the box, and its "
        f"loss with it. At α = {large:g} the soft return gap {_trend(rows, large, 'soft')} and the "
        f"sparse one {_trend(rows, large, 'sparse')}. At α = {small:g}, small enough to "
        f"distinguish neighbouring actions, the soft one {_trend(rows, small, 'soft')} and the "
        f"sparse one {_trend(rows, small, 'sparse')}.",
    )


def _comparison(
    rows: Sequence[Line], alphas: Sequence[float], gamma: float
) -> tuple[Comparison, ...]:
    lines = []
    same = "not distinguished from the value gap"
    for alpha in alphas:
        limit = alpha / (1 - gamma)
        slope = log_slope(rows, alpha, "soft", "value_gap")
        flat = f"levels off (limit of the bound: {limit / 2:.4g})"
        lines += [
            _ends(rows, alpha, "sparse", "value", flat),
            _ends(rows, alpha, "soft", "value", "grows like a logarithm"),
            Comparison(
                f"its slope against log|A|, α = {alpha:g}",
                f"not given (the bound's: {limit:.4g})",
                f"{slope:.4g}, {slope / limit:.0%} of the bound's",
            ),
            _ends(rows, alpha, "sparse", "return", same),
            _ends(rows, alpha, "soft", "return", same),
        ]
    least = min(float(row["margin"]) / float(row["bound"]) for row in rows)
    spare = f"with at least {math.floor(1000 * least) / 10:.1f}% to spare"
    lines.append(Comparison("gaps below their bounds", "always", f"all {2 * len(rows)}, {spare}"))
    return tuple(lines)


def _alt(alphas: Sequence[float]) -> str:
    return (
        "Line charts of the performance gap against the number of actions, one row for each alpha "
        f"({', '.join(f'{a:g}' for a in alphas)}). Left, the value gap: the soft curve rises in a "
        "straight line over the logarithmic axis, the sparse curve is low and flat. Right, the "
        "return gap on a logarithmic scale: soft lies above sparse. All curves lie below their "
        "dotted certificates and dashed bounds."
    )
