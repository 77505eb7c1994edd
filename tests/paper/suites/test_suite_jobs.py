"""What is left to train: runs without a row, fleets that were begun, one protocol in a folder."""

import dataclasses
from pathlib import Path

import pytest

from refusals import refused
from small_suites import OPTIONS, STEPS, example_row, plan, small
from tsallax.paper.fleets.fleet_files import write_state
from tsallax.paper.suites.suite_jobs import agent_options, default_request, protocol_of
from tsallax.paper.suites.suite_rows import SUITE_ROWS
from tsallax.paper.suites.suite_tasks import CLASSIC, CONTROL
from tsallax.runs.preset_catalogue import preset


def test_a_suite_is_all_its_agents_seeds_and_levels(tmp_path: Path):
    request = dataclasses.replace(default_request(CONTROL), tasks=["Hopper"], levels=(3, 7))
    jobs = plan(tmp_path, request, at_once=64)
    assert [(job.task, job.levels, len(job.runs)) for job in jobs] == [
        ("Hopper", 3, 25),
        ("Hopper", 7, 25),
    ]
    names = [run.agent for run in jobs[0].runs[::5]]
    assert names == ["sparse-0.1", "sparse-auto", "soft-0.1", "soft-auto", "epsilon"]
    assert len({job.name for job in jobs}) == 2
    split = plan(tmp_path, request, at_once=20)
    assert [len(job.runs) for job in split] == [20, 5, 20, 5]
    assert len(plan(tmp_path, default_request(CLASSIC), at_once=10)) == len(CLASSIC.tasks)


def test_options_are_those_of_the_preset_of_the_task_and_those_given():
    task = CLASSIC.tasks["Taxi-v4-masked"]
    found = agent_options(task, {}, {"batch_size": 7})
    expected = preset("Taxi-v4")
    assert found["masked"] is True
    assert found["batch_size"] == 7
    for name in ("gamma", "buffer_size", "net_arch"):
        assert found[name] == expected[name]
    assert agent_options(CLASSIC.tasks["Taxi-v4"], {}, {})["masked"] is False
    with refused("unknown option 'batch'"):
        agent_options(task, {}, {"batch": 7})


def test_milestones_after_the_end_are_left_out():
    acrobot = CLASSIC.tasks["Acrobot-v1"]
    assert protocol_of(default_request(CLASSIC), acrobot).milestones == (40_000,)
    short = dataclasses.replace(default_request(CLASSIC), steps=40_000)
    assert protocol_of(short, acrobot).milestones == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": STEPS + 50}, "steps 200, not 250"),
        ({"final_episodes": 4}, "evaluated 3, not 4"),
        ({"options": {**OPTIONS, "gamma": 0.9}}, "gamma 0.99, not 0.9"),
    ],
)
def test_rows_of_another_protocol_are_refused(changes, words: str, tmp_path: Path):
    (job,) = plan(tmp_path)
    job.files.rows.parent.mkdir()
    SUITE_ROWS.append(example_row(config=dict(job.runs[0].config)), job.files.rows)
    with refused(words, "use another --out"):
        plan(tmp_path, small(**changes))


def test_a_fleet_that_was_begun_by_another_protocol_is_refused(tmp_path: Path):
    (job,) = plan(tmp_path)
    job.files.state.parent.mkdir()
    write_state(job.files, job.description)
    job.files.checkpoint.touch()
    assert plan(tmp_path, at_once=1) == [job]
    with refused("gamma 0.99, not 0.9"):
        plan(tmp_path, small(options={**OPTIONS, "gamma": 0.9}))
    with refused("eval_every 100, not 50"):
        plan(tmp_path, small(eval_every=50))


def test_impossible_requests_are_refused(tmp_path: Path):
    for changes, words in [
        ({"seeds": 0}, "seeds"),
        ({"steps": 0}, "steps"),
        ({"final_episodes": 1}, "final_episodes"),
        ({"options": {**OPTIONS, "n_envs": 2}}, "one environment"),
    ]:
        with refused(words):
            plan(tmp_path, small(**changes))
