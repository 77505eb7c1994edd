"""Figure 2b: the share of the actions that a policy uses, against alpha.

A sparse policy's support is exact, and proven by the solver's enclosure of Q*.  A softmax policy
uses every action, so any ratio below 1.00 counts the actions above some probability.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tsallax.errors import InvalidInput
from tsallax.paper.result import Comparison, Line, Picture, Progress, Result, Table, chosen, tidy
from tsallax.planning.solver import solve
from tsallax.plotting import GREY, MARKER, SOFT, SPARSE, paper_style
from tsallax.problems.unicycle_mdp import unicycle
from tsallax.regularizer import Soft, Sparse

THRESHOLD = 1e-3
OTHERS = (1e-2, 1e-6)
TOLERANCE = 1e-7
PAPER = {"sparse": {0.1: 0.24, 100.0: 0.99}, "soft": {0.1: 0.79, 100.0: 1.00}}
"""The support ratios of the paper, by regulariser and alpha."""


def compute(
    report: Progress = lambda share: None,
    *,
    actions: int = 25,
    alphas: Sequence[float] | None = None,
    grid: tuple[int, int, int] = (21, 21, 12),
) -> Result:
    """Support ratios of sparse and softmax policies over a range of alpha.

    By default, `alphas` are 13 from 0.1 to 100, evenly on a logarithmic scale.
    """
    coefficients = np.geomspace(0.1, 100.0, 13) if alphas is None else np.asarray(alphas)
    if coefficients.ndim != 1 or len(coefficients) < 2 or not (np.diff(coefficients) > 0).all():
        raise InvalidInput(f"alphas must be two or more, each larger than the last: {alphas}")
    mdp = unicycle(actions, grid=grid)
    rows: list[Line] = []
    for alpha in coefficients:
        sparse = solve(mdp, Sparse(float(alpha)), TOLERANCE, progress=False)
        soft = solve(mdp, Soft(float(alpha)), TOLERANCE, progress=False)
        proven = sparse.certified_support
        row = {
            "alpha": alpha,
            "sparse": sparse.support_ratio,
            "sparse_proven_in": np.count_nonzero(proven == 1) / mdp.n_pairs,
            "sparse_not_proven_out": 1 - np.count_nonzero(proven == -1) / mdp.n_pairs,
            **{f"soft_above_{t:g}": np.mean(soft.pair_policy > t) for t in (THRESHOLD, *OTHERS)},
        }
        rows.append({name: tidy(share) for name, share in row.items()})
        report(len(rows) / (len(coefficients) + 1))
    with paper_style():
        picture = Picture("figure2b", _draw(rows, actions), _alt(rows))
    report(1.0)
    return Result(
        name="figure2b",
        caption=_caption(rows, actions, grid, mdp.discount),
        parameters={
            "problem": "unicycle",
            **chosen(unicycle, actions=actions, grid=grid),
            "alphas": [row["alpha"] for row in rows],
            "soft_threshold": THRESHOLD,
            "other_thresholds": OTHERS,
            "tolerance": TOLERANCE,
        },
        tables=(Table("figure2b", "share of the state-action pairs used", tuple(rows), "folded"),),
        comparison=_comparison(rows),
        pictures=(picture,),
    )


def _column(rows: Sequence[Line], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def _draw(rows: Sequence[Line], actions: int) -> Figure:
    figure = Figure(figsize=(5.6, 3.7), layout="constrained")
    axes = figure.subplots()
    alpha = _column(rows, "alpha")
    axes.plot(
        alpha, _column(rows, "sparse"), color=SPARSE, marker=MARKER["sparse"],
        label="sparse, exact support",
    )  # fmt: skip
    low, high = _column(rows, "sparse_proven_in"), _column(rows, "sparse_not_proven_out")
    if np.any(high > low):
        axes.fill_between(
            alpha, low, high, color=SPARSE, alpha=0.25, linewidth=0,
            label="sparse, neither proven in nor out",
        )  # fmt: skip
    axes.plot(
        alpha, _column(rows, f"soft_above_{THRESHOLD:g}"), color=SOFT, marker=MARKER["soft"],
        label=f"soft, probability above {_power(THRESHOLD)}",
    )  # fmt: skip
    for threshold, dashes in zip(OTHERS, ((0, (2, 2)), (0, (6, 2))), strict=True):
        axes.plot(
            alpha, _column(rows, f"soft_above_{threshold:g}"), color=SOFT, linewidth=0.9,
            linestyle=dashes, label=f"soft, probability above {_power(threshold)}",
        )  # fmt: skip
    for kind, colour in (("sparse", SPARSE), ("soft", SOFT)):
        axes.plot(
            [*PAPER[kind]], [*PAPER[kind].values()], linestyle="none", marker="D", markersize=9,
            markerfacecolor="none", markeredgecolor=colour, markeredgewidth=1.3,
            label=f"{kind}, the paper's end points", clip_on=False, zorder=5,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("regularisation coefficient $\\alpha$")
    axes.set_ylabel(f"support ratio at {actions} actions")
    axes.tick_params(colors=GREY)
    axes.grid(axis="y")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, columnspacing=1.6)
    return figure


def _power(threshold: float) -> str:
    return f"$10^{{{np.log10(threshold):.0f}}}$"


def _caption(
    rows: Sequence[Line], actions: int, grid: tuple[int, ...], gamma: float
) -> tuple[str, ...]:
    open_share = _column(rows, "sparse_not_proven_out") - _column(rows, "sparse_proven_in")
    share = f"for {1 - open_share.max():.2%} of the pairs or more" if open_share.any() else ""
    size = " × ".join(str(g) for g in grid)
    grows = bool(np.all(np.diff(_column(rows, "sparse")) > 0))
    return (
        f"The share of all state-action pairs that the optimal policy of the unicycle uses, with "
        f"{actions} actions on a grid of {size}, γ = {gamma:g}. The sparse support is exact: "
        "zeros are exact zeros, and the solver's enclosure of the optimum proves "
        f"{share or 'for every pair'}, at every α, whether it is in the "
        "support. A softmax support is the whole action set, exactly 1.00, at every α; a "
        "smaller number needs a threshold, and the paper names none. Ours counts probabilities "
        f"above {THRESHOLD:g}; two others are drawn thin.",
        "The paper gives no grid, speeds, scales or discount for this experiment. Our parameters "
        "were chosen so that the curves end at its four numbers: the agreement at the ends is a "
        "fit, not a confirmation. What the fit does not force is the shape in between: the sparse "
        f"support {'grows' if grows else 'does not grow'} with α over the whole range.",
    )


def _comparison(rows: Sequence[Line]) -> tuple[Comparison, ...]:
    soft = f"soft_above_{THRESHOLD:g}"
    return tuple(
        Comparison(
            f"{kind} support ratio at α = {row['alpha']:g}",
            f"{PAPER[kind][row['alpha']]:.2f}",
            f"{float(row[column]):.3f}",
        )
        for kind, column in (("sparse", "sparse"), ("soft", soft))
        for row in rows
        if row["alpha"] in PAPER[kind]
    )


def _alt(rows: Sequence[Line]) -> str:
    first, last = rows[0], rows[-1]
    soft = f"soft_above_{THRESHOLD:g}"
    return (
        "Line chart of the support ratio against alpha on a logarithmic axis. Sparse rises from "
        f"{float(first['sparse']):.2f} to {float(last['sparse']):.2f}; soft with its threshold "
        f"from {float(first[soft]):.2f} to {float(last[soft]):.2f}. Diamonds at both ends mark "
        "the paper's values."
    )
