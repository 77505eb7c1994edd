"""The paper's claims about its deep experiments, each with a verdict from the runs.

A claim holds or does not hold only where the 95 % interval excludes its null value, or where all
runs of one side did better than all of the other; otherwise it is inconclusive.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tsallax.paper.result import Line
from tsallax.paper.tables.cells import DDPG_CELL, TOP, Ranking, SweepRuns
from tsallax.paper.tables.formatting import digits, joined_words, number, shown
from tsallax.paper.tables.improvement import FACTORS, Improvement, improvement_between, leads
from tsallax.statistics import FAILS, HOLDS, INCONCLUSIVE, Estimate, estimate, rise
from tsallax.wording import plural


@dataclass(frozen=True)
class TopClaim:
    """What the paper says of the five best algorithms on a task."""

    way: str
    """The way to explore that the statement is about."""
    statement: str
    null: float
    """The count above which, or below which, the statement holds."""
    more: bool
    """Whether the statement holds above `null`, not below it."""
    in_paper: int
    """The count in the paper, by the marks in its tables."""
    maximum: float | None = None
    """The maximum return that most of the five converge to, if the paper says so."""


TOP_CLAIMS = {
    "pendulum": TopClaim(
        "sparse", "Most of the top five explore sparsely", TOP / 2, True, 4, maximum=1000
    ),
    "reacher": TopClaim("soft", "None of the top five explores with softmax", 0.5, False, 0),
}
"""The paper's claim on its top five, by task."""
OTHERS = ("epsilon", "soft")
"""Ways to explore that sparse exploration is compared with."""
MEASURES = ("episodes", "return")
OPPOSITE = {HOLDS: FAILS, FAILS: HOLDS, INCONCLUSIVE: INCONCLUSIVE}


@dataclass(frozen=True)
class JudgedClaim:
    """One statement, what was measured to judge it, the number found and the verdict."""

    statement: str
    measured: str
    found: Estimate
    null: float
    """The value without effect, which the interval must exclude."""
    verdict: str
    note: str = ""
    """Further counts and cautions."""
    detail: str = ""
    """The number by number of actions."""
    decimals: int = 2
    narrows: bool = False
    """Whether the interval narrows with the root of the number of runs, so that more settle it."""


def claims(sweep: SweepRuns, order: Ranking) -> list[JudgedClaim]:
    """Every claim of which there are runs."""
    found = [
        *(_comparison(sweep, "explore", "sparse", y, m) for m in MEASURES for y in OTHERS),
        *(_trend(sweep, y, m) for m in MEASURES for y in OTHERS),
        _top(sweep, order),
        _maximum(sweep, order),
        *(_comparison(sweep, "explore", "sparse", "DDPG", m) for m in ("return", "episodes")),
    ]
    return [_with_seeds(sweep, claim) for claim in found if claim is not None]


def updates(sweep: SweepRuns) -> list[JudgedClaim]:
    """The same for ways to update, of which the paper draws no conclusion."""
    others = ("soft", "hard")
    found = [_comparison(sweep, "update", "sparse", y, m) for m in MEASURES for y in others]
    return [_with_seeds(sweep, claim) for claim in found if claim is not None]


def _with_seeds(sweep: SweepRuns, claim: JudgedClaim) -> JudgedClaim:
    """An inconclusive claim with the number of seeds, or times as many runs, to settle it."""
    factor = claim.found.runs_to_settle(claim.null)
    if claim.verdict != INCONCLUSIVE or not claim.narrows or factor is None:
        return claim
    runs = Counter((row.algorithm, row.actions) for row in sweep.rows if row.actions)
    seeds = set(runs.values())
    needed = f"{math.ceil(factor * max(seeds)):,} seeds of every cell"
    times = f"{factor:,.0f}" if factor > 10 else f"{factor:.1f}"
    needed = needed if len(seeds) == 1 else f"{times} times as many runs"
    text = f"About {needed} would settle it, if the number stayed as it is."
    return dataclasses.replace(claim, note=f"{claim.note} {text}".strip())


def rows_of(found: Sequence[JudgedClaim]) -> tuple[Line, ...]:
    """The claims as rows of a table."""
    return tuple(
        {
            "claim": claim.statement,
            "verdict": claim.verdict,
            "measured": claim.measured,
            "here": shown(claim.found, claim.decimals),
            "without effect": f"{claim.null:g}",
            "by number of actions": claim.detail,
            "note": claim.note,
        }
        for claim in found
    )


def _way(factor: str, kind: str) -> str:
    word = FACTORS[factor][kind]
    return f"{word} exploration" if factor == "explore" else f"the {word} update"


def _comparison(sweep: SweepRuns, factor: str, x: str, y: str, measure: str) -> JudgedClaim | None:
    """Whether a run of x does better than its match of y."""
    one = improvement_between(sweep, factor, x, y, measure, sweep.actions)
    if one is None:
        return None
    verdict, note, caution = one.verdict, "", ""
    if measure == "episodes":
        caution = _exploration_caution(sweep, factor, (x, y))
        note = f"{_shares(one)} {_reached(sweep, factor, (x, y))}{caution}"
        verdict = INCONCLUSIVE if caution else verdict
    if y == "DDPG":
        what = "in return" if measure == "return" else "with fewer episodes"
        runs = sweep.greedy[DDPG_CELL]
        mean = f"end at {number(runs.mean(), digits(sweep.task))} on average."
        statement = f"Q-learning with sparse exploration outperforms DDPG {what}"
        chance = f"Probability that a run does better than one of DDPG, over {one.matches} cells"
        note = note or f"DDPG's {plural(len(runs), 'run')} {mean}"
        return JudgedClaim(statement, chance, one.chance, 0.5, verdict, note)
    us, them = _way(factor, x), _way(factor, y)
    what = "needs fewer episodes than" if measure == "episodes" else "ends at a higher return than"
    each = [improvement_between(sweep, factor, x, y, measure, [n]) for n in sweep.actions]
    parts = [
        f"{shown(part.chance) if measure == 'return' or part.won + part.lost else 'undecided'} at "
        f"{part.actions[0]:,}"
        for part in each
        if part is not None
    ]
    statement = f"{us[0].upper()}{us[1:]} {what} {them}"
    pairs = f"{plural(one.matches, 'matched pair')} of cells"
    chance = f"Probability that a run does better than its match, over {pairs}"
    detail = "; ".join(parts)
    return JudgedClaim(
        statement, chance, one.chance, 0.5, verdict, note, detail, narrows=not caution
    )


def _shares(one: Improvement) -> str:
    """Shares of pairs of runs that were won, lost and undecided."""
    rest = 1 - one.won - one.lost
    if rest == 1:
        return "All pairs of runs are undecided."
    return (
        f"Of pairs of runs in cells where any reached the threshold, {one.won:.0%} are won, "
        f"{one.lost:.0%} lost and {max(rest, 0.0):.0%} undecided."
    ).replace("%", " %")


def _reached(sweep: SweepRuns, factor: str, ways: Sequence[str]) -> str:
    parts, late, every = [], [], []
    for way in ways:
        reached, good_at_last = _reached_threshold(sweep, factor, way)
        every += [] if way == "DDPG" else [reached]
        words = "of DDPG" if way == "DDPG" else f"with {_way(factor, way)}"
        parts.append(f"{int(reached.sum())} of {len(reached)} {words}")
        good = int(good_at_last[~reached].sum())
        late += [f"{good} of {int((~reached).sum())} {words}"] if not reached.all() else []
    few = " So few did that this is weak evidence." if np.concatenate(every).mean() < 0.25 else ""
    others = f" Of the others, {joined_words(late)} have a greedy return at the threshold or above."
    text = f"Runs that reached {number(sweep.threshold, 0)}: {joined_words(parts)}."
    return f"{text}{others if late else ''}{few}"


def _reached_threshold(
    sweep: SweepRuns, factor: str, way: str
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which runs reached the threshold in training, and which without exploration at the end."""
    cells = dict.fromkeys(
        cell for n in sweep.actions for cell in sweep.cells_of_kind(factor, way, n)
    )
    mine = [DDPG_CELL] if way == "DDPG" else list(cells)
    reached = np.concatenate([sweep.times[cell].reached for cell in mine])
    return reached, np.concatenate([sweep.greedy[cell] for cell in mine]) >= sweep.threshold


def _exploration_caution(sweep: SweepRuns, factor: str, ways: Sequence[str]) -> str:
    """A caution where runs are at the threshold without exploration alone, so that episodes to it
    do not measure what was learned."""
    for way in ways:
        reached, good_at_last = _reached_threshold(sweep, factor, way)
        if not reached.any() and good_at_last.mean() > 0.5:
            who = "DDPG reaches" if way == "DDPG" else f"runs with {_way(factor, way)} reach"
            they = "it explores" if way == "DDPG" else "they explore"
            return f" Inconclusive: {who} the threshold, but not while {they}."
    return ""


def _trend(sweep: SweepRuns, other: str, measure: str) -> JudgedClaim | None:
    known = leads(sweep, "sparse", other, measure)
    if len(known) < 2:
        return None
    change = rise([value for value, _ in known.values()], [draws for _, draws in known.values()])
    decimals = digits(sweep.task) if measure == "return" else 0
    them = _way("explore", other)
    most = max(row.episodes for row in sweep.rows)
    never = f", where a run that never reached the threshold counts {most:,}"
    never = never if measure == "episodes" else ""
    parts = [f"{number(value, decimals)} at {n:,}" for n, (value, _) in known.items()]
    caution = (
        _exploration_caution(sweep, "explore", ("sparse", other)) if measure == "episodes" else ""
    )
    out = [f"{n:,}" for n in leads(sweep, "sparse", other, "return") if n not in known]
    none = f"no run reached {number(sweep.threshold, 0)} with them"
    dropped = f" Without {joined_words(out)} actions: {none}." if out else ""
    statement = f"The more actions, the more sparse exploration leads {them} in {measure}"
    growth = (
        f"Growth of the mean lead over matched cells, from {min(known):,} to {max(known):,} "
        f"actions along a straight line with equal steps between the {len(known)} numbers"
    )
    verdict = INCONCLUSIVE if caution else change.verdict(0.0)
    note = f"The lead is {joined_words(parts)} actions{never}.{dropped}{caution}"
    detail = "; ".join(parts)
    return JudgedClaim(statement, growth, change, 0.0, verdict, note, detail, decimals, not caution)


def _top(sweep: SweepRuns, order: Ranking) -> JudgedClaim | None:
    """How the five best algorithms explore."""
    said = TOP_CLAIMS.get(sweep.task.name)
    if said is None or len(order.names) <= TOP:
        return None
    mine = np.array([sweep.algorithms[one].explore == said.way for one in order.names], float)
    draws = None if order.first is None else order.first @ mine
    count = estimate(round(float(order.top @ mine), 9), draws)
    by_mean = round(float(order.top_by_mean @ mine), 1)
    whole = all(float(v or 0).is_integer() for v in (count.value, count.low, count.high))
    verdict = count.verdict(said.null)
    return JudgedClaim(
        said.statement,
        f"Algorithms with {_way('explore', said.way)} among our top five",
        count,
        said.null,
        verdict if said.more else OPPOSITE[verdict],
        f"The paper's tables have {said.in_paper}. By the paper's rule, the mean "
        f"return over the numbers of actions, we have {by_mean:g}.",
        decimals=0 if whole else 1,
    )


def _maximum(sweep: SweepRuns, order: Ranking) -> JudgedClaim | None:
    """Whether the best algorithms converge to the maximum return."""
    said = TOP_CLAIMS.get(sweep.task.name)
    best = [(one, n) for one in order.names[:TOP] for n in sweep.actions]
    best = [cell for cell in best if cell in sweep.cells]
    if said is None or said.maximum is None or not best or len(order.names) < TOP:
        return None
    reached = [sweep.greedy[cell].mean() >= sweep.threshold for cell in best]
    few = any(len(sweep.greedy[cell]) < 2 for cell in best)
    drawn = [sweep.weights[cell] @ sweep.greedy[cell] >= sweep.threshold for cell in best]
    share = estimate(float(np.mean(reached)), None if few else np.mean(drawn, axis=0))
    statement = f"Most of the top five converge to the maximum return of {said.maximum:g}"
    level = f"a mean greedy return of {number(sweep.threshold, 0)} or more"
    cells = f"Share of their {len(best)} cells with {level}"
    bias = "The five were chosen by the same runs, which biases this upwards."
    return JudgedClaim(statement, cells, share, 0.5, share.verdict(0.5), bias)


def tally(found: Sequence[JudgedClaim]) -> str:
    """How many claims hold, do not hold, and are inconclusive."""
    if not found:
        return "There are too few runs for any of the paper's statements."
    count = [sum(claim.verdict == kind for claim in found) for kind in (HOLDS, FAILS, INCONCLUSIVE)]
    return (
        f"Of {plural(len(found), 'statement')}, {count[0]} hold{'s' * (count[0] == 1)}, "
        f"{count[1]} do{'es' * (count[1] == 1)} not hold, and {count[2]} "
        f"{'is' if count[2] == 1 else 'are'} inconclusive: the first table lists them."
    )
