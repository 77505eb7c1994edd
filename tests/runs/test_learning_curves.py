"""Learning curves: the mean over seeds, grouped and labelled by what differs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_up_runs import made_up_history, made_up_run
from refusals import refused
from tsallax.errors import InvalidInput
from tsallax.runs import learning_curves, logs


def one(*folders: Path) -> learning_curves.Group:
    (group,) = learning_curves.group(learning_curves.find(folders))
    return group


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), st.integers(1, 40))
def test_smoothing_is_the_mean_of_the_last_episodes(values: list[float], window: int):
    found = learning_curves.smoothed(np.array(values), window)
    expected = [np.mean(values[max(0, i + 1 - window) : i + 1]) for i in range(len(values))]
    assert found == pytest.approx(np.array(expected), abs=1e-9)


def test_runs_that_differ_in_the_seed_make_one_curve_of_their_mean(tmp_path: Path):
    values = np.random.default_rng(2).normal(size=(3, 40))
    g = one(*(made_up_run(tmp_path / f"{s}", values[s], seed=s, every=10) for s in range(3)))
    curve = learning_curves.training_curve(g, window=1)
    assert curve.x.tolist() == [*range(1, 41)]
    assert curve.mean == pytest.approx(values.mean(0))
    points = learning_curves.evaluation_curve(g)
    assert points.x.tolist() == [10, 20, 30, 40]
    assert points.mean == pytest.approx(values.mean(0)[9::10] + 1)


def test_a_curve_ends_where_its_shortest_run_does_and_says_so(tmp_path: Path):
    b = made_up_run(tmp_path / "b", np.ones(20), seed=1)
    g = one(made_up_run(tmp_path / "a", np.zeros(30)), b)
    assert learning_curves.training_curve(g, 1).x[-1] == 20
    (remark,) = learning_curves.remarks([g])
    assert "up to episode 20 of 30" in remark
    assert str(b) in remark


def test_steps_line_up_runs_whose_episodes_have_other_lengths(tmp_path: Path):
    a, b = (made_up_run(tmp_path / f"{s}", np.arange(40.0 - 20 * s), seed=s) for s in (0, 1))
    logs.Logs(b, made_up_history(np.arange(20.0), length=100), tensorboard=False).close()
    curve = learning_curves.training_curve(one(a, b), 1, by="steps")
    assert (curve.x[0], curve.x[-1]) == (100, 2000)
    first, second = curve.x // 50 - 1, curve.x // 100 - 1
    assert curve.mean == pytest.approx((first + second) / 2)


def test_long_runs_are_drawn_at_some_of_their_episodes(tmp_path: Path):
    values = np.arange(5000.0)
    curve = learning_curves.training_curve(one(made_up_run(tmp_path / "a", values)), 1)
    assert len(curve.x) == learning_curves.POINTS
    assert curve.mean.tolist() == (curve.x - 1).tolist()
    assert curve.x[-1] == 5000


def test_curves_are_named_by_what_tells_them_apart(tmp_path: Path):
    for s in (0, 1):
        made_up_run(tmp_path / f"sparse{s}", np.zeros(5), seed=s, eval_every=s + 1)
        made_up_run(tmp_path / f"soft{s}", np.zeros(5), seed=s, explore="soft", alpha=0.01)
    made_up_run(tmp_path / "z-other", np.zeros(5), env="CartPole-v1")
    made_up_run(tmp_path / "z-ddpg", np.zeros(5), algorithm="ddpg", tau=0.1)
    groups = learning_curves.group(learning_curves.find([tmp_path]))
    assert {(g.label, g.environment, len(g.runs)) for g in groups} == {
        ("algorithm deep_q, explore soft, alpha 0.01", "Reacher-v5", 2),
        ("algorithm deep_q, explore sparse, alpha 0.1", "Reacher-v5", 2),
        ("algorithm ddpg, explore sparse, alpha 0.1", "Reacher-v5", 1),
        ("explore sparse, alpha 0.1", "CartPole-v1", 1),
    }


def test_runs_that_differ_in_many_options_are_named_by_their_folders(tmp_path: Path):
    """A preset and the defaults differ in a dozen options, which left no room for the curves."""
    plain = {"double": False, "n_step": 1, "tau": None, "priority": 0.4, "gamma": 0.99}
    other = {"double": True, "n_step": 3, "tau": 0.005, "priority": 0.0, "gamma": 0.98}
    for s in (0, 1):
        made_up_run(tmp_path / f"preset-{s}", np.zeros(5), seed=s, **other)
    made_up_run(tmp_path / "default", np.zeros(5), **plain)
    made_up_run(tmp_path / "more" / "default", np.zeros(5), **{**plain, "gamma": 0.5})
    groups = learning_curves.group(learning_curves.find([tmp_path, tmp_path / "more"]))
    assert [g.label for g in groups] == [
        str(tmp_path / "default"), "preset", str(tmp_path / "more" / "default"),
    ]  # fmt: skip


def test_the_same_run_twice_is_refused_since_it_would_narrow_the_interval(tmp_path: Path):
    a, b = (made_up_run(tmp_path / "ab"[n], np.zeros(5 + n), episodes=5 + n) for n in (0, 1))
    with pytest.raises(InvalidInput, match=r"a and .*b: the same configuration and seed"):
        learning_curves.group(learning_curves.find([a, b]))
    assert len(learning_curves.find([a, a, tmp_path / "." / "a"])) == 1


@pytest.mark.parametrize(("seeds", "label"), [(2, "range of 2 runs"), (8, "95% interval")])
def test_only_six_seeds_or_more_have_a_95_percent_interval(seeds: int, label: str, tmp_path: Path):
    """The ends for fewer are those of the range."""
    for s in range(seeds):
        made_up_run(tmp_path / f"{s}", np.full(20, 1.0 * s), seed=s, every=5)
    groups = learning_curves.group(learning_curves.find([tmp_path]))
    for curve in (
        learning_curves.training_curve(groups[0], 1),
        learning_curves.evaluation_curve(groups[0]),
    ):
        assert (curve.high - curve.low == seeds - 1).all() == (seeds < 6)
    _, row = learning_curves.table(groups)
    assert row[2:5] == (f"{seeds}", "20", f"{(seeds - 1) / 2:g}")
    assert label in row[5]


def test_a_run_without_episodes_is_remarked_and_has_no_curve(tmp_path: Path):
    group = one(made_up_run(tmp_path / "a", []))
    assert len(learning_curves.training_curve(group, 1).x) == 0
    (remark,) = learning_curves.remarks([group])
    assert str(tmp_path / "a") in remark
    assert learning_curves.table([group])[1][3:] == ("0", "-", "-")


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_folders_without_runs_are_refused(name: str, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with refused(name):
        learning_curves.find([tmp_path / name])
