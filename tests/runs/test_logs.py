"""Logs hold every row once, whatever was interrupted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from made_up_runs import made_up_history
from tsallax.deep.history import History
from tsallax.errors import InvalidInput
from tsallax.runs import logs


def test_logs_hold_every_row_once_while_a_history_grows(tmp_path: Path):
    values = np.random.default_rng(0).normal(size=9)
    with logs.Logs(tmp_path, made_up_history(values[:2], 3), tensorboard=False) as log:
        for n in (2, 5, 5, 9):
            log.add(made_up_history(values[:n], 3))
            assert logs.read(tmp_path / logs.EPISODES)["return"].tolist() == values[:n].tolist()
    table = logs.read(tmp_path / logs.EPISODES)
    assert table["episode"].tolist() == [*range(1, 10)]
    assert table["step"].tolist() == [*range(50, 500, 50)]
    assert table["length"].tolist() == [50] * 9
    points = logs.read(tmp_path / logs.EVALUATIONS)
    assert points["episode"].tolist() == [3, 6, 9]
    assert points["return"].tolist() == [values[i] + 1 for i in (2, 5, 8)]


def test_opening_a_log_drops_what_was_written_after_the_checkpoint(tmp_path: Path):
    values = np.arange(9.0)
    logs.Logs(tmp_path, made_up_history(values), tensorboard=False).close()
    with open(tmp_path / logs.EPISODES, "a") as file:
        file.write("10,500,9.0,50\n11,55")
    logs.Logs(tmp_path, made_up_history(values[:4]), tensorboard=False).close()
    text = (tmp_path / logs.EPISODES).read_text()
    assert text == "episode,step,return,length\n" + "".join(
        f"{i + 1},{50 * (i + 1)},{float(i)},50\n" for i in range(4)
    )


def test_a_history_read_from_a_file_is_written_like_the_one_in_memory(tmp_path: Path):
    grown = made_up_history([0.1, 1e-7, -1e22], 1)
    read = History.from_arrays(grown.arrays())
    for name, h in (("a", grown), ("b", read)):
        (tmp_path / name).mkdir()
        logs.Logs(tmp_path / name, h, tensorboard=False).close()
    for table in logs.TABLES:
        assert (tmp_path / "a" / table).read_text() == (tmp_path / "b" / table).read_text()


def test_a_line_that_is_half_written_is_left_out_and_a_wrong_one_is_named(tmp_path: Path):
    path = tmp_path / logs.EPISODES
    head = "episode,step,return,length\n"
    path.write_text(head + "1,50,2.5,50\n2,100,3.")
    assert logs.read(path)["return"].tolist() == [2.5]
    path.write_text(head)
    assert len(logs.read(path)["return"]) == 0
    path.write_text(head + "1,50,2.5,50\n2,100\n3,150,1,50\n")
    with pytest.raises(InvalidInput, match=r"episodes.csv: line 3 is not 4 numbers: '2,100'"):
        logs.read(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInput, match=r"not a log of tsallax train: its first line is 'a,b'"):
        logs.read(path)
