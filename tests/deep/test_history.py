"""A history does not depend on how much is recorded at a time, and survives as arrays."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from refusals import refused
from tsallax.deep.history import History


def test_a_history_does_not_depend_on_how_much_is_recorded_at_a_time():
    rng = np.random.default_rng(0)
    rewards, ended = rng.normal(size=(300, 3)), rng.random((300, 3)) < 0.05
    whole = History(running=np.zeros(3), lengths=np.zeros(3, np.int64))
    whole.record(900, rewards.astype(np.float32), ended)
    parts = History(running=np.zeros(3), lengths=np.zeros(3, np.int64))
    cuts = [0, 1, 2, 50, 51, 177, 300]
    for begin, end in pairwise(cuts):
        parts.record(3 * end, rewards[begin:end].astype(np.float32), ended[begin:end])
    for name, column in whole.arrays().items():
        np.testing.assert_array_equal(parts.arrays()[name], column, err_msg=name)
    assert np.all(np.diff(whole["episode_step"]) >= 0)


def test_the_trace_averages_over_the_cycles_since_its_last_entry():
    history = History()
    history.accumulate(np.array([1.0, 3.0]), np.array([0.0, 1.0]), np.array([1.0, 0.5]))
    history.accumulate(np.array([5.0]), np.array([2.0]), np.array([0.0]))
    history.append_trace(30)
    history.accumulate(np.array([7.0]), np.array([8.0]), np.array([1.0]))
    history.append_trace(40)
    expected = {"step": [30, 40], "loss": [3, 7], "value": [1, 8], "support": [0.5, 1]}
    assert {name: history[f"trace_{name}"].tolist() for name in expected} == expected


def test_steps_that_are_not_valid_do_not_count_in_lengths():
    history = History()
    ended = np.array([[False], [False], [True]])
    history.record(3, np.ones((3, 1)), ended, np.array([[True], [False], [True]]))
    assert history["episode_length"].tolist() == [2]
    assert history.recent() == 3
    assert np.isnan(History().recent())


def test_unfinished_episodes_can_be_dropped():
    history = History()
    history.record(2, np.ones((2, 1)), np.zeros((2, 1), bool))
    assert (history.running.tolist(), history.lengths.tolist()) == ([2], [2])
    history.drop_unfinished()
    assert (history.running.tolist(), history.lengths.tolist()) == ([0], [0])


def test_arrays_hold_all_of_it_and_are_checked():
    history = History()
    history.record(3, np.ones((3, 1)), np.array([[False], [True], [False]]))
    history.accumulate(*np.ones((3, 2)))
    arrays = history.arrays()
    again = History.from_arrays(arrays)
    for name, column in arrays.items():
        np.testing.assert_array_equal(again.arrays()[name], column)
    for name in ("episode_return", "running", "tally"):
        with refused("history"):
            History.from_arrays({**arrays, name: np.zeros((7, 7))})


def test_mean_returns_are_those_of_the_last_episodes_up_to_a_step():
    history = History()
    for step, value in ((5, 1.0), (9, 2.0), (9, 6.0), (20, 100.0)):
        history.append(episode_step=step, episode_return=value, episode_length=1)
    assert history.mean_return(9, 2) == 4.0
    assert history.mean_return(19, 3) == 3.0
    assert np.isnan(history.mean_return(8, 2))


def test_the_first_of_equal_evaluations_is_the_best():
    history = History()
    found = []
    for value in (-1.0, 3.0, 3.0, 2.0, 3.5):
        history.append(evaluation_return=value)
        found.append(history.is_best())
    assert found == [True, True, False, False, True]


def test_the_columns_of_a_history_are_listed_and_others_refused():
    history = History()
    assert {name: len(history[name]) for name in history}["episode_return"] == 0
    with refused("unknown column 'episode_returns': choose from episode_step, episode_return"):
        history["episode_returns"]
