"""Logs hold each row once, whatever happened to the process that wrote them."""

from __future__ import annotations

import struct
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import OLD_RUN
from made_up_runs import made_up_history
from refusals import refused
from tsallax.deep.history import History
from tsallax.deep.learners import load_agent
from tsallax.deep.option_changes import Change
from tsallax.files import yaml_text
from tsallax.runs import logs


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Tags, steps and values of TensorBoard's event files."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data = path.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            event = Event.FromString(data[12 : 12 + size])
            data = data[16 + size :]
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_every_row_is_written_once_while_a_history_grows(tmp_path: Path):
    values = np.random.default_rng(0).normal(size=9)
    with closing(logs.Logs(tmp_path, made_up_history(values[:2], 3), tensorboard=False)) as log:
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_log_that_cannot_be_written_is_named(tmp_path: Path):
    log = logs.Logs(tmp_path, made_up_history(np.zeros(2), 3))
    log._files[logs.EPISODES].close()
    log._files[logs.EPISODES] = open("/dev/full", "w")  # noqa: SIM115
    with refused(f"{tmp_path / logs.EPISODES}: cannot be written: No space left on device"):
        log.add(made_up_history(np.zeros(5), 3))
    log.close()


def test_opening_a_log_drops_rows_written_after_the_checkpoint(tmp_path: Path):
    values = np.arange(9.0)
    logs.Logs(tmp_path, made_up_history(values), tensorboard=False).close()
    with open(tmp_path / logs.EPISODES, "a") as file:
        file.write("10,500,9.0,50\n11,55")
    logs.Logs(tmp_path, made_up_history(values[:4]), tensorboard=False).close()
    text = (tmp_path / logs.EPISODES).read_text()
    assert text == "episode,step,return,length\n" + "".join(
        f"{i + 1},{50 * (i + 1)},{float(i)},50\n" for i in range(4)
    )


def test_logs_of_an_earlier_version_are_read_and_rewritten_alike(tmp_path: Path):
    agent = load_agent(OLD_RUN / "agent.npz")
    logs.Logs(tmp_path, agent.history, tensorboard=False).close()
    for name in logs.TABLES:
        assert (tmp_path / name).read_text() == (OLD_RUN / name).read_text()
    assert logs.read(OLD_RUN / logs.TRACE)["step"].tolist() == [250, 500]


def test_a_history_that_was_saved_is_logged_like_the_one_in_memory(tmp_path: Path):
    grown = made_up_history([0.1, 1e-7, -1e22], 1)
    for name, h in (("a", grown), ("b", History.from_arrays(grown.arrays()))):
        (tmp_path / name).mkdir()
        logs.Logs(tmp_path / name, h, tensorboard=False).close()
    for table in logs.TABLES:
        assert (tmp_path / "a" / table).read_text() == (tmp_path / "b" / table).read_text()


def test_tensorboard_has_every_row_once_after_a_resume_as_well(tmp_path: Path):
    pytest.importorskip("tensorboardX")
    values = np.arange(9.0)
    for begin, end in ((0, 4), (3, 9)):  # a second process resumes an earlier checkpoint
        history = made_up_history(values[:begin], 3)
        with closing(logs.Logs(tmp_path, history, tensorboard=True)) as log:
            log.add(made_up_history(values[:end], 3))
    found = scalars(tmp_path)
    for name, kind in ((logs.EPISODES, "episode"), (logs.EVALUATIONS, "evaluation")):
        table = logs.read(tmp_path / name)
        assert found[f"{kind}/return"] == [*zip(table["step"], table["return"], strict=True)]


class FakeWandb:
    """Runs of Weights & Biases by their ids: what was logged, and the last value of each name."""

    def __init__(self) -> None:
        self.runs: dict[str, FakeWandbRun] = {}
        self.calls: list[dict[str, Any]] = []

    def init(self, **options: Any) -> FakeWandbRun:
        self.calls.append(options)
        return self.runs.setdefault(options["id"], FakeWandbRun())


class FakeWandbRun:
    def __init__(self) -> None:
        self.summary: dict[str, Any] = {}
        self.logged: list[dict[str, Any]] = []
        self.finished = 0

    def define_metric(self, name: str, step_metric: str) -> None:
        assert (name, step_metric) == ("*", "step")

    def log(self, row: dict[str, Any]) -> None:
        self.logged.append(row)
        self.summary.update(row)

    def finish(self) -> None:
        self.finished += 1


def test_weights_and_biases_has_every_row_once_after_a_resume_as_well(tmp_path: Path, monkeypatch):
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    values = np.arange(9.0)
    for begin, end in ((0, 4), (3, 9)):  # a second process resumes an earlier checkpoint
        history = made_up_history(values[:begin], 3)
        with closing(logs.Logs(tmp_path, history, wandb="sparse", options={"seed": 1})) as log:
            log.add(made_up_history(values[:end], 3))
    (run,) = fake.runs.values()
    assert run.finished == 2
    for call in fake.calls:
        assert (call["project"], call["resume"], call["config"]) == ("sparse", "allow", {"seed": 1})
        assert (call["name"], call["dir"]) == (tmp_path.name, str(tmp_path))
    for name, kind in ((logs.EPISODES, "episode"), (logs.EVALUATIONS, "evaluation")):
        table, tag = logs.read(tmp_path / name), f"{kind}/return"
        sent = [(row["step"], row[tag]) for row in run.logged if tag in row]
        assert sent == [*zip(table["step"], table["return"], strict=True)]


def test_changes_of_options_survive_a_file(tmp_path: Path):
    path = tmp_path / logs.CHANGES
    assert logs.read_changes(path) == []
    logs.write_changes(path, [])
    assert not path.exists()
    logs.write_changes(path, [Change(60, "alpha", 0.1, "1:0.1:50"), Change(80, "huber", None, 1.0)])
    rows = [[yaml_text.parse(cell) for cell in row.values()] for row in logs.read_changes(path)]
    assert rows == [[60, "alpha", 0.1, "1:0.1:50"], [80, "huber", None, 1.0]]


def test_an_incomplete_last_line_is_left_out_and_a_wrong_one_named(tmp_path: Path):
    path = tmp_path / logs.EPISODES
    head = "episode,step,return,length\n"
    path.write_text(head + "1,50,2.5,50\n2,100,3.")
    assert logs.read(path)["return"].tolist() == [2.5]
    path.write_text(head)
    assert len(logs.read(path)["return"]) == 0
    path.write_text(head + "1,50,2.5,50\n2,100\n3,150,1,50\n")
    with refused("line 3", source=path):
        logs.read(path)
    path.write_text("a,b\n1,2\n")
    with refused("not a log"):
        logs.read(path)
    path.unlink()
    with refused("no such file"):
        logs.read(path)
