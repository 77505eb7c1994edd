"""The figure of learning curves: panels, bands and their labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from made_up_runs import made_up_run
from refusals import refused
from tsallax.runs import curve_figure, learning_curves


def drawn(folder: Path):
    return curve_figure.draw(learning_curves.group(learning_curves.find([folder])))


def test_each_environment_has_a_panel_and_several_seeds_a_band(tmp_path: Path):
    rng = np.random.default_rng(3)
    for s in range(3):
        made_up_run(tmp_path / f"r{s}", rng.normal(size=50), seed=s, every=10)
    made_up_run(tmp_path / "c", rng.normal(size=30), env="CartPole-v1")
    panels = {axes.get_title(loc="left"): axes for axes in drawn(tmp_path).axes}
    assert {*panels} == {"Reacher-v5", "CartPole-v1"}
    reacher, cart = panels["Reacher-v5"], panels["CartPole-v1"]
    assert len(reacher.collections) > len(cart.collections)
    assert "mean of 5 episodes" in reacher.get_ylabel()
    assert "mean of 2 episodes" in cart.get_ylabel()
    texts = [text.get_text() for text in reacher.get_legend().get_texts()]
    assert "range of 3 runs" in texts[0]
    assert len(texts) == 2


def test_a_run_without_episodes_is_drawn_and_a_file_that_cannot_be_written_refused(tmp_path: Path):
    """That the suffix names the format is tested with the command."""
    made_up_run(tmp_path / "a", [])
    figure = drawn(tmp_path)
    curve_figure.save(figure, tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").read_bytes().startswith(b"<?xml")
    with refused(source=tmp_path / "absent" / "curves.png"):
        curve_figure.save(figure, tmp_path / "absent" / "curves.png")
