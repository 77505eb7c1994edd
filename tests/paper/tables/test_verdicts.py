"""Verdicts on the claims of the paper: planted effects are found, others are inconclusive."""

import dataclasses

import pytest

from made_up_rows import judged, made_up_sweep
from tsallax.paper.sweep.sweep_tasks import PENDULUM, REACHER
from tsallax.paper.tables.cells import ranking
from tsallax.paper.tables.verdicts import claims, tally
from tsallax.statistics import FAILS, HOLDS, INCONCLUSIVE

BETTER = "Sparse exploration ends at a higher return than {} exploration"
FEWER = "Sparse exploration needs fewer episodes than {} exploration"
TREND = "The more actions, the more sparse exploration leads {} exploration in {}"
UPDATE = "The sparse update {} than the {} update"
MOST = "Most of the top five explore sparsely"
NONE = "None of the top five explores with softmax"
DDPG = "Q-learning with sparse exploration outperforms DDPG {}"
OTHERS = ("epsilon-greedy", "softmax")
MEASURES = ("return", "episodes")


def swept(size, way, factor="explore", task=REACHER, **options):
    """A made-up sweep in which one way to explore or update leads by `size`."""
    return made_up_sweep(task, lambda v, k: size * (getattr(v, factor) == way), **options)


def growing(size, **options):
    """A made-up sweep in which sparse exploration leads the more, the more actions there are."""
    return made_up_sweep(effect=lambda v, k: size * k * (v.explore == "sparse"), **options)


def changed(rows, test, **changes):
    """The rows, of which those that pass the test are changed."""
    return [dataclasses.replace(r, **changes) if test(r) else r for r in rows]


@pytest.mark.parametrize(("sign", "verdict"), [(1, HOLDS), (-1, FAILS)])
def test_planted_effects_are_found_and_not_taken_for_others(sign, verdict):
    found = judged(swept(0.6 * sign, "sparse"))
    trends = judged(growing(0.3 * sign))
    for other in OTHERS:
        assert found[BETTER.format(other)].verdict == verdict
        assert found[FEWER.format(other)].verdict == verdict
        for measure in MEASURES:
            assert found[TREND.format(other, measure)].verdict == INCONCLUSIVE
            assert trends[TREND.format(other, measure)].verdict == verdict
    updates = judged(swept(0.6 * sign, "sparse", "update"))
    for rule in ("soft", "hard"):
        higher, fewer = "ends at a higher return", "needs fewer episodes"
        assert updates[UPDATE.format(higher, rule)].verdict == verdict
        assert found[UPDATE.format(higher, rule)].verdict == INCONCLUSIVE
        assert found[UPDATE.format(fewer, rule)].verdict == INCONCLUSIVE
    for other in OTHERS:
        assert updates[BETTER.format(other)].verdict == INCONCLUSIVE


@pytest.mark.parametrize(("sign", "verdict"), [(1, HOLDS), (-1, FAILS)])
def test_the_top_five_are_judged_by_the_statement_on_their_task(sign, verdict):
    pendulum = judged(swept(0.6 * sign, "sparse", task=PENDULUM), PENDULUM, ranked=True)
    reacher = judged(swept(-2.0 * sign, "soft"), ranked=True)
    assert pendulum[MOST].verdict == verdict
    assert (reacher[NONE].verdict, reacher[NONE].found.value) == (verdict, 0 if sign > 0 else 5)
    assert MOST not in reacher
    assert NONE not in pendulum


def test_a_task_that_is_not_in_the_paper_has_no_claim_on_its_top_five():
    task = dataclasses.replace(PENDULUM, name="other")
    rows = changed(swept(0.6, "sparse", task=PENDULUM), lambda r: True, task="other")
    found = judged(rows, task, ranked=True)
    assert BETTER.format("softmax") in found
    assert not [statement for statement in found if "top five" in statement]


def test_without_effects_hardly_any_verdict_is_conclusive():
    conclusive = total = 0
    for random in range(6):
        found = judged(made_up_sweep(random=random))
        mine = [c for name, c in found.items() if "DDPG" not in name and "top five" not in name]
        conclusive += sum(claim.verdict != INCONCLUSIVE for claim in mine)
        total += len(mine)
    assert total == 6 * 12
    assert conclusive <= 4


def test_ddpg_is_judged_both_ways_where_it_has_six_runs(whole):
    found = judged(whole)
    better = judged(changed(whole, lambda r: r.actions is None, greedy=5.0, reached=10))
    few = judged([r for r in whole if r.actions or r.seed < 5])
    for what in ("in return", "with fewer episodes"):
        claim = DDPG.format(what)
        assert found[claim].verdict == HOLDS
        assert (better[claim].verdict, better[claim].found.value) == (FAILS, 0.0)
        assert (few[claim].verdict, few[claim].found.low) == (INCONCLUSIVE, None)
    hidden = judged(changed(whole, lambda r: r.actions is None, greedy=-4.0))
    claim = hidden[DDPG.format("with fewer episodes")]
    assert claim.verdict == INCONCLUSIVE, "at the threshold without exploration alone"
    assert "6 of 6 of DDPG" in claim.note


def test_a_missing_cell_does_not_make_a_trend():
    """One algorithm fails everywhere: to leave it out at one number would look like a change."""
    rows = made_up_sweep(effect=lambda v, k: -40.0 * (v.name == "Soft+Bellman-1"))
    hole = [r for r in rows if (r.algorithm, r.actions) != ("Soft+Bellman-1", 9)]
    for given in (rows, hole):
        assert judged(given)[TREND.format("softmax", "return")].verdict == INCONCLUSIVE


def test_where_no_run_reached_the_threshold_episodes_are_inconclusive(whole):
    found = judged(changed(whole, lambda r: True, reached=None))
    for other in OTHERS:
        claim = found[FEWER.format(other)]
        assert (claim.verdict, claim.found.value, claim.found.low) == (INCONCLUSIVE, 0.5, None)
        assert "0 of 108 with sparse exploration" in claim.note
        assert "108 of 108 with sparse exploration" in claim.note
        assert claim.detail.startswith("undecided at 9; ")
        assert TREND.format(other, "episodes") not in found


def test_numbers_of_actions_where_no_run_reached_the_threshold_do_not_count():
    """The leads are alike at the three others; no lead at the first would make a trend."""
    found = judged(changed(swept(2.0, "sparse"), lambda r: r.actions == 9, reached=None))
    for other in OTHERS:
        claim = found[TREND.format(other, "episodes")]
        assert claim.verdict == INCONCLUSIVE
        assert "from 121 to 2,601 actions" in claim.measured
        claim = found[FEWER.format(other)]
        assert (claim.verdict, claim.found.value, claim.found.low) == (HOLDS, 1.0, None)
        assert "27 matched pairs" in claim.measured
        assert claim.detail == "undecided at 9; 1.00 at 121; 1.00 at 961; 1.00 at 2,601"


def test_parts_that_are_the_same_in_every_draw_are_no_verdict():
    """All runs win four matches and lose five: that has no interval."""

    def sides(v, k):
        won = v.update == "sparse" or (v.update, v.alpha) == ("soft", 1.0)
        return (9.0 if won else -9.0) * (v.explore == "sparse")

    claim = judged(made_up_sweep(effect=sides))[BETTER.format("softmax")]
    assert (claim.verdict, claim.found.low) == (INCONCLUSIVE, None)
    assert claim.found.value == pytest.approx(4 / 9)


def test_exploration_that_hides_what_was_learned_is_not_judged_by_episodes():
    """No epsilon-greedy run reaches the threshold in training, and all do without exploration."""
    rows = made_up_sweep(effect=lambda v, k: 1.0 + k if v.explore == "sparse" else 0.0)
    for lead, verdict in ((1.0, INCONCLUSIVE), (-1.0, HOLDS)):
        greedy = REACHER.threshold + lead
        found = judged(changed(rows, lambda r: r.explore == "epsilon", reached=None, greedy=greedy))
        assert found[FEWER.format("epsilon-greedy")].verdict == verdict
        assert found[TREND.format("epsilon-greedy", "episodes")].verdict == verdict
        assert found[FEWER.format("softmax")].verdict == HOLDS


def test_a_cell_with_one_run_does_not_make_the_others_inconclusive():
    rows = swept(2.0, "sparse")
    few = [r for r in rows if (r.algorithm, r.actions, r.seed > 0) != ("Soft+Bellman-1", 9, True)]
    claim = judged(few)[BETTER.format("softmax")]
    assert (claim.verdict, "35 matched pairs" in claim.measured) == (HOLDS, True)


def test_trends_need_as_many_runs_as_other_verdicts():
    """Two runs of two algorithms at two numbers of actions are inconclusive, however far apart."""
    rows = growing(3.0, noise=0.01, seeds=2)
    names = ("Sparse+SparseBellman-0.1", "EpsGrdy+SparseBellman-0.1")
    few = [r for r in rows if r.algorithm in names and r.actions in (9, 2601)]
    for given, verdict in ((few, INCONCLUSIVE), (rows, HOLDS)):
        assert judged(given)[TREND.format("epsilon-greedy", "return")].verdict == verdict


def test_what_is_inconclusive_says_how_many_runs_would_settle_it(data, whole):
    seeds = 3
    for claim in claims(data, ranking(data)):
        found, said = claim.found, "would settle it" in claim.note
        open_ = claim.verdict == INCONCLUSIVE and found.low is not None
        assert said == (open_ and claim.narrows and found.value != claim.null)
        assert not (said and ("DDPG" in claim.statement or "top five" in claim.statement))
        if said:
            needed = int(claim.note.split("About ")[1].split()[0].replace(",", ""))
            shrunk = (seeds / needed) ** 0.5
            ends = [found.value + shrunk * (end - found.value) for end in (found.low, found.high)]
            assert not ends[0] < claim.null < ends[1]
    uneven = judged([r for r in whole if r.seed < 2 or r.actions != 9]).values()
    notes = " ".join(claim.note for claim in uneven)
    assert "times as many runs would settle it" in notes
    assert "seeds of every cell" not in notes


def test_tally_counts_every_claim_once(data):
    found = claims(data, ranking(data))
    counts = [int(word) for word in tally(found).replace(",", "").split() if word.isdecimal()]
    assert counts[0] == len(found) == sum(counts[1:])
    assert tally([])
