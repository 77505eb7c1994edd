"""An alpha that follows the support, next to fixed alphas: by task, whether it is as good."""

from collections.abc import Mapping
from dataclasses import dataclass

from tsallax.paper.suites.suite_cells import Place, SuiteCell, SuiteRuns
from tsallax.paper.suites.suite_tasks import AUTO, OURS, WAYS
from tsallax.statistics import MIN_RUNS

BEST, WITHIN, BELOW, TOO_FEW = "best", "within the interval", "below", "too few runs"


@dataclass(frozen=True)
class AlphaComparison:
    """At one place and for one way to explore: the automatic alpha and the best fixed one."""

    place: Place
    way: str
    automatic: SuiteCell
    fixed: SuiteCell
    """That with the largest mean return."""
    alphas: tuple[float, ...]
    """All fixed alphas."""

    @property
    def verdict(self) -> str:
        """Whether the automatic alpha has the best mean, or one within the best one's interval."""
        found, best = self.automatic.mean, self.fixed.mean
        if min(len(self.automatic.rows), len(self.fixed.rows)) < MIN_RUNS or best.low is None:
            return TOO_FEW
        if found.value >= best.value:
            return BEST
        return WITHIN if found.value >= best.low else BELOW


def compare_alphas(runs: SuiteRuns) -> list[AlphaComparison]:
    """The comparisons of all places and ways to explore that have both kinds of alpha."""
    found = []
    for place in runs.places:
        for way in WAYS:
            cells = _by_alpha(runs, place, way)
            fixed = {alpha: cell for alpha, cell in cells.items() if isinstance(alpha, float)}
            if AUTO in cells and fixed:
                best = max(fixed.values(), key=lambda cell: cell.mean.value)
                found.append(AlphaComparison(place, way, cells[AUTO], best, tuple(sorted(fixed))))
    return found


def _by_alpha(runs: SuiteRuns, place: Place, way: str) -> Mapping[str | float, SuiteCell]:
    """The cells of a place and a way to explore by alpha; the preset is one of them."""
    found: dict[str | float, SuiteCell] = {}
    for (where, agent), cell in runs.cells.items():
        config = cell.rows[0].config
        ours = agent == OURS and config.get("explore") == way
        if where == place and (ours or agent.startswith(f"{way}-")):
            alpha = config.get("alpha")
            if alpha == AUTO or isinstance(alpha, float):
                found[alpha] = cell
    return found
