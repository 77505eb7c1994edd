"""Tables and figures of a task, of all runs and of parts of them."""

import csv
import dataclasses
import io
import json
import re

import numpy as np
import pytest

from made_up_rows import made_up_sweep, table
from tsallax.paper.report import write_result
from tsallax.paper.result import read_csv, write_csv
from tsallax.paper.sweep.tasks import DDPG, PENDULUM, REACHER, VARIANTS, paper_results
from tsallax.paper.tables.cells import PLAIN
from tsallax.paper.tables.task_result import summarize_runs
from tsallax.statistics import INCONCLUSIVE


def test_wide_tables_have_the_papers_names_and_numbers(whole, result):
    paper = paper_results(REACHER)
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


def test_runs_that_never_reached_the_threshold_make_a_lower_bound(whole):
    name = "Sparse+SparseBellman-0.1"
    rows = [
        dataclasses.replace(r, reached=1000 if r.seed == 0 else None)
        for r in whole
        if (r.algorithm, r.actions) == (name, 9)
    ]
    result = summarize_runs(REACHER, rows)
    line = next(x for x in table(result, "episodes") if x["algorithm"] == name)
    assert line["9 actions"] == "7000 (≥, 1 of 3)"
    line = next(x for x in result.comparison if x.what == f"{name}: episodes to −6 at 9 actions")
    assert (line.paper, line.ours) == ("9791", "7000 (≥, 1 of 3)")


def test_updates_have_a_table_of_their_own(result):
    assert len(table(result, "updates")) == 4
    assert not any("update" in line["claim"] for line in table(result, "claims"))


def test_the_caption_explains_ranges_where_there_are_few_runs(whole, result):
    assert "range" in result.caption[-1]
    many = [dataclasses.replace(whole[0], seed=s) for s in range(6)]
    assert "range" not in summarize_runs(REACHER, many).caption[-1]


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
    result = summarize_runs(REACHER, [r for r in whole if keep(r)])
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


def test_one_seed_is_inconclusive_and_has_no_intervals(whole):
    rows = [r for r in whole if r.seed == 0]
    result = summarize_runs(REACHER, rows)
    assert "Missing" in result.caption[0]
    assert {line["verdict"] for line in table(result, "claims")} == {INCONCLUSIVE}
    assert not any("[" in str(cell) for x in table(result, "returns") for cell in x.values())
    assert {line["greedy_low"] for line in table(result, "cells")} == {""}
    for series in result.charts[0].series:
        assert set(series.low) == set(series.high) == {None}


def test_the_top_five_are_five():
    rows = [r for r in made_up_sweep(PENDULUM) if r.algorithm == "Sparse+Bellman-0.1"]
    result = summarize_runs(PENDULUM, rows)
    assert not any("top five" in str(line) for one in result.tables for line in one.rows)


def test_a_result_is_written_with_its_charts_and_hardware(result, tmp_path):
    some = dataclasses.replace(result, pictures=result.pictures[:1])
    write_result(some, tmp_path, seconds=1.0)
    record = json.loads((tmp_path / "reacher.json").read_text())
    assert (record["charts"], record["hardware"]) == (["reacher-curves"], "gpu: H200, x")
    chart = json.loads((tmp_path / "reacher-curves.chart.json").read_text())
    assert chart == json.loads(json.dumps(dataclasses.asdict(result.charts[0])))
    assert [p["name"] for p in record["pictures"]] == ["reacher"]
