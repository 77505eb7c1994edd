"""The style of figures: restored afterwards, and the same file for the same figure."""

import io

import matplotlib
from matplotlib.figure import Figure

from tsallax import plotting


def svg() -> bytes:
    with plotting.paper_style():
        figure = Figure(figsize=(2, 1))
        axes = figure.subplots()
        axes.plot([0, 1], [1, 0])
        plotting.letter(axes, "a", x=-0.1)
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def test_the_same_figure_gives_the_same_file_and_settings_are_restored():
    before = matplotlib.rcParams["font.size"]
    assert svg() == svg()
    assert matplotlib.rcParams["font.size"] == before != plotting.SETTINGS["font.size"]
