"""An alpha that follows the support, next to fixed alphas: by task, whether it is as good."""

from typing import Any

from tsallax.paper.result import Line
from tsallax.paper.suites.suite_cells import Place, SuiteCell, SuiteRuns, label, shown_return
from tsallax.paper.suites.suite_tasks import AUTO, OURS, WAYS
from tsallax.paper.tables.formatting import joined_words
from tsallax.statistics import MIN_RUNS

BEST, WITHIN, BELOW, TOO_FEW = "best", "within the interval", "below", "too few runs"


def alpha_rows(runs: SuiteRuns) -> tuple[Line, ...]:
    """A row for each place and way to explore that has both an automatic alpha and fixed ones."""
    rows: list[Line] = []
    for place in runs.places:
        for way in WAYS:
            cells = _cells(runs, place, way)
            automatic = next((cell for cell in cells if _alpha(cell) == AUTO), None)
            if automatic is None:
                continue
            fixed = [
                cell
                for cell in cells
                if isinstance(_alpha(cell), float) and _others(cell) == _others(automatic)
            ]
            if fixed:
                best = max(fixed, key=lambda cell: cell.mean.value)
                alphas = sorted({float(_alpha(cell)) for cell in fixed})
                rows.append(
                    {
                        "task": label(place),
                        "explore": way,
                        "automatic": shown_return(automatic.mean),
                        "best fixed": shown_return(best.mean),
                        "its alpha": _alpha(best),
                        "fixed alphas": joined_words([f"{alpha:g}" for alpha in alphas]),
                        "automatic is": _verdict(automatic, best),
                    }
                )
    return tuple(rows)


def _verdict(automatic: SuiteCell, fixed: SuiteCell) -> str:
    """Whether the automatic alpha has the best mean, or one within the best one's interval."""
    found, best = automatic.mean, fixed.mean
    if min(len(automatic.rows), len(fixed.rows)) < MIN_RUNS or best.low is None:
        return TOO_FEW
    if found.value >= best.value:
        return BEST
    return WITHIN if found.value >= best.low else BELOW


def _cells(runs: SuiteRuns, place: Place, way: str) -> list[SuiteCell]:
    """The cells of a place and a way to explore; the preset is the last of them."""
    mine = [cell for (where, _), cell in runs.cells.items() if where == place]
    named = [cell for cell in mine if cell.agent.startswith(f"{way}-")]
    ours = [cell for cell in mine if cell.agent == OURS]
    return named + [cell for cell in ours if cell.rows[0].config.get("explore") == way]


def _alpha(cell: SuiteCell) -> Any:
    return cell.rows[0].config.get("alpha")


def _others(cell: SuiteCell) -> dict[str, Any]:
    """The options in which agents that are compared must not differ, and the steps."""
    row = cell.rows[0]
    config = {name: value for name, value in row.config.items() if name not in ("alpha", "support")}
    return {**config, "steps": row.steps}
