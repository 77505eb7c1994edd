"""Positions of states, from the user, from a file and from names."""

import numpy as np
import pandas as pd
import pytest

from refusals import refused
from tsallax import MDP, problems
from tsallax.explorer.state_layout import load_positions, named_positions, read_positions
from tsallax.problems.multigoal_mdp import multigoal_axis
from tsallax.problems.unicycle_mdp import unicycle_axes


def test_problems_on_a_plane_name_their_states_by_position():
    axis = multigoal_axis(7)
    places = named_positions(problems.multigoal(9, grid=7).state_names)
    wanted = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    np.testing.assert_allclose(places, wanted, atol=1e-3)
    axes = unicycle_axes((5, 4, 3))
    places = named_positions(problems.unicycle(4, grid=(5, 4, 3)).state_names)
    wanted = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    np.testing.assert_allclose(places, wanted, atol=1e-3)


def test_rows_of_a_grid_go_downwards():
    walls = [[0, 1, 0], [0, 0, 0]]
    places = named_positions(problems.gridworld(2, 3, walls=walls).state_names)
    assert places.tolist() == [[0, 0], [2, 0], [0, -1], [1, -1], [2, -1]]
    lake = MDP.from_gymnasium("FrozenLake-v1", 0.9)
    assert named_positions(lake.state_names)[[3, 4]].tolist() == [[3, 0], [0, -1]]


@pytest.mark.parametrize("names", [None, [], ["a", "b"], ["(1, 2)", "(1, 2, 3)"], ["(nan, 1)"]])
def test_other_names_are_no_positions(names):
    assert named_positions(names) is None


def test_files_hold_a_line_or_a_row_for_each_state(tmp_path):
    wanted = [[0.0, 1.5], [2.0, -1.0]]
    (tmp_path / "p.csv").write_text("0,1.5\n2,-1\n")
    np.save(tmp_path / "p.npy", wanted)
    for name in ("p.csv", "p.npy"):
        assert read_positions(load_positions(tmp_path / name), 2).tolist() == wanted
    for name in ("bad.csv", "bad.npy"):
        (tmp_path / name).write_text("x;y\n")
        with refused("one line x,y", source=tmp_path / name):
            load_positions(tmp_path / name)
    for text in ("", "x,y\n0,1\n"):
        (tmp_path / "p.csv").write_text(text)
        with refused("one line x,y", "no header", source=tmp_path / "p.csv"):
            load_positions(tmp_path / "p.csv")
    with (tmp_path / "huge.npy").open("wb") as file:  # a header alone
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**15, 2)}
        np.lib.format.write_array_header_1_0(file, header)
    with refused("one line x,y", source=tmp_path / "huge.npy"):
        load_positions(tmp_path / "huge.npy")
    with refused("(3, 2)", "(2, 2)"):
        read_positions(wanted, 3)
    for wrong in (np.inf, np.nan, -1e300):
        with refused("finite"):
            read_positions([[0.0, wrong]], 1)


def test_labels_of_positions_are_put_into_the_order_of_the_names():
    table = pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": 5.0}, index=["c", "a", "b"])
    found = read_positions(table, 3, ("a", "b", "c"))
    assert found[:, 0].tolist() == [1.0, 2.0, 0.0]
    assert read_positions(table, 3)[:, 0].tolist() == [0.0, 1.0, 2.0]
    with refused("positions names state 'd'"):
        read_positions(table.rename(index={"c": "d"}), 3, ("a", "b", "c"))
