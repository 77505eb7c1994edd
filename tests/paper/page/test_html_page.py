"""The page as text: whole, safe, and made from all results that a folder holds."""

import json
import re
import tomllib
from fnmatch import fnmatch
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from page_results import EVIL, curves, write, write_hostile
from refusals import refused
from tsallax.paper import page
from tsallax.paper.experiments import EXPERIMENTS
from tsallax.paper.report import write_page
from tsallax.web.document import asset

SOURCE = Path(page.__file__).parents[2]
VOID = {"meta", "link", "img", "br", "wbr", "input"}


class Tree(HTMLParser):
    """The tags of a page with their attributes, its text, and whether everything is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.open, self.scripts = [], "", [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        else:
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def made(folder):
    """The page of a folder, as text and parsed."""
    text = write_page(folder).read_text(encoding="utf-8")
    return text, Tree(text)


def test_every_known_result_has_its_section_in_order(tmp_path):
    order = list(EXPERIMENTS)
    for name in (*sorted(order, reverse=True), "other"):
        write(tmp_path, name)
    _, tree = made(tmp_path)
    assert [given["id"] for given in tree.all("section")] == order
    menu = [given["href"] for given in tree.all("a") if given["href"].startswith("#")]
    assert menu == ["#results", *(f"#{name}" for name in order)]
    assert "enclosure" in tree.text, "a note on planning, where there is any"
    write(tmp_path / "learning")
    assert "enclosure" not in made(tmp_path / "learning")[1].text


def test_an_explorer_in_the_folder_is_linked(tmp_path):
    write(tmp_path, "figure1")
    assert "explorer.html" not in made(tmp_path)[0]
    (tmp_path / "explorer.html").write_text("")
    assert {"href": "explorer.html"} in made(tmp_path)[1].all("a")


def test_records_of_before_charts_are_shown(tmp_path):
    record = write(tmp_path, "figure1")
    for key in ("charts", "hardware"):
        del record[key]
    (tmp_path / "figure1.json").write_text(json.dumps(record), encoding="utf-8")
    _, tree = made(tmp_path)
    assert "A CPU, 4 cores" in tree.text


def test_a_section_says_how_to_run_it_again(tmp_path):
    write(tmp_path, "figure1", quick=True)
    versions = {"jax": ["0.10", "0.11"]}
    write(tmp_path, "reacher", hardware="one GPU", parameters={"versions": versions})
    text, tree = made(tmp_path)
    assert re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", text) == [
        "tsallax reproduce figure1 --quick",
        "tsallax reproduce reacher",
    ]
    ran = "on one GPU; JAX 0.10 and 0.11"
    for words in (ran, "12.3 s on A CPU, 4 cores", "10:00:00 UTC", "3.12.1"):
        assert words in tree.text
    for link in (given["href"] for given in tree.all("a")):
        assert link.startswith("#") or (tmp_path / link).is_file()


def test_headings_are_in_order_and_ids_are_unique(tmp_path):
    write(tmp_path, "figure1")
    write(tmp_path, "reacher", chart=curves(5))
    _, tree = made(tmp_path)
    levels = [int(tag[1]) for tag, _ in tree.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = [given["id"] for _, given in tree.tags if "id" in given]
    assert len(ids) == len(set(ids))


def test_hostile_strings_stay_text(tmp_path):
    write_hostile(tmp_path)
    text, tree = made(tmp_path)
    kinds = {tag for tag, _ in tree.tags}
    assert not kinds & {"svg", "b", "i", "iframe", "object"}
    assert not [key for _, given in tree.tags for key in given if key.startswith("on")]
    assert [given["src"][:15] for given in tree.all("img")] == ["data:image/svg+"]
    assert len(tree.scripts) == 2
    assert "<" not in tree.scripts[0]
    labels = [line["label"] for line in json.loads(tree.scripts[0])["series"]]
    assert labels == [f"line {bad}" for bad in EVIL]
    for bad in EVIL[:4]:
        assert tree.text.count(bad) >= 5
    command = re.search(r"<pre[^>]*><code>(.*?)</code></pre>", text)[1]
    assert command == "tsallax reproduce reacher"


def test_a_page_loads_nothing_and_its_scripts_make_no_html(tmp_path):
    """What its policy allows is tested beside `web/document.py`."""
    write(tmp_path, chart=curves(3))
    text, _ = made(tmp_path)
    assert not re.search(r'style=|href="https?:|src="https?:', text)
    for file in (*SOURCE.rglob("*.js"), *SOURCE.rglob("*.css")):
        words = file.read_text(encoding="utf-8")
        assert not re.search(r"</|innerHTML|outerHTML|eval\(|fetch\(|url\(|@import", words), file


def test_styles_and_scripts_are_installed_with_the_package():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["tsallax"]
    assets = [path for kind in ("css", "js", "csv") for path in SOURCE.rglob(f"*.{kind}")]
    assert len(assets) >= 4
    for path in assets:
        name = path.relative_to(SOURCE).as_posix()
        assert any(fnmatch(name, pattern) for pattern in patterns)


def contrast(a, b):
    """The contrast ratio of two colours, as WCAG 2 defines it."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_colours_have_the_contrast_of_level_aa():
    style = asset("tsallax.web", "page.css")
    light, dark = (
        dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.S)
    )
    assert set(light) == set(dark)
    for colours in (light, dark):
        for name in ("ink", "soft", "link", "bad"):
            assert contrast(colours[name], colours["paper"]) >= 4.5
            assert contrast(colours[name], colours["card"]) >= 4.5
        for name in ("edge", *(f"c{i}" for i in range(10))):
            assert contrast(colours[name], colours["paper"]) >= 3
        assert len({colours[f"c{i}"] for i in range(10)}) == 10


@pytest.mark.parametrize(
    ("file", "text", "word"),
    [
        ("reacher.json", None, "no results"),
        ("reacher.json", "{", "reacher.json"),
        ("reacher.json", "[]", "reacher.json"),
        ("reacher.json", '{"name": "<b>"}', "'<b>'"),
        ("reacher-returns.csv", None, "reacher-returns.csv"),
        ("reacher-returns.csv", "a,b\n1\n", "reacher-returns.csv"),
        ("reacher-curves.chart.json", None, "reacher-curves.chart.json"),
        ("reacher-curves.chart.json", "{broken", "reacher-curves.chart.json"),
        ("reacher-curves.chart.json", "{}", "reacher-curves.chart.json"),
    ],
)
def test_damaged_results_are_refused_in_one_line_and_the_old_page_stays(tmp_path, file, text, word):
    write(tmp_path, chart=curves(3))
    (tmp_path / "index.html").write_text("old")
    (tmp_path / file).unlink()
    if text is not None:
        (tmp_path / file).write_text(text)
    with refused(word, str(tmp_path)):
        write_page(tmp_path)
    assert (tmp_path / "index.html").read_text() == "old"
