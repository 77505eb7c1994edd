"""Figure 1: the more actions, the more a softmax policy loses; a sparse one hardly does.

A point mass moves among four reward maxima, with 9 or 49 velocities to choose from.  At every
state, V*(s) - V_pi(s) of the plain MDP is the loss of the sparse and of the softmax policy.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tsallax.paper.result import (
    Comparison,
    Picture,
    Progress,
    Result,
    Table,
    chosen,
    require_within,
    tidy,
)
from tsallax.planning.evaluation import evaluate, gap_certificate, performance_bound
from tsallax.planning.solver import solve
from tsallax.plotting import COLOUR, GREY, MAP, letter, paper_style
from tsallax.problems.multigoal_mdp import (
    GOALS,
    MARKED,
    SIZE,
    multigoal,
    multigoal_actions,
    multigoal_axis,
    multigoal_state,
)
from tsallax.regularizer import Hard, by_name

Floats = NDArray[np.float64]
KINDS = ("sparse", "soft")
TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class _Level:
    """The solution for one number of actions: V*, Q*(s, .) at the marked state, and by regulariser
    the policy there, the difference to the optimum, its mean certificate and its bound."""

    actions: int
    optimal: Floats
    values: Floats
    policy: dict[str, Floats]
    difference: dict[str, Floats]
    certificate: dict[str, float]
    bound: dict[str, float]


def compute(
    report: Progress = lambda share: None,
    *,
    actions: tuple[int, int] = (9, 49),
    alpha: float = 0.3,
    grid: int = 31,
) -> Result:
    """Reward, action values, policies and the loss of each policy, for few and for many actions.

    `actions` are two squares of odd numbers, `grid` is the number of points of each coordinate.
    """
    levels = []
    for n in actions:
        levels.append(_level(n, alpha, grid))
        report(len(levels) / (len(actions) + 1))
    reward = multigoal(actions[0], grid=grid).rewards[:: actions[0]]
    with paper_style():
        picture = Picture("figure1", _draw(reward, levels, grid, alpha), _alt(levels, alpha))
    report(1.0)
    return Result(
        name="figure1",
        caption=_caption(levels, alpha),
        parameters={
            "problem": "multigoal",
            **chosen(multigoal, actions=actions, grid=grid),
            "goals": GOALS,
            "marked_location": MARKED,
            "marked_state": multigoal_state(MARKED, grid),
            "alpha": alpha,
            "tolerance": TOLERANCE,
        },
        tables=(_states(reward, levels, grid), _actions(levels)),
        comparison=_comparison(levels),
        pictures=(picture,),
    )


def _level(n: int, alpha: float, grid: int) -> _Level:
    mdp = multigoal(n, grid=grid)
    hard = solve(mdp, Hard(), TOLERANCE, progress=False)
    marked = multigoal_state(MARKED, grid)
    policy, difference, certificate, bound = {}, {}, {}, {}
    for kind in KINDS:
        regularizer = by_name(kind, alpha)
        solution = solve(mdp, regularizer, TOLERANCE, progress=False)
        loss = hard.value - evaluate(mdp, solution.pair_policy).value
        proof, worst = gap_certificate(mdp, solution), performance_bound(mdp, regularizer)
        slack = 10 * TOLERANCE
        require_within(f"the {kind} loss over its certificate", (loss - proof).max(), 0.0, slack)
        require_within(f"the {kind} certificate", proof.max(), worst, slack)
        policy[kind], difference[kind] = solution.policy[marked], loss
        certificate[kind], bound[kind] = float(proof.mean()), worst
    return _Level(n, hard.value, hard.q[marked], policy, difference, certificate, bound)


def _draw(reward: Floats, levels: list[_Level], grid: int, alpha: float) -> Figure:
    figure = Figure(figsize=(7.6, 6.6))
    rows = figure.add_gridspec(3, 1, hspace=0.36, left=0.075, right=0.985, top=0.955, bottom=0.145)
    top = rows[0].subgridspec(1, 4, wspace=0.45)
    _draw_reward(figure, figure.add_subplot(top[0]), reward, grid)
    for column, level in enumerate(levels, start=1):
        axes = figure.add_subplot(top[column])
        image = _velocities(axes, level.values, f"$Q^*(s,\\cdot)$, {level.actions} actions")
        _bar(figure, axes, image)
    _draw_means(figure.add_subplot(top[3]), levels)

    chance = Normalize(0, max(p.max() for level in levels for p in level.policy.values()))
    most = max(d.max() for level in levels for d in level.difference.values())
    gap = Normalize(0, most)
    names = {"sparse": "sparse policy", "soft": "softmax policy"}
    for row, kind in enumerate(KINDS, start=1):
        cells = rows[row].subgridspec(1, 4, wspace=0.24)
        for column, level in enumerate(levels):
            left, right = (figure.add_subplot(cells[2 * column + i]) for i in range(2))
            title = f"{names[kind]}, {level.actions} actions"
            policy = _velocities(left, level.policy[kind], title, chance)
            loss = _map(right, level.difference[kind].reshape(grid, grid), gap)
            right.set_title(f"difference, mean {level.difference[kind].mean():.2f}")
            if column == 0:
                letter(left, f"({'abc'[row]})", x=-0.16)
    for start, image, label in (
        (0.075, policy, "probability of the velocity in $s$ (blank: exactly zero)"),
        (0.565, loss, "difference to the optimum, $V^*(s)-V_\\pi(s)$ (darker is better)"),
    ):
        place = figure.add_axes((start, 0.078, 0.42, 0.014))
        figure.colorbar(image, cax=place, orientation="horizontal", label=label)
    return figure


def _draw_reward(figure: Figure, axes: Axes, reward: Floats, grid: int) -> None:
    image = _map(axes, reward.reshape(grid, grid), Normalize(0, 1))
    axes.plot(*MARKED, marker="x", color="#FF3B30", markersize=7, markeredgewidth=2)
    place: Any = {"xytext": (6, 4), "textcoords": "offset points"}
    axes.annotate("$s$", MARKED, **place, color="white", fontsize=9)
    axes.set_title("reward $r(x, y)$")
    letter(axes, "(a)", x=-0.16)
    _bar(figure, axes, image)


def _draw_means(axes: Axes, levels: list[_Level]) -> None:
    places = np.arange(len(levels))
    for i, kind in enumerate(KINDS):
        means = [level.difference[kind].mean() for level in levels]
        drawn = axes.bar(places + 0.4 * (i - 0.5), means, 0.36, color=COLOUR[kind], label=kind)
        axes.bar_label(drawn, [f"{m:.2f}" for m in means], fontsize=6.5, padding=1.5)
    axes.set_xticks(places, [f"{level.actions}" for level in levels])
    axes.set_xlabel("number of actions", labelpad=1)
    axes.set_title("mean difference")
    axes.set_box_aspect(0.95)
    axes.tick_params(length=2, pad=2)
    axes.margins(y=0.16)
    axes.legend(loc="upper left", handlelength=0.9, borderaxespad=0.1)


def _map(axes: Axes, values: Floats, scale: Normalize) -> Any:
    """Draw a function of the location, x to the right and y upwards."""
    return _image(axes, values, SIZE, 2, scale)


def _velocities(axes: Axes, values: Floats, title: str, scale: Normalize | None = None) -> Any:
    """Draw a function of the velocity as a grid of cells; zero probabilities are left blank."""
    side = round(len(values) ** 0.5)
    half = SIZE + SIZE / (side - 1)
    cells = np.ma.masked_where(values == 0.0, values) if scale else np.ma.asarray(values)
    axes.set_facecolor("#ededed")
    image = _image(axes, cells.reshape(side, side), half, 3, scale)
    edges = np.linspace(-half, half, side + 1)
    axes.hlines(edges, edges[0], edges[-1], color="white", linewidth=0.5)
    axes.vlines(edges, edges[0], edges[-1], color="white", linewidth=0.5)
    axes.set_title(title)
    return image


def _image(axes: Axes, values: Floats, half: float, tick: int, scale: Normalize | None) -> Any:
    """Draw a square of values from -half to half."""
    image = axes.imshow(
        values.T, origin="lower", extent=(-half, half, -half, half), cmap=MAP, norm=scale,
        interpolation="nearest",
    )  # fmt: skip
    axes.set_xticks([-tick, 0, tick])
    axes.set_yticks([-tick, 0, tick])
    axes.tick_params(length=2, pad=2, colors=GREY)
    axes.spines[:].set_visible(False)
    return image


def _bar(figure: Figure, axes: Axes, image: Any) -> None:
    bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.05)
    bar.ax.tick_params(labelsize=6.5, length=2, pad=1.5)
    bar.outline.set_linewidth(0.4)


def _states(reward: Floats, levels: list[_Level], grid: int) -> Table:
    axis = multigoal_axis(grid)
    columns = {"x": np.repeat(axis, grid), "y": np.tile(axis, grid), "reward": reward}
    for level in levels:
        columns[f"optimal_value_{level.actions}"] = level.optimal
        for kind in KINDS:
            columns[f"{kind}_difference_{level.actions}"] = level.difference[kind]
    rows = tuple({key: tidy(column[s]) for key, column in columns.items()} for s in range(grid**2))
    return Table("figure1", "every location: reward, optimal value, difference to it", rows)


def _actions(levels: list[_Level]) -> Table:
    rows = tuple(
        {
            "actions": level.actions,
            "vx": tidy(vx),
            "vy": tidy(vy),
            "optimal_action_value": tidy(level.values[a]),
            **{f"{kind}_probability": tidy(level.policy[kind][a]) for kind in KINDS},
        }
        for level in levels
        for a, (vx, vy) in enumerate(multigoal_actions(level.actions))
    )
    return Table("figure1-actions", "every velocity at the marked state s", rows)


def _used(level: _Level, kind: str) -> int:
    return int(np.count_nonzero(level.policy[kind]))


def _caption(levels: list[_Level], alpha: float) -> tuple[str, ...]:
    few, many = levels
    return (
        "A point mass moves in the plane; an action is a velocity in [−3, 3] × [−3, 3]. (a) The "
        "reward has four maxima; next to it the optimal action values at the state s marked by the "
        f"cross, with {few.actions} and {many.actions} actions, and the mean over all states of "
        "the loss that (b) and (c) map. (b) The sparse policy at s, and at each state the "
        "difference between the optimal value and the value of that policy, both of the rewards "
        "alone. (c) The same for the softmax policy, on the same two colour scales.",
        f"Both regularisers have α = {alpha:g}. At s the sparse policy uses "
        f"{_used(few, 'sparse')} of {few.actions} and {_used(many, 'sparse')} of {many.actions} "
        f"velocities and gives the others exactly zero; softmax gives some probability to all "
        f"{_used(many, 'soft')}. The paper names neither the rewards' width, the time step, the "
        "noise, the discount nor α: ours are in the parameter file.",
    )


def _comparison(levels: list[_Level]) -> tuple[Comparison, ...]:
    few, many = levels
    both, most = f"{few.actions} and {many.actions} actions", f"{many.actions} actions"
    names = {"sparse": "sparse", "soft": "softmax"}
    return (
        *(
            Comparison(
                f"mean difference to the optimum, {both}, {names[kind]}",
                f"{affected} affected by more actions (map only)",
                " and ".join(f"{level.difference[kind].mean():.3f}" for level in levels),
            )
            for kind, affected in (("sparse", "less"), ("soft", "more"))
        ),
        Comparison(
            f"velocities used at s of {many.actions}, sparse and softmax",
            "several modes; all of them",
            f"{_used(many, 'sparse')} and {_used(many, 'soft')}",
        ),
        *(
            Comparison(
                f"instance certificate and theorem's bound, {most}, {names[kind]}",
                "not given",
                f"{many.certificate[kind]:.3f} and {many.bound[kind]:.3f}",
            )
            for kind in KINDS
        ),
    )


def _alt(levels: list[_Level], alpha: float) -> str:
    few, many = levels
    return (
        "Three rows of heat maps. Top: a reward map with four bright spots around a red cross, "
        f"action values at the cross for {few.actions} and {many.actions} velocities, and bars of "
        "the mean loss. Middle: the sparse policy has a few coloured cells and its loss maps are "
        "dark. Bottom: the softmax policy colours every cell and its loss maps are bright, "
        f"brightest with {many.actions} actions. Alpha is {alpha:g}."
    )
