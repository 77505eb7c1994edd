"""Agents against each other over all tasks: the probability that a run of one returns more."""

from itertools import combinations

from tsallax.paper.result import Line
from tsallax.paper.suites.suite_cells import SuiteRuns
from tsallax.paper.tables.formatting import shown
from tsallax.statistics import FAILS, HOLDS, INCONCLUSIVE, improvement, resample
from tsallax.wording import plural

WORDS = {HOLDS: "returns more", FAILS: "returns less", INCONCLUSIVE: INCONCLUSIVE}


def comparison_rows(runs: SuiteRuns) -> tuple[Line, ...]:
    """A row for each two agents, over the tasks on which both have runs of the same steps.

    The probability is averaged over tasks, each with its own runs; ties count half.
    """
    returns = {key: cell.greedy for key, cell in runs.cells.items()}
    weights = resample({key: len(values) for key, values in returns.items()})
    rows: list[Line] = []
    for x, y in combinations(runs.agents, 2):
        pairs = [(runs.cell(place, x), runs.cell(place, y)) for place in runs.places]
        matches = [
            ((a.place, x), (b.place, y))
            for a, b in pairs
            if a is not None and b is not None and a.is_as_long_as(b)
        ]
        if not matches:
            continue
        chance = improvement(returns, weights, matches)
        rows.append(
            {
                "agent": x,
                "against": y,
                "probability to return more": shown(chance, 2),
                "verdict": WORDS[chance.verdict(0.5)],
                "over": plural(len(matches), "task"),
            }
        )
    return tuple(rows)
