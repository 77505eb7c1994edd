"""Tables, figures and verdicts from the rows of a sweep, whole and in part."""

import csv
import dataclasses
import io
import json
import re
from functools import cache

import numpy as np
import pytest

from tsallax.errors import InvalidInput
from tsallax.paper.report import write_result
from tsallax.paper.result import read_csv, write_csv
from tsallax.paper.sweep.rows import Row
from tsallax.paper.sweep.tasks import DDPG, TASKS, VARIANTS, reported
from tsallax.paper.tables import tables
from tsallax.paper.tables.cells import PLAIN, gather, ranking
from tsallax.paper.tables.mean_curves import POINTS, curves
from tsallax.paper.tables.paper_comparison import comparison
from tsallax.paper.tables.verdicts import claims, tally, updates
from tsallax.statistics import FAILS, HOLDS, OPEN

REACHER, PENDULUM = TASKS["reacher"], TASKS["pendulum"]
EPISODES = {"reacher": 10_000, "pendulum": 2_000}


@cache
def rising(top, count):
    return tuple(np.linspace(top - 40, top, count).round(3).tolist())


def row(task, variant, actions, seed, greedy, reached, **changes):
    episodes = EPISODES[task.name]
    given = {
        "task": task.name,
        "algorithm": variant.name,
        "explore": variant.explore,
        "update": variant.update,
        "alpha": variant.alpha,
        "actions": actions,
        "seed": seed,
        "episodes": episodes,
        "steps": 50 * episodes,
        "threshold": task.threshold,
        "reached": reached,
        "final": greedy - 0.5,
        "greedy": greedy,
        "greedy_error": 0.1,
        "sampled": greedy - 0.2,
        "sampled_error": 0.1,
        "evaluated": 100,
        "every": 20,
        "returns": rising(round(greedy, 1), episodes // 20),
        "seconds": 600.0,
        "agents": 81,
        "config": {"alpha": variant.alpha, "batch_size": 64, "gamma": 0.99},
        "provenance": {"tsallax": "0.1.0", "device": "gpu: H200", "machine": "x", "date": "d"},
    }
    return Row(**(given | changes))


def sweep(task=REACHER, effect=None, seeds=3, noise=0.3, random=0):
    """A run of everything; `effect` adds to the return, and takes from the episodes."""
    rng = np.random.default_rng(random)
    rows = []
    for k, actions in enumerate(task.actions):
        for variant in VARIANTS:
            plain = (variant.explore, variant.update) == ("epsilon", "hard")
            shift = 1000 * [1.0, 0.1, 0.01].index(variant.alpha) * plain
            for seed in range(seeds):
                more = effect(variant, k) if effect else 0.0
                greedy = task.threshold + 1.5 + more + noise * rng.normal()
                reached = int(1500 - 300 * more + 100 * rng.normal())
                rows.append(row(task, variant, actions, seed + shift, float(greedy), reached))
    rows += [
        row(task, DDPG, None, s, task.threshold - 5 + float(rng.normal()), None) for s in range(6)
    ]
    return rows


def judged(rows, task=REACHER):
    data = gather(task, rows)
    return {claim.says: claim for claim in (*claims(data, ranking(data)), *updates(data))}


def table(result, name):
    return next(t.rows for t in result.tables if t.name == f"{result.name}-{name}")


@pytest.fixture(scope="module")
def whole():
    return sweep()


@pytest.fixture(scope="module")
def result(whole):
    return tables(REACHER, whole)


BETTER = "Sparse exploration ends at a higher return than {} exploration"
FEWER = "Sparse exploration needs fewer episodes than {} exploration"
TREND = "The more actions, the more sparse exploration leads {} exploration in {}"
MOST = "Most of the top five explore sparsely"
OTHERS = ("epsilon-greedy", "softmax")


@pytest.mark.parametrize(("size", "verdict"), [(0.6, HOLDS), (-0.6, FAILS)])
def test_a_planted_lead_is_found_and_a_planted_lag_too(size, verdict):
    found = judged(sweep(effect=lambda v, k: size * (v.explore == "sparse")))
    for other in OTHERS:
        assert found[BETTER.format(other)].verdict == verdict
        assert found[FEWER.format(other)].verdict == verdict
        for measure in ("return", "episodes"):
            assert found[TREND.format(other, measure)].verdict == OPEN
    for rule in ("soft", "hard"):
        for text in ("ends at a higher return than", "needs fewer episodes than"):
            assert found[f"The sparse update {text} the {rule} update"].verdict == OPEN


@pytest.mark.parametrize(("size", "verdict"), [(0.6, HOLDS), (-0.6, FAILS)])
def test_most_of_the_top_five_is_judged_of_the_pendulum_alone(size, verdict):
    def lead(v, k):
        return size * (v.explore == "sparse")

    assert judged(sweep(PENDULUM, lead), PENDULUM)[MOST].verdict == verdict
    assert MOST not in judged(sweep(effect=lead))


@pytest.mark.parametrize(("size", "verdict"), [(0.3, HOLDS), (-0.3, FAILS)])
def test_a_lead_that_grows_with_the_actions_is_found(size, verdict):
    found = judged(sweep(effect=lambda v, k: size * k * (v.explore == "sparse")))
    for other in OTHERS:
        for measure in ("return", "episodes"):
            assert found[TREND.format(other, measure)].verdict == verdict


def test_a_planted_update_rule_is_not_taken_for_exploration():
    found = judged(sweep(effect=lambda v, k: 0.6 * (v.update == "sparse")))
    for rule in ("soft", "hard"):
        assert found[
            f"The sparse update ends at a higher return than the {rule} update"
        ].verdict == (HOLDS)
    for other in OTHERS:
        assert found[BETTER.format(other)].verdict == OPEN


def test_where_nothing_was_planted_hardly_anything_is_told():
    told = total = 0
    for random in range(6):
        found = judged(sweep(random=random))
        mine = [c for says, c in found.items() if "DDPG" not in says and "top five" not in says]
        told += sum(claim.verdict != OPEN for claim in mine)
        total += len(mine)
    assert total == 6 * 12
    assert told <= 4


def test_q_learning_is_above_ddpg_where_it_is_planted():
    found = judged(sweep())
    assert found["Q-learning with sparse exploration outperforms DDPG in return"].verdict == HOLDS
    swapped = [
        dataclasses.replace(r, greedy=5.0, reached=10) if r.actions is None else r for r in sweep()
    ]
    found = judged(swapped)
    for what in ("in return", "with fewer episodes"):
        claim = found[f"Q-learning with sparse exploration outperforms DDPG {what}"]
        assert (claim.verdict, claim.found.value) == (FAILS, 0.0)


def test_a_missing_cell_does_not_make_a_trend():
    """One algorithm fails everywhere: to leave it out at one number would look like a change."""

    def fails(v, k):
        return -40.0 * (v.name == "Soft+Bellman-1")

    rows = sweep(effect=fails)
    hole = [r for r in rows if (r.algorithm, r.actions) != ("Soft+Bellman-1", 9)]
    for given in (rows, hole):
        assert judged(given)[TREND.format("softmax", "return")].verdict == OPEN


def test_no_softmax_in_the_top_five_is_judged_both_ways():
    says = "None of the top five explores with softmax"
    worse = judged(sweep(effect=lambda v, k: -2.0 * (v.explore == "soft")))[says]
    better = judged(sweep(effect=lambda v, k: 2.0 * (v.explore == "soft")))[says]
    assert (worse.verdict, worse.found.value) == (HOLDS, 0)
    assert (better.verdict, better.found.value) == (FAILS, 5)


def test_the_top_five_are_those_that_were_made_best():
    best = ["Soft+SparseBellman-1", "EpsGrdy+SoftBellman-0.1", "Sparse+Bellman-0.01"]
    best += ["Sparse+SoftBellman-1", "Soft+Bellman-0.1"]
    rows = sweep(effect=lambda v, k: 9.0 - best.index(v.name) if v.name in best else 0.0)
    order = ranking(gather(REACHER, rows))
    assert list(order.names[:5]) == best
    for top in (order.top, order.top_by_mean, *order.first):
        assert top.tolist() == [1.0] * 5 + [0.0] * 20


def test_one_failure_costs_a_rank_and_not_the_mean():
    name = "Sparse+Bellman-1"
    rows = sweep(effect=lambda v, k: (-99.0 if k == 0 else 9.0) * (v.name == name))
    order = ranking(gather(REACHER, rows))
    assert order.top_by_mean[order.names.index(name)] == 0
    assert name in order.names[:5]


def test_equals_share_the_last_of_the_top_five_however_they_are_listed():
    best = ["Sparse+Bellman-1", "Soft+Bellman-1", "EpsGrdy+SoftBellman-1"]
    rows = [
        dataclasses.replace(r, greedy=1000.0 if r.algorithm in best else 990.0, reached=500)
        for r in sweep(PENDULUM)
        if r.actions
    ]
    data = gather(PENDULUM, rows)
    order = ranking(data)
    assert set(order.names[:3]) == set(best)
    for top in (order.top, order.top_by_mean, order.first[0]):
        np.testing.assert_allclose(top, [1] * 3 + [2 / 22] * 22)
    count = judged(rows, PENDULUM)[MOST].found
    assert count.value == pytest.approx(1 + 8 * 2 / 22, abs=1e-6)
    assert "(Sparse+Bellman-1, Soft+Bellman-1 and 1 more)" in comparison(data)[0].ours
    result = tables(PENDULUM, rows)
    assert {x["by"] for x in table(result, "best")} == {"9 algorithms", "7 algorithms"}
    assert any("22 equals" in part for part in result.caption)


def test_equal_returns_are_ordered_by_episodes():
    name = "EpsGrdy+SoftBellman-0.01"
    rows = [
        dataclasses.replace(r, greedy=1000.0, reached=500 if r.algorithm == name else 900)
        for r in sweep(PENDULUM)
        if r.actions
    ]
    assert ranking(gather(PENDULUM, rows)).names[0] == name


def test_wide_tables_have_the_papers_names_and_numbers(whole, result):
    paper = reported(REACHER)
    for kind in ("returns", "episodes"):
        lines = table(result, kind)
        assert [line["algorithm"] for line in lines] == [v.name for v in (*VARIANTS, DDPG)]
    line = table(result, "returns")[4]
    mine = [r.greedy for r in whole if (r.algorithm, r.actions) == (line["algorithm"], 121)]
    assert line["121 actions"].split(" ")[0].replace("−", "-") == f"{np.mean(mine):.2f}"
    assert line["paper, 121"] == paper[line["algorithm"], 121].expected_return == -5.8
    assert table(result, "returns")[-1]["paper, 9"] == -10.1
    assert table(result, "episodes")[1]["paper, 961"] == 5779


def test_long_tables_are_numbers_for_programs(whole, result):
    lines = table(result, "cells")
    assert len(lines) == 109
    line = next(x for x in lines if (x["algorithm"], x["actions"]) == ("Soft+Bellman-0.1", 2601))
    mine = [r for r in whole if (r.algorithm, r.actions) == ("Soft+Bellman-0.1", 2601)]
    assert line["greedy"] == pytest.approx(np.mean([r.greedy for r in mine]), rel=1e-5)
    assert line["sampled"] == pytest.approx(line["greedy"] - 0.2, rel=1e-4)
    assert line["last_100"] == pytest.approx(line["greedy"] - 0.5, rel=1e-4)
    assert line["greedy_low"] == pytest.approx(min(r.greedy for r in mine), rel=1e-5)
    assert line["greedy_high"] == pytest.approx(max(r.greedy for r in mine), rel=1e-5)
    assert line["episodes"] == pytest.approx(np.mean([r.reached for r in mine]), rel=1e-5)
    assert (line["paper_return"], line["paper_episodes"], line["runs"]) == (-27.5, 10000, 3)
    assert len(table(result, "runs")) == len(whole)
    text = io.StringIO()
    write_csv(lines, text)
    text.seek(0)
    assert read_csv(text)[0]["greedy"] == lines[0]["greedy"]


def test_runs_that_never_got_there_make_a_lower_bound(whole):
    name = "Sparse+SparseBellman-0.1"
    rows = [
        dataclasses.replace(r, reached=1000 if r.seed == 0 else None)
        if (r.algorithm, r.actions) == (name, 9)
        else r
        for r in whole
    ]
    result = tables(REACHER, rows)
    line = next(x for x in table(result, "episodes") if x["algorithm"] == name)
    assert line["9 actions"] == "7000 (≥, 1 of 3)"
    line = next(x for x in result.comparison if x.what == f"{name}: episodes to −6 at 9 actions")
    assert (line.paper, line.ours) == ("9791", "7000 (≥, 1 of 3)")


def test_where_no_run_got_there_nothing_is_told_of_episodes(whole):
    found = judged([dataclasses.replace(r, reached=None) for r in whole])
    for other in OTHERS:
        claim = found[FEWER.format(other)]
        assert (claim.verdict, claim.found.value, claim.found.low) == (OPEN, 0.5, None)
        assert "0 of 108 with sparse exploration" in claim.more
        assert "So few did that this says little." in claim.more
        assert claim.more.startswith("All pairs of runs are undecided.")
        assert "Of the others, 108 of 108 with sparse exploration" in claim.more
        assert claim.detail.startswith("undecided at 9; ")
        assert TREND.format(other, "episodes") not in found


def test_numbers_of_actions_where_no_run_got_there_do_not_count():
    """The leads are alike at the three others; no lead at the first would make a trend."""
    rows = sweep(effect=lambda v, k: 2.0 * (v.explore == "sparse"))
    rows = [dataclasses.replace(r, reached=None) if r.actions == 9 else r for r in rows]
    found = judged(rows)
    for other in OTHERS:
        claim = found[TREND.format(other, "episodes")]
        assert claim.verdict == OPEN
        assert "from 121 to 2,601 actions" in claim.measured
        assert claim.more.endswith("Without 9 actions: no run reached −6 there.")
        claim = found[FEWER.format(other)]
        assert (claim.verdict, claim.found.value, claim.found.low) == (HOLDS, 1.0, None)
        assert "over 27 matched pairs" in claim.measured
        assert "100 % are won, 0 % lost and 0 % undecided" in claim.more
        assert claim.detail == "undecided at 9; 1.00 at 121; 1.00 at 961; 1.00 at 2,601"
    improved = table(tables(REACHER, rows), "improvement")
    assert not any((x["actions"], x["measure"]) == (9, "episodes") for x in improved)


def test_parts_that_are_the_same_in_every_draw_are_no_verdict():
    """All runs win four matches and lose five: that has no interval."""

    def sides(v, k):
        won = (v.update, v.alpha) in {("sparse", a) for a in (1.0, 0.1, 0.01)} | {("soft", 1.0)}
        return (9.0 if won else -9.0) * (v.explore == "sparse")

    claim = judged(sweep(effect=sides))[BETTER.format("softmax")]
    assert (claim.verdict, claim.found.low) == (OPEN, None)
    assert claim.found.value == pytest.approx(4 / 9)


def test_ddpg_that_is_there_but_for_its_exploration_is_not_judged_by_episodes(whole):
    says = "Q-learning with sparse exploration outperforms DDPG with fewer episodes"
    assert judged(whole)[says].verdict == HOLDS
    good = [dataclasses.replace(r, greedy=-4.0) if r.actions is None else r for r in whole]
    claim = judged(good)[says]
    assert claim.verdict == OPEN
    assert "Of the others, 6 of 6 of DDPG have a greedy return" in claim.more
    few = [r for r in whole if r.actions or r.seed < 5]
    for what in ("in return", "with fewer episodes"):
        claim = judged(few)[f"Q-learning with sparse exploration outperforms DDPG {what}"]
        assert (claim.verdict, claim.found.low) == (OPEN, None)


def test_exploration_that_hides_what_was_learned_is_not_judged_by_episodes():
    """No epsilon-greedy run gets to the threshold while it explores, and all are there without."""
    fewer, trend = (
        "Sparse exploration needs fewer episodes than {} exploration",
        "leads {} exploration",
    )
    rows = sweep(effect=lambda v, k: 1.0 + k if v.explore == "sparse" else 0.0)
    before = judged(rows)
    assert before[fewer.format("epsilon-greedy")].verdict == HOLDS

    def without(good):
        greedy = {"greedy": REACHER.threshold + (1.0 if good else -1.0)}
        changed = {"reached": None, **greedy}
        return [dataclasses.replace(r, **changed) if r.explore == "epsilon" else r for r in rows]

    for good, verdict in ((True, OPEN), (False, HOLDS)):
        found = judged(without(good))
        claim = found[fewer.format("epsilon-greedy")]
        assert claim.verdict == verdict
        assert ("but not while they explore" in claim.more) == good
        softmax = fewer.format("softmax")
        assert found[softmax].verdict == before[softmax].verdict == HOLDS
    growing = [
        claim
        for says, claim in judged(without(good=True)).items()
        if trend.format("epsilon-greedy") in says and says.endswith("in episodes")
    ]
    assert [claim.verdict for claim in growing] == [OPEN]


def test_updates_have_a_table_of_their_own_and_are_not_counted(whole, result):
    assert len(table(result, "updates")) == 4
    assert not any("update" in line["claim"] for line in table(result, "claims"))
    data = gather(REACHER, whole)
    mine = claims(data, ranking(data))
    assert tally(mine) in result.caption
    assert tally(mine).startswith(f"Of {len(table(result, 'claims'))} statements")


def test_the_caption_says_what_brackets_of_few_runs_are(result):
    text = "brackets around means of fewer than six runs, here 3, are their range"
    assert text in result.caption[-1]
    many = tables(REACHER, [dataclasses.replace(r, seed=s) for r in sweep()[:1] for s in range(6)])
    assert "their range" not in many.caption[-1]


def test_epsilon_greedy_with_the_plain_update_is_one_algorithm(whole):
    data = gather(REACHER, whole)
    assert len(data.cells[PLAIN, 9]) == 9
    assert len(data.algorithms) == 25
    assert len(data.matches("explore", "sparse", "epsilon", 9)) == 9
    assert data.of("explore", "epsilon", 9).count((PLAIN, 9)) == 3
    same = [dataclasses.replace(r, seed=r.seed % 1000) for r in whole]
    assert len(gather(REACHER, same).cells[PLAIN, 9]) == 3


def test_matched_cells_differ_in_one_way_alone(whole):
    data = gather(REACHER, whole)
    for factor, other in (("explore", "update"), ("update", "explore")):
        for x, y in data.matches(factor, "sparse", "soft", 121):
            a, b = data.cells[x][0], data.cells[y][0]
            assert (getattr(a, other), a.alpha, a.actions) == (getattr(b, other), b.alpha, 121)
            assert (getattr(a, factor), getattr(b, factor)) == ("sparse", "soft")


ONE = ("Sparse+SparseBellman-0.1", 9, 0)
FEW = ("Soft+Bellman-1", 9)
PARTS = {
    "one run": (lambda r: (r.algorithm, r.actions, r.seed) == ONE, "26 algorithms"),
    "DDPG alone": (lambda r: r.actions is None, "27 algorithms"),
    "one run of DDPG": (lambda r: r.actions is None and not r.seed, "27 algorithms"),
    "two ways": (lambda r: r.algorithm.endswith("+SparseBellman-0.1"), "24 algorithms"),
    "plain alone": (lambda r: r.algorithm.startswith(f"{PLAIN}-"), "24 algorithms"),
    "one number": (lambda r: r.actions == 961, "3 numbers of actions (9, 121 and 2,601)"),
    "a hole, no DDPG": (
        lambda r: r.actions is not None and (r.algorithm, r.actions) != FEW,
        "actions: 1 other cell and DDPG.",
    ),
    "one run in a cell": (lambda r: (r.algorithm, r.actions) != FEW or not r.seed, None),
}
PICTURES = {"DDPG alone": 0, "one run of DDPG": 0, "one run": 2, "plain alone": 2}
DRAWN = ("one run", "two ways", "one number")


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_a_sweep_are_shown_as_far_as_they_go(part, whole, tmp_path):
    keep, missing = PARTS[part]
    result = tables(REACHER, [r for r in whole if keep(r)])
    write_result(dataclasses.replace(result, pictures=()), tmp_path, seconds=1.0)
    record = json.loads((tmp_path / "reacher.json").read_text(), parse_constant=pytest.fail)
    assert record["charts"] == ["reacher-curves"]
    for given in result.tables:
        assert len({tuple(line) for line in given.rows}) == 1
        cells = [cell for line in csv.reader(_csv(given)) for cell in line]
        assert cells
        assert not {"nan", "inf", "None"} & set(cells)
    words = " ".join([*result.caption, *(picture.alt for picture in result.pictures)])
    assert not re.search(r"\b(nan|inf|None)\b", words.replace("None of the top five", ""))
    assert (missing in result.caption[0]) if missing else "Nothing" in result.caption[0]
    assert len(result.pictures) == PICTURES.get(part, 3)
    for picture in result.pictures if part in DRAWN else ():
        picture.figure.draw_without_rendering()


def _csv(given):
    text = io.StringIO()
    write_csv(given.rows, text)
    text.seek(0)
    return text


def test_one_seed_tells_nothing_and_has_no_intervals(whole):
    rows = [r for r in whole if r.seed == 0]
    result = tables(REACHER, rows)
    assert "Missing" in result.caption[0]
    assert {line["verdict"] for line in table(result, "claims")} == {OPEN}
    assert not any("[" in str(cell) for x in table(result, "returns") for cell in x.values())
    assert {line["greedy_low"] for line in table(result, "cells")} == {""}
    for series in result.charts[0].series:
        assert set(series.low) == set(series.high) == {None}


def test_a_cell_with_one_run_does_not_silence_the_others(whole):
    rows = sweep(effect=lambda v, k: 2.0 * (v.explore == "sparse"))
    few = [r for r in rows if (r.algorithm, r.actions, r.seed > 0) != ("Soft+Bellman-1", 9, True)]
    claim = judged(few)[BETTER.format("softmax")]
    assert (claim.verdict, "over 35 matched pairs" in claim.measured) == (HOLDS, True)


COMMANDS = {
    "everything": (lambda r: True, ["tsallax reproduce reacher --variants DDPG --seeds 6"]),
    "without DDPG": (lambda r: r.actions is not None, []),
}


@pytest.mark.parametrize("part", COMMANDS)
def test_the_commands_are_those_that_made_the_rows(part, whole):
    keep, more = COMMANDS[part]
    first, *others = tables(REACHER, [r for r in whole if keep(r)]).parameters["commands"]
    assert others == more
    assert ("--variants" in first) == (part == "without DDPG")
    assert first.startswith("tsallax reproduce reacher")


def test_the_command_of_a_small_sweep_has_all_that_was_asked_for():
    from tsallax.deep.deep_q_config import to_mapping
    from tsallax.paper.sweep.jobs import settings

    variant = VARIANTS[1]
    config = to_mapping(settings(REACHER, variant, {"batch_size": 16, "net_arch": [64, 64]}))
    few = {"episodes": 30, "steps": 1500, "config": config, "evaluated": 20}
    rows = [row(REACHER, variant, 9, seed, -9.0, None, **few) for seed in range(4)]
    rows = [dataclasses.replace(r, returns=(-9.0, -9.0)) for r in rows]
    assert tables(REACHER, rows).parameters["commands"] == [
        f"tsallax reproduce reacher --quick --variants {variant.name} --seeds 4 --episodes 30 "
        "--steps 1500 --set batch_size=16"
    ]


def test_the_command_has_options_of_q_learning_alone_beside_ddpg():
    from tsallax.deep.deep_q_config import to_mapping
    from tsallax.paper.sweep.jobs import settings

    def of(variant, actions):
        config = to_mapping(
            settings(REACHER, variant, {"target_update_interval": 500, "batch_size": 32})
        )
        return [row(REACHER, variant, actions, s, -9.0, None, config=config) for s in range(3)]

    rows = [one for v in VARIANTS for n in REACHER.actions for one in of(v, n)] + of(DDPG, None)
    (command,) = tables(REACHER, rows).parameters["commands"]
    assert "--set batch_size=32" in command
    assert "--set target_update_interval=500" in command


def test_trends_need_as_many_runs_as_other_verdicts():
    """Two runs of two algorithms at two numbers of actions tell nothing, however far apart."""
    rows = sweep(effect=lambda v, k: 3.0 * k * (v.explore == "sparse"), noise=0.01, seeds=2)
    names = ("Sparse+SparseBellman-0.1", "EpsGrdy+SparseBellman-0.1")
    few = [r for r in rows if r.algorithm in names and r.actions in (9, 2601)]
    trend = judged(few)[TREND.format("epsilon-greedy", "return")]
    assert trend.verdict == OPEN
    assert judged(rows)[TREND.format("epsilon-greedy", "return")].verdict == HOLDS


def test_the_top_five_are_five():
    rows = [r for r in sweep(PENDULUM) if r.algorithm == "Sparse+Bellman-0.1"]
    result = tables(PENDULUM, rows)
    assert not any("top five" in str(line) for one in result.tables for line in one.rows)
    assert any(part.startswith("Our top 1, ordered") for part in result.caption)
    assert result.title.endswith("1 variant of deep Q-learning")


def test_other_tasks_are_left_out_and_none_is_refused(whole):
    both = [*whole, *sweep(PENDULUM)]
    assert len(table(tables(PENDULUM, both), "runs")) == len(both) - len(whole)
    with pytest.raises(InvalidInput, match="no runs of pendulum"):
        tables(PENDULUM, whole)
    mixed = [dataclasses.replace(whole[0], threshold=-7.0), *whole[1:]]
    with pytest.raises(InvalidInput, match="thresholds -7 and -6"):
        tables(REACHER, mixed)


def test_options_that_differ_are_named(whole, result):
    assert result.parameters["options_of_all_variants"] == {"batch_size": 64, "gamma": 0.99}
    assert result.parameters["options_that_differ"] == {"alpha": [1.0, 0.1, 0.01]}
    changed = dataclasses.replace(whole[0], config={**whole[0].config, "batch_size": 32})
    other = tables(REACHER, [changed, *whole[1:]])
    assert sorted(other.parameters["options_that_differ"]) == ["alpha", "batch"]
    assert "but alpha and batch" in other.caption[0]
    assert result.hardware == "gpu: H200, x"
    longer = tables(REACHER, [dataclasses.replace(whole[0], seconds=1800.0), *whole[1:]])
    assert result.parameters["hours_of_the_longest_fleet"] == 0.167
    assert longer.parameters["hours_of_the_longest_fleet"] == 0.5


@pytest.mark.parametrize(("explore", "named"), [("sparse", False), ("epsilon", True)])
def test_an_epsilon_that_nobody_uses_is_no_difference(explore, named, whole):
    def config(row, first):
        other = first and row.explore == explore
        return {**row.config, "epsilon": "1:0.1:5" if other else "1:0.02:5"}

    rows = [
        dataclasses.replace(r, config=config(r, r.seed == 0)) if r.explore else r for r in whole
    ]
    found = tables(REACHER, rows).parameters
    assert ("epsilon" in found["options_that_differ"]) == named
    assert (found["options_of_all_variants"].get("epsilon") == "1:0.02:5") != named


def test_chart_has_all_algorithms_in_few_points(whole, result):
    chart = result.charts[0]
    top = ranking(gather(REACHER, whole)).names[:5]
    assert {s.label for s in chart.series if s.shown} == set(top)
    assert len(chart.series) == 25 * 4 + 1
    for s in chart.series:
        assert len(s.x) == len(s.y) == len(s.low) == len(s.high) <= POINTS
        assert all(low <= y <= high for low, y, high in zip(s.low, s.y, s.high))
        assert all(float(f"{v:.4g}") == v for v in (*s.y, *s.low))
    assert [s.panel for s in chart.series][:1] == ["9 actions"]
    assert {s.groups["exploration"] for s in chart.series} == {"sparse", "soft", "epsilon", "DDPG"}


def test_a_run_that_ended_goes_on_at_its_last_mean(whole):
    long, short = (
        dataclasses.replace(whole[0], episodes=n, returns=tuple(given), every=20, final=7.0)
        for n, given in ((100, [1.0, 2.0, 3.0, 4.0, 5.0]), (50, [1.0, 2.0, 6.0]))
    )
    x, runs = curves([long, short])
    assert x.tolist() == [20, 40, 60, 80, 100]
    np.testing.assert_allclose(runs[0], [1, 2, 3, 4, 5])
    np.testing.assert_allclose(runs[1], [1, 2, (10 * 6 + 10 * 7) / 20, 7, 7])


def test_a_result_is_written_with_its_charts_and_hardware(result, tmp_path):
    some = dataclasses.replace(result, pictures=result.pictures[:1])
    write_result(some, tmp_path, seconds=1.0)
    record = json.loads((tmp_path / "reacher.json").read_text())
    assert (record["charts"], record["hardware"]) == (["reacher-curves"], "gpu: H200, x")
    chart = json.loads((tmp_path / "reacher-curves.chart.json").read_text())
    assert chart == json.loads(json.dumps(dataclasses.asdict(result.charts[0])))
    assert [p["name"] for p in record["pictures"]] == ["reacher"]


def test_best_of_each_exploration_is_beside_the_papers(result):
    lines = table(result, "best")
    assert len(lines) == 12
    line = next(x for x in lines if (x["exploration"], x["actions"]) == ("softmax", 121))
    assert (line["paper's best"], line["of, there"]) == (-5.3, "Soft+Bellman-0.01")
    assert (line["paper's fewest"], line["by, there"]) == (4597, "Soft+SoftBellman-0.01")
    assert line["of"].startswith("Soft+")
