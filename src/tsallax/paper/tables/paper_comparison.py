"""The best of a sweep next to the best of the paper's tables."""

from collections.abc import Callable, Mapping, Sequence

from tsallax.paper.result import Comparison, Line
from tsallax.paper.sweep.sweep_tasks import EXPLORE, PaperResult, paper_results
from tsallax.paper.tables.cells import DDPG_CELL, Cell, SweepRuns
from tsallax.paper.tables.formatting import EXPLORERS, digits, episodes, joined_words, number, shown
from tsallax.paper.tables.table_figures import OWN
from tsallax.statistics import Estimate, mean_of


def best_rows(sweep: SweepRuns) -> tuple[Line, ...]:
    """The highest return and the fewest episodes of each way to explore, ours and the paper's."""
    paper = paper_results(sweep.task)
    rows: list[Line] = []
    for n in sweep.actions:
        for explore in EXPLORE:
            cells = list(dict.fromkeys(sweep.cells_of_kind("explore", explore, n)))
            if not cells:
                continue
            high = _highest({cell: float(sweep.greedy[cell].mean()) for cell in cells})
            fast = _highest({cell: -float(sweep.capped_episodes[cell].mean()) for cell in cells})
            times = sweep.times[fast[0]]
            taken = mean_of(times.episodes, sweep.weights[fast[0]])
            theirs = _at(paper, n, f"{EXPLORE[explore]}+")
            paper_return, with_return = _best(theirs, "expected_return", max)
            paper_episodes, with_episodes = _best(theirs, "episodes", min)
            rows.append(
                {
                    "exploration": EXPLORERS[explore],
                    "actions": n,
                    "best return": shown(_mean(sweep, high[0]), digits(sweep.task)),
                    "of": _few([cell[0] for cell in high]),
                    "paper's best": "" if paper_return is None else paper_return,
                    "of, there": _few(with_return),
                    "fewest episodes": episodes(times.reached, taken),
                    "by": _few([cell[0] for cell in fast]),
                    "paper's fewest": "" if paper_episodes is None else paper_episodes,
                    "by, there": _few(with_episodes),
                }
            )
    return tuple(rows)


def _highest(values: Mapping[Cell, float]) -> list[Cell]:
    """The cells that share the highest value."""
    top = max(values.values())
    return [cell for cell, value in values.items() if round(top - value, 9) == 0]


def _mean(sweep: SweepRuns, cell: Cell) -> Estimate:
    return mean_of(sweep.greedy[cell], sweep.weights[cell])


def _at(paper: Mapping[Cell, PaperResult], actions: int, stem: str = "") -> dict[str, PaperResult]:
    """The paper's results at a number of actions, of the algorithms whose names begin so."""
    return {one: cell for (one, n), cell in paper.items() if n == actions and one.startswith(stem)}


def _best(
    cells: Mapping[str, PaperResult], measure: str, best: Callable[..., float | None]
) -> tuple[float | None, list[str]]:
    """The highest or lowest of a column of the paper's, and the algorithms that have it."""
    known = {one: getattr(cell, measure) for one, cell in cells.items()}
    known = {one: value for one, value in known.items() if value is not None}
    top = best(known.values(), default=None)
    return top, [one for one, value in known.items() if value == top]


def _few(names: Sequence[str]) -> str:
    return "".join(names) if len(names) < 2 else f"{len(names)} algorithms"


def comparison(sweep: SweepRuns) -> tuple[Comparison, ...]:
    """The paper's numbers of most interest and ours."""
    paper = paper_results(sweep.task)
    decimals = digits(sweep.task)
    lines = []
    for n in sweep.actions:
        ours = {cell: float(v.mean()) for cell, v in sweep.greedy.items() if cell[1] == n}
        best = _highest(ours)
        mean, which = _mean(sweep, best[0]), joined_words([one for one, _ in best], 2)
        text = f"{shown(mean, decimals)} ({which})"
        top, names = _best(_at(paper, n), "expected_return", max)
        theirs = "" if top is None else f"{number(top, 1)} ({joined_words(names, 2)})"
        lines.append(Comparison(f"best return at {n:,} actions", theirs, text))
    for n in sweep.actions:
        if (OWN, n) in sweep.cells:
            known = sweep.times[OWN, n]
            own = paper.get((OWN, n))
            what = f"{OWN}: episodes to {number(sweep.threshold, 0)} at {n:,} actions"
            theirs = "" if own is None or own.episodes is None else number(own.episodes, 0)
            text = episodes(known.reached, mean_of(known.episodes, sweep.weights[OWN, n]))
            lines.append(Comparison(what, theirs, text))
    if DDPG_CELL in sweep.cells:
        own = paper.get(DDPG_CELL)
        theirs = "" if own is None else number(own.expected_return, 1)
        ddpg = shown(_mean(sweep, DDPG_CELL), decimals)
        lines.append(Comparison("DDPG: expected return", theirs, ddpg))
    return tuple(lines)
