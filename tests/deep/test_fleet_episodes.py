"""Episodes of a fleet: their actions are recorded, and they are the same again from arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fleet_environments import Drift
from refusals import refused
from small_agents import member
from tsallax import Fleet
from tsallax.deep import checkpoint
from tsallax.deep.fleet_episodes import CAPACITY, EpisodeLayout, FleetEpisodes
from tsallax.envs.gymnasium.adapter import GymnasiumAdapter
from tsallax.envs.gymnasium.environment_workers import row_type


def played(together: bool, steps: int) -> FleetEpisodes:
    """Episodes of three agents, of which the second begins a new one at step 2."""
    form = GymnasiumAdapter("CartPole-v1").action
    row = row_type(np.zeros((1, 4), np.float32))
    now = FleetEpisodes.none(EpisodeLayout(row, np.zeros((), np.int32), form, together), 3)
    now.begun += 1
    for t in range(steps):
        now.record(np.array([t % 2, 1, 0]), np.array([False, t == 1, False]))
    rows = np.zeros(3, row)
    rows["step"], rows["observation"] = steps, np.arange(12).reshape(3, 4)
    now._set_present(rows, np.array([0, 1, 1], np.int32))
    return now


@pytest.mark.parametrize("together", [False, True])
def test_episodes_are_the_same_again_from_their_arrays(together):
    now = played(together, steps := CAPACITY + 6)
    assert now.length.tolist() == [steps, steps - 2, steps]
    assert now.begun.tolist() == [1, 2, 1]
    assert now.taken[0, :steps].tolist() == [t % 2 for t in range(steps)]
    arrays = now.arrays()
    again = FleetEpisodes.restore(now.layout, arrays, 3, steps).arrays()
    assert again.keys() == arrays.keys()
    for name in arrays:
        np.testing.assert_array_equal(again[name], arrays[name], err_msg=name)


@pytest.mark.parametrize("together", [False, True])
def test_the_agents_that_are_kept_have_their_own_episodes(together):
    whole, now = played(together, 5), played(together, 5)
    now.keep(np.array([2, 0]))
    assert len(now.groups) == (1 if together else 2)
    assert now.length.tolist() == whole.length[[2, 0]].tolist()
    assert now.chosen().tolist() == [1, 0]
    np.testing.assert_array_equal(now.present(), whole.present()[[2, 0]])


def fleet(make) -> Fleet:
    """A fleet of two agents, their environments in this process."""
    return Fleet(make, [member(seed=i) for i in range(2)], workers=0)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("begun", None, "incomplete: feed.begun missing"),
        ("begun", np.array([-1, 1]), "damaged: its episodes have impossible numbers"),
        ("length", np.array([99, 1]), "damaged: its episodes have impossible numbers"),
        ("taken", np.zeros(1, np.int32), "feed.taken has type int32 and shape"),
        ("observation", np.zeros((2, 4)), "feed.observation has type float64"),
        ("action", np.zeros(2, np.float32), "feed.action has type float32"),
        ("action", np.array([0, 2], np.int32), "damaged: feed.action has an action that is not"),
    ],
)
def test_damaged_arrays_are_refused(name, value, words, tmp_path: Path):
    path = tmp_path / "fleet.npz"
    fleet(Drift).learn(steps=4, save_to=path)
    about, arrays = checkpoint.read(path)
    del arrays[f"feed.{name}"]
    if value is not None:
        arrays[f"feed.{name}"] = value
    checkpoint.write(path, about, arrays)
    with refused(words):
        Fleet.load(path, Drift)
