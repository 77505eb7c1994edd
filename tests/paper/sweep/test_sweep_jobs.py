"""Jobs: every run without a row is planned once, and protocols are not mixed."""

import json
from pathlib import Path

import pytest

from refusals import refused
from small_sweeps import EPISODES, NAME, OPTIONS, begun_folder, finished_folder, plan, small
from tsallax.errors import InvalidInput
from tsallax.paper.sweep.sweep_specification import changed_sweep, paper_sweep
from tsallax.paper.sweep.sweep_tasks import TASKS, choose_variants

OTHER_PROTOCOLS = [
    ({"options": {**OPTIONS, "batch_size": 4}}, "batch_size 8, not 4"),
    ({"options": {**OPTIONS, "net_arch": 4}}, r"net_arch \[8\], not \[4\]"),
    ({"episodes": EPISODES + 1}, f"{EPISODES}.* not .*{EPISODES + 1}"),
    ({"episodes": EPISODES - 1}, f"{EPISODES}.* not .*{EPISODES - 1}"),
    ({"episodes": 20, "steps": 50 * EPISODES}, f"{EPISODES}.* not .*20"),
    ({"steps": 500}, "not .*500"),
    ({"evaluated": 5}, "evaluated 20, not 5"),
]
ELSEWHERE = {"variants": tuple(choose_variants(["Soft+SoftBellman-0.1"])), "actions": (121,)}


def seeds(jobs):
    return [[run.seed for run in job.runs] for job in jobs]


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_papers_sweep_is_a_fleet_for_each_number_of_actions(task, tmp_path):
    jobs = plan(paper_sweep(task), tmp_path, at_once=81)
    assert [len(job.runs) for job in jobs] == [81, 81, 81, 81, 3]
    assert {job.actions for job in jobs} == {*task.actions, None}
    assert len({job.name for job in jobs}) == 5


def test_runs_with_a_row_are_not_planned_again(tmp_path):
    finished_folder(tmp_path)
    assert plan(small(), tmp_path) == plan(small(seeds=1), tmp_path) == []
    assert seeds(plan(small(seeds=4), tmp_path)) == [[2, 3]]


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_more_seeds_continue_the_results_of_this_repository(task):
    results = Path(__file__).parents[3] / "results"
    more = changed_sweep(paper_sweep(task), {"seeds": 12})
    planned = {run.seed for job in plan(more, results) for run in job.runs}
    assert planned.isdisjoint(range(3)), "the paper's sweep has three seeds, and all of its rows"
    assert {10, 11} <= planned


@pytest.mark.parametrize(("changes", "words"), OTHER_PROTOCOLS)
@pytest.mark.parametrize("begin", [finished_folder, begun_folder])
def test_another_protocol_is_refused_beside_rows_and_fleets(begin, changes, words, tmp_path):
    begin(tmp_path)
    with pytest.raises(InvalidInput, match=f"holds runs .*{words}.*--out") as refusal:
        plan(small(seeds=3, **changes), tmp_path)
    assert refusal.value.source == str(tmp_path)


@pytest.mark.parametrize("changes", [{"options": {**OPTIONS, "batch_size": 16}}, {"episodes": 99}])
def test_another_protocol_is_refused_beside_rows_of_other_variants(changes, tmp_path):
    finished_folder(tmp_path)
    assert len(plan(small(**ELSEWHERE), tmp_path)) == 1
    with refused("holds runs"):
        plan(small(**ELSEWHERE, **changes), tmp_path)


def test_options_that_mean_the_same_are_the_same_protocol(tmp_path):
    begin = begun_folder(tmp_path)
    same = {**OPTIONS, "net_arch": 8, "gamma": 0.99}
    assert [job.name for job in plan(small(options=same), tmp_path)] == [begin.name]


def test_fleets_written_with_earlier_names_of_options_are_resumed(tmp_path):
    begun = begun_folder(tmp_path)
    data = json.loads(begun.files.state.read_text())
    old = {"hidden": [8], "batch": 8, "capacity": 300, "start": 0, "copy_every": 50, "n_step": 1}
    begun.files.state.write_text(json.dumps({**data, "options": old, "there": 0}))
    assert plan(small(), tmp_path) == [begun]


def test_names_depend_on_the_runs_alone_and_paths_are_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (one,), (other,) = (plan(small(), Path(name)) for name in ("a", "b"))
    assert one.name == other.name
    assert one.name.startswith("reacher-9-")
    assert one.key(one.runs[1]) == ("reacher", NAME, 9, 1)
    assert [one.folder, other.folder] == [f"{tmp_path}/a", f"{tmp_path}/b"]
