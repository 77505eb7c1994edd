"""Training ends, evaluates and saves where it should, whatever the segments."""

from __future__ import annotations

import numpy as np
import pytest

from tsallax.deep.training_schedule import (
    MAX_SAVE_DELAY,
    MAX_STEPS,
    SaveSchedule,
    TrainingSchedule,
    is_false,
)


def test_the_goal_that_is_reached_first_ends_the_training():
    schedule = TrainingSchedule(100, 7, steps=150, episodes=10)
    assert not schedule.finished(149, 9)
    assert schedule.finished(150, 7)
    assert schedule.finished(101, 10)
    assert schedule.fraction_done(100, 7) == 0
    assert schedule.fraction_done(125, 9) == pytest.approx(2 / 3)
    assert schedule.fraction_done(160, 7) == 1
    assert TrainingSchedule(0, 0, episodes=3).last_step == MAX_STEPS


def test_evaluations_count_steps_only_where_only_steps_are_limited():
    by_step = TrainingSchedule(95, 7, steps=145, eval_every=20)
    assert by_step.next_stop(95) == 100
    assert by_step.next_episode_stop(7) == MAX_STEPS
    assert not by_step.evaluation_due((95, 7), (99, 40))
    assert by_step.evaluation_due((99, 40), (100, 40))
    by_episode = TrainingSchedule(95, 7, steps=145, episodes=37, eval_every=20)
    assert by_episode.next_stop(95) == 145
    assert by_episode.next_episode_stop(7) == 20
    assert by_episode.next_episode_stop(20) == 37
    assert by_episode.evaluation_due((95, 19), (96, 20))
    assert not by_episode.evaluation_due((95, 20), (140, 20))
    never = TrainingSchedule(0, 0, steps=5)
    assert not never.evaluation_due((0, 0), (5, 5))


def test_segments_stop_where_a_file_or_a_callback_is_due():
    schedule = TrainingSchedule(0, 0, steps=100, eval_every=30, stop_every=(40, 80))
    stops = [schedule.next_stop(step) for step in (0, 30, 40, 60, 80, 90)]
    assert stops == [30, 40, 60, 80, 90, 100]


def test_files_are_due_every_so_many_steps():
    saves = SaveSchedule(35, 10)
    assert [step for step in range(35, 50) if saves.due(step)] == list(range(40, 50))
    assert not saves.overdue(40)
    assert saves.overdue(30 + 10 * MAX_SAVE_DELAY)
    saves.saved(43)
    assert (saves.due(49), saves.due(50)) == (False, True)


def test_files_are_due_once_a_minute_without_a_number_of_steps():
    now = [100.0]
    saves = SaveSchedule(0, clock=lambda: now[0])
    for now[0], due, overdue in ((159, False, False), (161, True, False), (701, True, True)):
        assert (saves.due(10**6), saves.overdue(0)) == (due, overdue)
    saves.saved(0)
    assert not saves.due(0)


def test_only_false_ends_the_training():
    assert is_false(False)
    assert is_false(np.bool_(False))
    assert not any(map(is_false, (None, True, 0, np.bool_(True), "")))
