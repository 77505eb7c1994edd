"""Figures in a dark page have its colours."""

from matplotlib.figure import Figure

from tsallax.paper.page.dark_figure import follow_scheme


def test_only_a_style_is_added():
    svg = '<?xml version="1.0"?>\n<svg width="9pt">\n<g style="fill: #000000"/></svg>'
    changed = follow_scheme(svg)
    before, _, rest = changed.partition("<style>")
    assert before + rest.partition("</style>")[2] == svg
    assert follow_scheme("no picture") == "no picture"


def test_the_colours_on_the_screen_follow(browser, tmp_path):
    figure = Figure(figsize=(1, 1))
    figure.savefig(tmp_path / "figure.svg")
    file = tmp_path / "changed.svg"
    file.write_text(follow_scheme((tmp_path / "figure.svg").read_text()))
    for scheme, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(15, 20, 25)")):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(file.as_uri())
        shown = "getComputedStyle(document.querySelector('#patch_1 path')).fill"
        assert page.evaluate(shown) == colour
        context.close()
