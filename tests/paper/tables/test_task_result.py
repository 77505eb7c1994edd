"""Tables and figures of a task, of all runs and of parts of them."""

import dataclasses
import json
import re

import numpy as np
import pytest

from made_up_rows import made_up_sweep, table
from tsallax.paper.report import write_result
from tsallax.paper.sweep.sweep_tasks import DDPG_VARIANT, PENDULUM, REACHER, VARIANTS, paper_results
from tsallax.paper.tables.cells import PLAIN_EPSILON_GREEDY
from tsallax.paper.tables.task_result import summarize_runs
from tsallax.statistics import INCONCLUSIVE

OWN = "Sparse+SparseBellman-0.1"
FEW = "Soft+Bellman-1"


def test_wide_tables_have_the_papers_names_and_numbers(whole, result):
    for kind in ("returns", "episodes"):
        lines = table(result, kind)
        assert [line["algorithm"] for line in lines] == [v.name for v in (*VARIANTS, DDPG_VARIANT)]
    line = table(result, "returns")[4]
    mine = [r.greedy for r in whole if (r.algorithm, r.actions) == (line["algorithm"], 121)]
    assert line["121 actions"].split(" ")[0].replace("−", "-") == f"{np.mean(mine):.2f}"
    paper = paper_results(REACHER)[line["algorithm"], 121]
    assert line["paper, 121"] == paper.expected_return == -5.8
    assert table(result, "returns")[-1]["paper, 9"] == -10.1
    assert table(result, "episodes")[1]["paper, 961"] == 5779
    assert len(table(result, "updates")) == 4
    assert not any("update" in line["claim"] for line in table(result, "claims"))


def test_long_tables_are_numbers_for_programs(whole, result):
    lines = table(result, "cells")
    assert len(lines) == 109
    line = next(x for x in lines if (x["algorithm"], x["actions"]) == ("Soft+Bellman-0.1", 2601))
    mine = [r for r in whole if (r.algorithm, r.actions) == ("Soft+Bellman-0.1", 2601)]
    greedy = [r.greedy for r in mine]
    expected = {
        "greedy": np.mean(greedy),
        "greedy_low": min(greedy),
        "greedy_high": max(greedy),
        "sampled": np.mean(greedy) - 0.2,
        "last_100": np.mean(greedy) - 0.5,
        "episodes": np.mean([r.reached for r in mine]),
    }
    assert {name: line[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    assert (line["paper_return"], line["paper_episodes"], line["runs"]) == (-27.5, 10000, 3)
    assert len(table(result, "runs")) == len(whole)


def test_runs_that_never_reached_the_threshold_make_a_lower_bound(whole):
    mine = [r for r in whole if (r.algorithm, r.actions) == (OWN, 9)]
    rows = [dataclasses.replace(r, reached=None if r.seed else 1000) for r in mine]
    result = summarize_runs(REACHER, rows)
    line = next(x for x in table(result, "episodes") if x["algorithm"] == OWN)
    assert line["9 actions"] == "7000 (≥, 1 of 3)"
    line = next(x for x in result.comparison if x.what == f"{OWN}: episodes to −6 at 9 actions")
    assert (line.paper, line.ours) == ("9791", "7000 (≥, 1 of 3)")


def test_the_caption_explains_ranges_where_there_are_few_runs(whole, result):
    assert "range" in result.caption[-1]
    many = [dataclasses.replace(whole[0], seed=s) for s in range(6)]
    assert "range" not in summarize_runs(REACHER, many).caption[-1]


PARTS = {
    "one run": (lambda r: (r.algorithm, r.actions, r.seed) == (OWN, 9, 0), "26 algorithms", 2),
    "one run of DDPG": (lambda r: r.actions is None and not r.seed, "27 algorithms", 0),
    "two ways": (lambda r: r.algorithm.endswith("+SparseBellman-0.1"), "24 algorithms", 3),
    "plain alone": (
        lambda r: r.algorithm.startswith(f"{PLAIN_EPSILON_GREEDY}-"), "24 algorithms", 2,
    ),
    "one number": (lambda r: r.actions == 961, "3 numbers of actions (9, 121 and 2,601)", 3),
    "a hole, one run in a cell, no DDPG": (
        lambda r: r.actions and (r.algorithm != FEW or (r.actions, -r.seed) >= (121, 0)),
        "actions: 1 other cell and DDPG.", 3,
    ),
}  # fmt: skip
"""Which rows, what the caption says is missing, and the number of pictures."""


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_a_sweep_are_shown_as_far_as_they_go(part, whole, tmp_path):
    keep, missing, pictures = PARTS[part]
    result = summarize_runs(REACHER, [r for r in whole if keep(r)])
    write_result(dataclasses.replace(result, pictures=()), tmp_path, seconds=1.0)
    record = json.loads((tmp_path / "reacher.json").read_text(), parse_constant=pytest.fail)
    assert (record["charts"], record["hardware"]) == (["reacher-curves"], "gpu: H200, x")
    chart = json.loads((tmp_path / "reacher-curves.chart.json").read_text())
    assert chart == json.loads(json.dumps(dataclasses.asdict(result.charts[0])))
    for given in result.tables:
        assert len({tuple(line) for line in given.rows}) == 1
        cells = re.split("[,\n]", (tmp_path / f"{given.name}.csv").read_text())
        assert not {"nan", "inf", "None"} & set(cells)
    words = " ".join([*result.caption, *(picture.alt for picture in result.pictures)])
    assert not re.search(r"\b(nan|inf|None)\b", words.replace("None of the top five", ""))
    assert missing in result.caption[0]
    assert len(result.pictures) == pictures
    for picture in result.pictures if part in ("one run", "one number") else ():
        picture.figure.draw_without_rendering()


def test_one_seed_is_inconclusive_and_has_no_intervals(whole):
    result = summarize_runs(REACHER, [r for r in whole if r.seed == 0 and r.actions in (9, 961)])
    assert {line["verdict"] for line in table(result, "claims")} == {INCONCLUSIVE}
    assert not any("[" in str(cell) for x in table(result, "returns") for cell in x.values())
    assert {line["greedy_low"] for line in table(result, "cells")} == {""}
    for series in result.charts[0].series:
        assert set(series.low) == set(series.high) == {None}


def test_the_top_five_are_five():
    rows = [r for r in made_up_sweep(PENDULUM) if r.algorithm == "Sparse+Bellman-0.1"]
    result = summarize_runs(PENDULUM, rows)
    assert not any("top five" in str(line) for one in result.tables for line in one.rows)
