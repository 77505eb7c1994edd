"""The style of figures: restored afterwards, reproducible files, colours that can be told apart."""

import io

import matplotlib
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from tsallax import plotting


def svg() -> bytes:
    with plotting.paper_style():
        figure = Figure(figsize=(2, 1))
        axes = figure.subplots()
        axes.plot([0, 1], [1, 0])
        plotting.letter(axes, "a")
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def test_the_same_figure_gives_the_same_file_and_settings_are_restored():
    before = matplotlib.rcParams["font.size"]
    assert svg() == svg()
    assert matplotlib.rcParams["font.size"] == before != plotting.SETTINGS["font.size"]


def test_sparse_and_soft_differ_in_hue_and_in_marker():
    assert set(plotting.COLOUR) == set(plotting.MARKER) == {"sparse", "soft"}
    (r, _, b), (red, _, blue) = (to_rgb(plotting.COLOUR[kind]) for kind in ("sparse", "soft"))
    assert b > r
    assert red > blue
    assert plotting.MARKER["sparse"] != plotting.MARKER["soft"]
