"""The best of a sweep next to the best of the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tsallax.paper.result import Comparison, Row
from tsallax.paper.sweep.tasks import EXPLORE, PaperResult, paper_results
from tsallax.paper.tables.cells import DDPG, Cell, Runs
from tsallax.paper.tables.formatting import EXPLORERS, digits, episodes, listed, number, shown
from tsallax.paper.tables.table_figures import OWN
from tsallax.statistics import Estimate, mean_of


def best_rows(sweep: Runs) -> tuple[Row, ...]:
    """The highest return and the fewest episodes of each way to explore, ours and the paper's."""
    paper = paper_results(sweep.task)
    rows: list[Row] = []
    for n in sweep.actions:
        for explore in EXPLORE:
            cells = list(dict.fromkeys(sweep.of("explore", explore, n)))
            if not cells:
                continue
            high = _highest({cell: float(sweep.greedy[cell].mean()) for cell in cells})
            fast = _highest({cell: -float(sweep.waits[cell].mean()) for cell in cells})
            times = sweep.times[fast[0]]
            taken = mean_of(times[:, 0], sweep.weights[fast[0]])
            theirs = _of(paper, explore, n)
            said, quick = _top(theirs), _quick(theirs)
            rows.append(
                {
                    "exploration": EXPLORERS[explore],
                    "actions": n,
                    "best return": shown(_mean(sweep, high[0]), digits(sweep.task)),
                    "of": _few([cell[0] for cell in high]),
                    "paper's best": said[0],
                    "of, there": said[1],
                    "fewest episodes": episodes(times, taken),
                    "by": _few([cell[0] for cell in fast]),
                    "paper's fewest": quick[0],
                    "by, there": quick[1],
                }
            )
    return tuple(rows)


def _highest(values: Mapping[Cell, float]) -> list[Cell]:
    """The cells that share the highest value."""
    top = max(values.values())
    return [cell for cell, value in values.items() if round(top - value, 9) == 0]


def _mean(sweep: Runs, cell: Cell) -> Estimate:
    return mean_of(sweep.greedy[cell], sweep.weights[cell])


def _of(paper: Mapping[Cell, PaperResult], explore: str, actions: int) -> dict[str, PaperResult]:
    stem = f"{EXPLORE[explore]}+"
    return {one: cell for (one, n), cell in paper.items() if n == actions and one.startswith(stem)}


def _top(cells: Mapping[str, PaperResult]) -> tuple[float | str, str]:
    top = max((cell.expected_return for cell in cells.values()), default=None)
    names = [one for one, cell in cells.items() if cell.expected_return == top]
    return ("", "") if top is None else (top, _few(names))


def _quick(cells: Mapping[str, PaperResult]) -> tuple[int | str, str]:
    least = min((c.episodes for c in cells.values() if c.episodes is not None), default=None)
    names = [one for one, cell in cells.items() if cell.episodes == least]
    return ("", "") if least is None else (least, _few(names))


def _few(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} algorithms"


def comparison(sweep: Runs) -> tuple[Comparison, ...]:
    """The paper's numbers of most interest and ours."""
    paper = paper_results(sweep.task)
    decimals = digits(sweep.task)
    lines = []
    for n in sweep.actions:
        ours = {cell: float(v.mean()) for cell, v in sweep.greedy.items() if cell[1] == n}
        best = _highest(ours)
        text = f"{shown(_mean(sweep, best[0]), decimals)} ({listed([one for one, _ in best], 2)})"
        lines.append(Comparison(f"best return at {n:,} actions", _best(paper, n), text))
    for n in sweep.actions:
        if (OWN, n) in sweep.cells:
            known = sweep.times[OWN, n]
            said = paper.get((OWN, n))
            lines.append(
                Comparison(
                    f"{OWN}: episodes to {number(sweep.threshold, 0)} at {n:,} actions",
                    "" if said is None or said.episodes is None else number(said.episodes, 0),
                    episodes(known, mean_of(known[:, 0], sweep.weights[OWN, n])),
                )
            )
    if DDPG in sweep.cells:
        own = _mean(sweep, DDPG)
        said = paper.get(DDPG)
        text = "" if said is None else number(said.expected_return, 1)
        lines.append(Comparison("DDPG: expected return", text, shown(own, decimals)))
    return tuple(lines)


def _best(paper: dict[Cell, PaperResult], actions: int) -> str:
    mine = {one: cell.expected_return for (one, n), cell in paper.items() if n == actions}
    if not mine:
        return ""
    top = max(mine.values())
    names = [one for one, value in mine.items() if value == top]
    return f"{number(top, 1)} ({listed(names, 2)})"
