"""Verdicts on the claims of the paper: planted effects are found, others are inconclusive."""

import dataclasses

import pytest

from made_up_rows import judged, made_up_sweep
from tsallax.paper.sweep.tasks import PENDULUM, REACHER
from tsallax.paper.tables.cells import gather, ranking
from tsallax.paper.tables.verdicts import claims, tally
from tsallax.statistics import FAILS, HOLDS, INCONCLUSIVE

BETTER = "Sparse exploration ends at a higher return than {} exploration"


FEWER = "Sparse exploration needs fewer episodes than {} exploration"


TREND = "The more actions, the more sparse exploration leads {} exploration in {}"


MOST = "Most of the top five explore sparsely"


OTHERS = ("epsilon-greedy", "softmax")


@pytest.mark.parametrize(("size", "verdict"), [(0.6, HOLDS), (-0.6, FAILS)])
def test_a_planted_lead_is_found_and_a_planted_lag_too(size, verdict):
    found = judged(made_up_sweep(effect=lambda v, k: size * (v.explore == "sparse")))
    for other in OTHERS:
        assert found[BETTER.format(other)].verdict == verdict
        assert found[FEWER.format(other)].verdict == verdict
        for measure in ("return", "episodes"):
            assert found[TREND.format(other, measure)].verdict == INCONCLUSIVE
    for rule in ("soft", "hard"):
        for text in ("ends at a higher return than", "needs fewer episodes than"):
            assert found[f"The sparse update {text} the {rule} update"].verdict == INCONCLUSIVE


@pytest.mark.parametrize(("size", "verdict"), [(0.6, HOLDS), (-0.6, FAILS)])
def test_most_of_the_top_five_is_judged_of_the_pendulum_alone(size, verdict):
    def lead(v, k):
        return size * (v.explore == "sparse")

    assert judged(made_up_sweep(PENDULUM, lead), PENDULUM, True)[MOST].verdict == verdict
    assert MOST not in judged(made_up_sweep(effect=lead), ranked=True)


@pytest.mark.parametrize(("size", "verdict"), [(0.3, HOLDS), (-0.3, FAILS)])
def test_a_lead_that_grows_with_the_actions_is_found(size, verdict):
    found = judged(made_up_sweep(effect=lambda v, k: size * k * (v.explore == "sparse")))
    for other in OTHERS:
        for measure in ("return", "episodes"):
            assert found[TREND.format(other, measure)].verdict == verdict


def test_a_planted_update_rule_is_not_taken_for_exploration():
    found = judged(made_up_sweep(effect=lambda v, k: 0.6 * (v.update == "sparse")))
    for rule in ("soft", "hard"):
        assert found[
            f"The sparse update ends at a higher return than the {rule} update"
        ].verdict == (HOLDS)
    for other in OTHERS:
        assert found[BETTER.format(other)].verdict == INCONCLUSIVE


def test_without_effects_hardly_any_verdict_is_conclusive():
    conclusive = total = 0
    for random in range(6):
        found = judged(made_up_sweep(random=random))
        mine = [c for says, c in found.items() if "DDPG" not in says and "top five" not in says]
        conclusive += sum(claim.verdict != INCONCLUSIVE for claim in mine)
        total += len(mine)
    assert total == 6 * 12
    assert conclusive <= 4


def test_q_learning_is_above_ddpg_where_it_is_planted():
    found = judged(made_up_sweep())
    assert found["Q-learning with sparse exploration outperforms DDPG in return"].verdict == HOLDS
    swapped = [
        dataclasses.replace(r, greedy=5.0, reached=10) if r.actions is None else r
        for r in made_up_sweep()
    ]
    found = judged(swapped)
    for what in ("in return", "with fewer episodes"):
        claim = found[f"Q-learning with sparse exploration outperforms DDPG {what}"]
        assert (claim.verdict, claim.found.value) == (FAILS, 0.0)


def test_a_missing_cell_does_not_make_a_trend():
    """One algorithm fails everywhere: to leave it out at one number would look like a change."""

    def fails(v, k):
        return -40.0 * (v.name == "Soft+Bellman-1")

    rows = made_up_sweep(effect=fails)
    hole = [r for r in rows if (r.algorithm, r.actions) != ("Soft+Bellman-1", 9)]
    for given in (rows, hole):
        assert judged(given)[TREND.format("softmax", "return")].verdict == INCONCLUSIVE


def test_no_softmax_in_the_top_five_is_judged_both_ways():
    says = "None of the top five explores with softmax"
    for effect, verdict, count in ((-2.0, HOLDS, 0), (2.0, FAILS, 5)):
        rows = made_up_sweep(effect=lambda v, k, e=effect: e * (v.explore == "soft"))
        claim = judged(rows, ranked=True)[says]
        assert (claim.verdict, claim.found.value) == (verdict, count)


def test_where_no_run_reached_the_threshold_episodes_are_inconclusive(whole):
    found = judged([dataclasses.replace(r, reached=None) for r in whole])
    for other in OTHERS:
        claim = found[FEWER.format(other)]
        assert (claim.verdict, claim.found.value, claim.found.low) == (INCONCLUSIVE, 0.5, None)
        assert "0 of 108 with sparse exploration" in claim.more
        assert "108 of 108 with sparse exploration" in claim.more
        assert claim.detail.startswith("undecided at 9; ")
        assert TREND.format(other, "episodes") not in found


def test_numbers_of_actions_where_no_run_reached_the_threshold_do_not_count():
    """The leads are alike at the three others; no lead at the first would make a trend."""
    rows = made_up_sweep(effect=lambda v, k: 2.0 * (v.explore == "sparse"))
    rows = [dataclasses.replace(r, reached=None) if r.actions == 9 else r for r in rows]
    found = judged(rows)
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
        won = (v.update, v.alpha) in {("sparse", a) for a in (1.0, 0.1, 0.01)} | {("soft", 1.0)}
        return (9.0 if won else -9.0) * (v.explore == "sparse")

    claim = judged(made_up_sweep(effect=sides))[BETTER.format("softmax")]
    assert (claim.verdict, claim.found.low) == (INCONCLUSIVE, None)
    assert claim.found.value == pytest.approx(4 / 9)


def test_ddpg_that_is_at_the_threshold_without_exploration_alone_is_not_judged_by_episodes(whole):
    says = "Q-learning with sparse exploration outperforms DDPG with fewer episodes"
    assert judged(whole)[says].verdict == HOLDS
    good = [dataclasses.replace(r, greedy=-4.0) if r.actions is None else r for r in whole]
    claim = judged(good)[says]
    assert claim.verdict == INCONCLUSIVE
    assert "6 of 6 of DDPG" in claim.more
    few = [r for r in whole if r.actions or r.seed < 5]
    for what in ("in return", "with fewer episodes"):
        claim = judged(few)[f"Q-learning with sparse exploration outperforms DDPG {what}"]
        assert (claim.verdict, claim.found.low) == (INCONCLUSIVE, None)


def test_exploration_that_hides_what_was_learned_is_not_judged_by_episodes():
    """No epsilon-greedy run reaches the threshold in training, and all do without exploration."""
    rows = made_up_sweep(effect=lambda v, k: 1.0 + k if v.explore == "sparse" else 0.0)
    before = judged(rows)
    assert before[FEWER.format("epsilon-greedy")].verdict == HOLDS

    def without(good):
        greedy = {"greedy": REACHER.threshold + (1.0 if good else -1.0)}
        changed = {"reached": None, **greedy}
        return [dataclasses.replace(r, **changed) if r.explore == "epsilon" else r for r in rows]

    for good, verdict in ((True, INCONCLUSIVE), (False, HOLDS)):
        found = judged(without(good))
        claim = found[FEWER.format("epsilon-greedy")]
        assert claim.verdict == verdict
        softmax = FEWER.format("softmax")
        assert found[softmax].verdict == before[softmax].verdict == HOLDS
    growing = judged(without(good=True))[TREND.format("epsilon-greedy", "episodes")]
    assert growing.verdict == INCONCLUSIVE


def test_a_cell_with_one_run_does_not_make_the_others_inconclusive():
    rows = made_up_sweep(effect=lambda v, k: 2.0 * (v.explore == "sparse"))
    few = [r for r in rows if (r.algorithm, r.actions, r.seed > 0) != ("Soft+Bellman-1", 9, True)]
    claim = judged(few)[BETTER.format("softmax")]
    assert (claim.verdict, "35 matched pairs" in claim.measured) == (HOLDS, True)


def test_trends_need_as_many_runs_as_other_verdicts():
    """Two runs of two algorithms at two numbers of actions are inconclusive, however far apart."""
    rows = made_up_sweep(effect=lambda v, k: 3.0 * k * (v.explore == "sparse"), noise=0.01, seeds=2)
    names = ("Sparse+SparseBellman-0.1", "EpsGrdy+SparseBellman-0.1")
    few = [r for r in rows if r.algorithm in names and r.actions in (9, 2601)]
    trend = judged(few)[TREND.format("epsilon-greedy", "return")]
    assert trend.verdict == INCONCLUSIVE
    assert judged(rows)[TREND.format("epsilon-greedy", "return")].verdict == HOLDS


def test_tally_counts_every_claim_once(whole):
    data = gather(REACHER, whole)
    found = claims(data, ranking(data))
    counts = [int(word) for word in tally(found).replace(",", "").split() if word.isdecimal()]
    assert counts[0] == len(found) == sum(counts[1:])
    assert tally([])
