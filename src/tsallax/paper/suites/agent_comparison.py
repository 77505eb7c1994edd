"""Agents against each other over all tasks: the probability that a run of one returns more."""

from itertools import combinations

from tsallax.paper.result import Row
from tsallax.paper.suites.suite_cells import SuiteRuns
from tsallax.paper.tables.formatting import shown
from tsallax.statistics import FAILS, HOLDS, INCONCLUSIVE, improvement, resample
from tsallax.wording import plural

WORDS = {HOLDS: "returns more", FAILS: "returns less", INCONCLUSIVE: INCONCLUSIVE}


def comparison_rows(runs: SuiteRuns) -> tuple[Row, ...]:
    """A row for each two agents that have runs on all tasks, after the same steps.

    The probability is averaged over tasks, each with its own runs; ties count half.
    """
    complete = [
        agent for agent in runs.agents if all((place, agent) in runs.cells for place in runs.places)
    ]
    returns = {key: cell.greedy for key, cell in runs.cells.items()}
    weights = resample({key: len(values) for key, values in returns.items()})
    rows: list[Row] = []
    for x, y in combinations(complete, 2):
        matches = [((place, x), (place, y)) for place in runs.places]
        if any(runs.cells[a].rows[0].steps != runs.cells[b].rows[0].steps for a, b in matches):
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
