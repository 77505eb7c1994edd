"""Figure 2a: what regularisation costs, against the number of actions.

With pi the optimal policy of the regularised MDP, three numbers at the start d are

    value gap    d'V_reg - d'V*      how far the regularised optimum lies above the plain one
    return gap   d'V* - d'V_pi       how much reward the policy gives away: J(pi*) - J(pi)
    certificate  alpha W(pi)         the entropy that the policy collects

Both gaps are at least 0, they add up to the certificate, and the certificate is at most the bound
alpha Omega_max(|A|)/(1 - gamma) of Theorem 4 (sparse) and Theorem 5 (soft).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from tsallax.evaluate import evaluate, gap_certificate, performance_bound
from tsallax.mdp import MDP
from tsallax.paper.result import (
    Comparison,
    Picture,
    Report,
    Result,
    Row,
    Table,
    require_within,
    tidy,
)
from tsallax.paper.style import COLOUR, GREY, MARKER, letter, paper_style
from tsallax.problems.unicycle import unicycle
from tsallax.regularizer import Hard, Regularizer, by_name
from tsallax.solve import solve

KINDS = ("sparse", "soft")
TOLERANCE = 1e-7


def figure2a(
    report: Report = lambda share: None,
    *,
    actions: Sequence[int] = (9, 25, 49, 81, 121, 169, 225, 289),
    alphas: tuple[float, float] = (0.1, 0.001),
    grid: tuple[int, int, int] = (15, 15, 12),
) -> Result:
    """Both gaps, the certificate and the bound of sparse and soft, for each number of actions.

    Args:
        report: told the share of the work that is done.
        actions: the numbers of actions, squares.
        alphas: the coefficients, one row of panels each.
        grid: number of grid points of (x, y, heading).
    """
    rows: list[Row] = []
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
        title="Figure 2a: performance gap against the number of actions",
        caption=_caption(rows, alphas, grid, gamma),
        parameters={
            "problem": "unicycle",
            "actions": list(actions),
            "alphas": list(alphas),
            "grid": list(grid),
            "discount": gamma,
            "other_parameters": "the defaults of tsallax.problems.unicycle",
            "tolerance": TOLERANCE,
        },
        tables=(Table("figure2a", "gaps and bounds at the start", tuple(rows), "folded"),),
        comparison=_comparison(rows, alphas, gamma),
        pictures=(picture,),
    )


def _measure(mdp: MDP, n: int, alphas: Sequence[float]) -> list[Row]:
    """One row for each regulariser, after checking every inequality between its numbers."""
    cases = [by_name(kind, alpha) for alpha in alphas for kind in KINDS]
    solutions = [solve(mdp, regularizer, TOLERANCE, progress=False) for regularizer in cases]
    nearest = min(solutions, key=lambda s: performance_bound(mdp, s.regularizer))
    optimum = solve(mdp, Hard(), TOLERANCE, initial_value=nearest.value, progress=False)
    best = optimum.expected_return
    rows = []
    for solution in solutions:
        evaluation = evaluate(mdp, solution.pair_policy)
        rows.append(
            gap_row(
                n,
                solution.regularizer,
                value_gap=solution.expected_return - best,
                return_gap=best - evaluation.expected_return,
                certificate=float(mdp.initial @ gap_certificate(mdp, solution)),
                bound=performance_bound(mdp, solution.regularizer),
            )
        )
    return rows


def gap_row(
    n: int,
    regularizer: Regularizer,
    *,
    value_gap: float,
    return_gap: float,
    certificate: float,
    bound: float,
) -> Row:
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


def _series(rows: Sequence[Row], alpha: float, kind: str, column: str) -> np.ndarray:
    chosen = [row for row in rows if row["alpha"] == alpha and row["regularizer"] == kind]
    return np.array([float(row[column]) for row in chosen])


def log_slope(rows: Sequence[Row], alpha: float, kind: str, column: str) -> float:
    """Least-squares slope of a column against log|A|."""
    x = np.log(_series(rows, alpha, kind, "actions"))
    y = _series(rows, alpha, kind, column)
    return float(np.polyfit(x, y, 1)[0])


def _draw(rows: Sequence[Row], alphas: Sequence[float]) -> Figure:
    figure = Figure(figsize=(7.4, 2.75 * len(alphas) + 0.5), layout="constrained")
    panels = figure.subplots(len(alphas), 2, squeeze=False)
    for i, alpha in enumerate(alphas):
        for j, (column, name) in enumerate(
            (("value_gap", "value gap $d'V_{reg}-d'V^*$"), ("return_gap", "return gap $J^*-J_\\pi$"))
        ):
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


def _draw_panel(axes: Axes, rows: Sequence[Row], alpha: float, column: str) -> None:
    theorem = {"sparse": "Theorem 4", "soft": "Theorem 5"}
    for measure, words in (
        (column, "measured gap"),
        ("certificate", "certificate of the instance"),
        ("bound", "bound of {}"),
    ):
        for kind in KINDS:
            n = _series(rows, alpha, kind, "actions")
            look: dict[str, Any] = {
                column: {"marker": MARKER[kind]},
                "certificate": {"linestyle": ":", "linewidth": 1.2},
                "bound": {"linestyle": (0, (5, 2)), "linewidth": 1.2},
            }[measure]
            label = f"{kind}: {words.format(theorem[kind])}"
            axes.plot(n, _series(rows, alpha, kind, measure), color=COLOUR[kind], label=label, **look)
    axes.set_xscale("log")
    ticks = [int(t) for t in n]
    crowded = [b < 1.3 * a for a, b in zip(ticks[:-1], ticks[1:], strict=True)] + [False]
    axes.set_xticks(ticks, ["" if c else str(t) for t, c in zip(ticks, crowded, strict=True)])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", colors=GREY)
    if column == "return_gap":
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def _ends(rows: Sequence[Row], alpha: float, kind: str, column: str) -> str:
    y = _series(rows, alpha, kind, column)
    return f"{y[0]:.3g} to {y[-1]:.3g}"


def _caption(
    rows: Sequence[Row], alphas: Sequence[float], grid: tuple[int, ...], gamma: float
) -> tuple[str, ...]:
    large, small = alphas[0], alphas[-1]
    n = _series(rows, large, "soft", "actions")
    size = " x ".join(str(g) for g in grid)
    return (
        f"The unicycle on a grid of {size} (x, y, heading), discount {gamma:g}, with "
        f"{n[0]:.0f} to {n[-1]:.0f} actions. The gap has two readings. Left: the value gap, by "
        "which the optimal value of the regularised MDP, entropy included, lies above that of the "
        "plain MDP. Right: the return gap, the reward that the regularised policy gives away. "
        "Both are at least zero, together they are exactly the entropy that the policy collects "
        "(dotted: the certificate of this instance), and that is at most the theorem's bound "
        "(dashed). Each of these inequalities is checked when the figure is made.",
        "The value gap does what the paper describes: sparse levels off, soft grows like a "
        f"logarithm (at alpha = {large:g} its slope against log|A| is "
        f"{log_slope(rows, large, 'soft', 'value_gap'):.2f}, and alpha/(1 - gamma) is "
        f"{large / (1 - gamma):.2f}). The return gap does not, at every alpha: finer steps inside "
        "one and the same box of speeds and turns let a softmax policy converge to a density over "
        "the box, and its loss with it. "
        f"At alpha = {large:g} it is flat for soft ({_ends(rows, large, 'soft', 'return_gap')}) "
        f"and falls for sparse ({_ends(rows, large, 'sparse', 'return_gap')}); at alpha = "
        f"{small:g}, where few actions are still told apart, soft climbs "
        f"({_ends(rows, small, 'soft', 'return_gap')}) and sparse stays "
        f"({_ends(rows, small, 'sparse', 'return_gap')}).",
    )


def _comparison(
    rows: Sequence[Row], alphas: Sequence[float], gamma: float
) -> tuple[Comparison, ...]:
    lines = []
    for alpha in alphas:
        limit = alpha / (1 - gamma)
        lines += [
            Comparison(
                f"sparse value gap, alpha = {alpha:g}",
                f"converges, below {limit / 2:.4g}",
                _ends(rows, alpha, "sparse", "value_gap"),
            ),
            Comparison(
                f"soft value gap, alpha = {alpha:g}",
                "grows like a logarithm",
                _ends(rows, alpha, "soft", "value_gap"),
            ),
            Comparison(
                f"slope of the soft value gap against log|A|, alpha = {alpha:g}",
                f"the bound's: alpha/(1 - gamma) = {limit:.4g}",
                f"{log_slope(rows, alpha, 'soft', 'value_gap'):.4g} "
                f"({log_slope(rows, alpha, 'soft', 'value_gap') / limit:.0%})",
            ),
            Comparison(
                f"sparse and soft return gap, alpha = {alpha:g}",
                "not told apart from the value gap",
                f"{_ends(rows, alpha, 'sparse', 'return_gap')}; "
                f"{_ends(rows, alpha, 'soft', 'return_gap')}",
            ),
        ]
    least = min(float(row["margin"]) / float(row["bound"]) for row in rows)
    lines.append(
        Comparison(
            "gaps below their bounds",
            "always",
            f"all {2 * len(rows)}; closest: {math.floor(1000 * least) / 10:.1f}% of the bound left",
        )
    )
    return tuple(lines)


def _alt(alphas: Sequence[float]) -> str:
    return (
        "Line charts of the performance gap against the number of actions, one row for each alpha "
        f"({', '.join(f'{a:g}' for a in alphas)}). Left, the value gap: the soft curve rises in a "
        "straight line over the logarithmic axis, the sparse curve is low and flat. Right, the "
        "return gap on a logarithmic scale: soft lies above sparse. All curves lie below their "
        "dotted certificates and dashed bounds."
    )
