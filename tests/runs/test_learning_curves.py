"""Logs hold each row once whatever happens, and curves show the mean over seeds they claim to."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsallax.cli import app
from tsallax.deep.history import History
from tsallax.errors import InvalidInput
from tsallax.files import yaml_text
from tsallax.runs import curve_figure, learning_curves, logs

OPTIONS = {"algorithm": "deep_q", "env": "Reacher-v5", "explore": "sparse", "alpha": 0.1}


def history(returns: Any, every: int = 0, length: int = 50) -> History:
    """A history with these returns, and an evaluation after every so many episodes."""
    h = History()
    for i, value in enumerate(returns):
        step = (i + 1) * length
        h.append(episode_step=step, episode_return=float(value), episode_length=length)
        if every and (i + 1) % every == 0:
            h.append(
                evaluation_step=step,
                evaluation_episode=i + 1,
                evaluation_return=float(value) + 1,
                evaluation_std=0.5,
                evaluation_length=float(length),
                evaluation_sampled=float(value),
            )
    return h


def run(folder: Path, returns: Any, seed: int = 0, every: int = 0, **options: Any) -> Path:
    """The folder of a run, as `tsallax train` leaves it."""
    folder.mkdir(parents=True)
    lines = {**OPTIONS, "seed": seed, "episodes": len(returns), **options}
    text = "".join(f"{key}: {yaml_text.scalar(value)}\n" for key, value in lines.items())
    (folder / "config.yaml").write_text(text)
    logs.Logs(folder, history(returns, every), tensorboard=False).close()
    return folder


def one(*folders: Path) -> learning_curves.Group:
    (group,) = learning_curves.group(learning_curves.find(folders))
    return group


def test_logs_hold_every_row_once_while_a_history_grows(tmp_path: Path):
    values = np.random.default_rng(0).normal(size=9)
    with logs.Logs(tmp_path, history(values[:2], 3), tensorboard=False) as log:
        for n in (2, 5, 5, 9):
            log.add(history(values[:n], 3))
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
    logs.Logs(tmp_path, history(values), tensorboard=False).close()
    with open(tmp_path / logs.EPISODES, "a") as file:
        file.write("10,500,9.0,50\n11,55")
    logs.Logs(tmp_path, history(values[:4]), tensorboard=False).close()
    text = (tmp_path / logs.EPISODES).read_text()
    assert text == "episode,step,return,length\n" + "".join(
        f"{i + 1},{50 * (i + 1)},{float(i)},50\n" for i in range(4)
    )


def test_a_history_read_from_a_file_is_written_like_the_one_in_memory(tmp_path: Path):
    grown = history([0.1, 1e-7, -1e22], 1)
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


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), st.integers(1, 40))
def test_smoothing_is_the_mean_of_the_last_episodes(values: list[float], window: int):
    found = learning_curves.smoothed(np.array(values), window)
    expected = [np.mean(values[max(0, i + 1 - window) : i + 1]) for i in range(len(values))]
    assert found == pytest.approx(np.array(expected), abs=1e-9)


def test_the_interval_is_that_of_all_resamples_of_the_seeds():
    samples = np.random.default_rng(1).normal(size=(5, 3))
    low, high = learning_curves.interval(samples)
    means = [samples[list(chosen)].mean(0) for chosen in itertools.product(range(5), repeat=5)]
    exact = np.percentile(means, [2.5, 97.5], axis=0)
    assert np.array([low, high]) == pytest.approx(exact, abs=0.08)
    assert (low < samples.mean(0)).all()
    assert (samples.mean(0) < high).all()


def test_one_seed_has_no_interval_and_equal_seeds_have_none_to_speak_of():
    assert np.isnan(learning_curves.interval(np.ones((1, 4)))).all()
    assert np.array(learning_curves.interval(np.ones((4, 2)))).tolist() == [[1, 1], [1, 1]]


def test_runs_that_differ_in_the_seed_make_one_curve_of_their_mean(tmp_path: Path):
    values = np.random.default_rng(2).normal(size=(3, 40))
    g = one(*(run(tmp_path / f"{s}", values[s], seed=s, every=10) for s in range(3)))
    curve = learning_curves.training_curve(g, window=1)
    assert curve.x.tolist() == [*range(1, 41)]
    assert curve.mean == pytest.approx(values.mean(0))
    assert (curve.low <= curve.mean).all()
    assert (curve.mean <= curve.high).all()
    points = learning_curves.evaluation_curve(g)
    assert points.x.tolist() == [10, 20, 30, 40]
    assert points.mean == pytest.approx(values.mean(0)[9::10] + 1)


def test_a_curve_ends_where_its_shortest_run_does_and_says_so(tmp_path: Path):
    a, b = run(tmp_path / "a", np.zeros(30)), run(tmp_path / "b", np.ones(20), seed=1)
    g = one(a, b)
    assert learning_curves.training_curve(g, 1).x[-1] == 20
    (remark,) = learning_curves.remarks([g])
    assert "up to episode 20 of 30" in remark
    assert str(b) in remark


def test_steps_line_up_runs_whose_episodes_have_other_lengths(tmp_path: Path):
    folders = [run(tmp_path / "a", np.arange(40.0)), run(tmp_path / "b", np.arange(20.0), seed=1)]
    logs.Logs(folders[1], history(np.arange(20.0), length=100), tensorboard=False).close()
    curve = learning_curves.training_curve(one(*folders), 1, by="steps")
    assert (curve.x[0], curve.x[-1]) == (100, 2000)
    first, second = curve.x // 50 - 1, curve.x // 100 - 1
    assert curve.mean == pytest.approx((first + second) / 2)


def test_long_runs_are_drawn_at_some_of_their_episodes(tmp_path: Path):
    values = np.arange(5000.0)
    curve = learning_curves.training_curve(one(run(tmp_path / "a", values)), 1)
    assert len(curve.x) == learning_curves.POINTS
    assert curve.mean.tolist() == (curve.x - 1).tolist()
    assert curve.x[-1] == 5000


def test_curves_are_named_by_what_tells_them_apart(tmp_path: Path):
    for s in (0, 1):
        run(tmp_path / f"sparse{s}", np.zeros(5), seed=s, eval_every=s + 1)
        run(tmp_path / f"soft{s}", np.zeros(5), seed=s, explore="soft", alpha=0.01)
    run(tmp_path / "z-other", np.zeros(5), env="CartPole-v1")
    run(tmp_path / "z-ddpg", np.zeros(5), algorithm="ddpg", tau=0.1)
    groups = learning_curves.group(learning_curves.find([tmp_path]))
    assert {(g.label, g.environment, len(g.runs)) for g in groups} == {
        ("algorithm deep_q, explore soft, alpha 0.01", "Reacher-v5", 2),
        ("algorithm deep_q, explore sparse, alpha 0.1", "Reacher-v5", 2),
        ("algorithm ddpg, explore sparse, alpha 0.1", "Reacher-v5", 1),
        ("explore sparse, alpha 0.1", "CartPole-v1", 1),
    }


def test_the_same_run_twice_is_refused_since_it_would_narrow_the_interval(tmp_path: Path):
    folders = [run(tmp_path / "a", np.zeros(5)), run(tmp_path / "b", np.zeros(9), episodes=9)]
    with pytest.raises(InvalidInput, match=r"a and .*b: the same configuration and seed"):
        learning_curves.group(learning_curves.find(folders))
    assert len(learning_curves.find([folders[0], folders[0], tmp_path / "." / "a"])) == 1


def test_a_figure_has_a_panel_for_each_environment_and_a_band_for_several_seeds(tmp_path: Path):
    rng = np.random.default_rng(3)
    for s in range(3):
        run(tmp_path / f"r{s}", rng.normal(size=50), seed=s, every=10)
    run(tmp_path / "c", rng.normal(size=30), env="CartPole-v1")
    figure = curve_figure.draw(learning_curves.group(learning_curves.find([tmp_path])))
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert {*panels} == {"Reacher-v5", "CartPole-v1"}
    reacher, cart = panels["Reacher-v5"], panels["CartPole-v1"]
    assert len(reacher.collections) > len(cart.collections)
    assert "95% interval over seeds" in reacher.get_ylabel()
    assert "interval" not in cart.get_ylabel()
    assert "mean of 5 episodes" in reacher.get_ylabel()
    assert "mean of 2 episodes" in cart.get_ylabel()
    words = [text.get_text() for text in reacher.get_legend().get_texts()]
    assert words == ["explore sparse, alpha 0.1 (3 seeds)", "evaluation of the greedy policy"]


@pytest.mark.parametrize(
    ("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_plot_writes_the_picture_and_prints_the_last_returns(tmp_path: Path, capsys, kind, start):
    for s in (0, 1):
        run(tmp_path / "runs" / f"{s}", np.full(20, float(s)), seed=s, every=5)
    target = tmp_path / f"curves.{kind}"
    assert app.run(["plot", str(tmp_path / "runs"), "--out", str(target), "--x", "steps"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert target.read_bytes().startswith(start)
    head, row = (line.split("  ") for line in out.splitlines()[:2])
    assert head[0] == "configuration"
    assert [word.strip() for word in row if word.strip()] == [
        "explore sparse, alpha 0.1", "Reacher-v5", "2", "20", "0.5", "0 to 1",
    ]  # fmt: skip
    assert out.endswith(f"The curves are in {target}\n")


def test_a_run_that_has_just_begun_can_be_plotted(tmp_path: Path, capsys):
    folder = run(tmp_path / "a", [])
    assert app.run(["plot", str(folder), "--out", str(tmp_path / "a.png")]) == 0
    assert "no episode has ended yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("FOLDER/absent", "absent: no such folder"),
        ("FOLDER/empty", "empty: holds no run of tsallax train"),
        ("FOLDER/a --out FOLDER/x.bmp", "ends in .png, .svg, .pdf"),
        ("FOLDER/a --out FOLDER/no/x.png", "there is no folder"),
        ("FOLDER/a --x time", "--x time: choose from episodes, steps"),
        ("FOLDER/a --window 0", "--window 0: must be at least 1"),
        ("", "see tsallax plot --help"),
    ],
)
def test_what_cannot_be_plotted_is_one_line(tmp_path: Path, capsys, words, message):
    run(tmp_path / "a", np.zeros(5))
    (tmp_path / "empty").mkdir()
    assert app.run(["plot", *words.replace("FOLDER", str(tmp_path)).split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("tsallax: error: ")
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "empty"]
