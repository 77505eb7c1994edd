"""Charts of the page: their data for the script, and the ends of their lines for everybody."""

import json
import re

import pytest

from page_results import LABELS, PANELS, curves, series
from refusals import refused
from tsallax.paper.page.html_chart import render_chart


def test_a_chart_has_its_data_and_the_ends_of_its_lines():
    chart = curves(7) | {"x_label": "</script>"}
    chart["series"][0]["y"][-1] = float("nan")
    text = render_chart(chart, "file")
    found = re.search(r'<script type="application/json">(.*?)</script>', text, re.S)
    data = json.loads(found[1])
    assert [data["x"], data["y"]] == ["</script>", "return"], "which ends no script"
    assert [(s["panel"], s["label"]) for s in data["series"]] == [
        (panel, label) for panel in PANELS for label in LABELS
    ]
    assert data["series"][0]["y"][-1] is None
    assert data["series"][0]["groups"] == [
        ["exploration", "sparse"], ["update", "sparse"], ["alpha", "1"]
    ]  # fmt: skip
    last = chart["series"][1]["y"][-1]
    ends = [f"{x:.4g}".replace("-", "−") for x in (last, last - 0.5, last + 0.5)]
    cell = f"{ends[0]} [{ends[1]}, {ends[2]}]"
    assert cell in re.sub("<.*?>", "", text)
    assert "<noscript>" in text


@pytest.mark.parametrize(
    "change", [{"y": ["a", "b", "c"]}, {"low": [1]}, {"y": [10**400]}, {"x": [None] * 3}], ids=str
)
def test_a_damaged_chart_is_refused_with_its_file(change):
    chart = curves(3) | {"series": [series(PANELS[0], LABELS[0], 3, **change)]}
    with refused("the-file"):
        render_chart(chart, "the-file")


def test_a_chart_without_lines_is_left_out():
    assert render_chart(curves(3) | {"series": []}, "file") == ""
