"""Matrices of probabilities: a cell and its mirror add up to one."""

import numpy as np
from matplotlib.colors import to_hex

from tsallax.paper.page.dark_figure import DARK
from tsallax.paper.sweep.sweep_tasks import REACHER
from tsallax.paper.tables.cells import gather
from tsallax.paper.tables.improvement import all_improvements
from tsallax.paper.tables.improvement_figure import draw_improvements


def test_every_number_of_actions_has_a_matrix_for_each_factor_and_measure(whole):
    data = gather(REACHER, [r for r in whole if r.actions != 961])
    found = all_improvements(data)
    picture = draw_improvements(data, found)
    images = [axes.images[0] for axes in picture.figure.axes if axes.images]
    assert len(images) == 4 * 3
    for image in images:
        values = np.ma.filled(image.get_array(), np.nan)
        off = ~np.eye(3, dtype=bool)
        np.testing.assert_allclose((values + values.T)[off], 1)
    first = images[0].get_array()
    assert first[0, 1] == found[0].chance.value
    assert str(len(found)) in picture.alt
    labels = [
        text for image in images for text in image.axes.texts if text.get_text()[-1:].isdigit()
    ]
    assert labels
    inks = {to_hex(label.get_color()) for label in labels}
    assert not inks & set(DARK), "labels on cells keep their colours in a dark page"
