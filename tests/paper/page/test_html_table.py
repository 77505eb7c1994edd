"""Tables of the page: columns of numbers are distinguished from words, numbers are formatted."""

import re

import pytest

from tsallax.paper.page import html_table


def test_columns_of_numbers_are_distinguished_from_words():
    rows = [
        {"name": "a-1", "n": 3, "text": "4 and 49", "cell": "−4.1 [−4.2, −4.0]", "most": "1,200"},
        {"name": "b-2", "n": -1.5, "text": "4", "cell": "", "most": "not reached"},
        {"name": "c", "n": 0, "text": "5", "cell": "−5.0 [−6.0, −4.0]", "most": "7"},
    ]
    text = html_table.render_table(rows, "t")
    heads = re.findall(r'<th scope="col"([^>]*)>', text)
    assert ["number" in head for head in heads] == [False, True, False, True, True]
    assert "−4.1<small> [−4.2, −4.0]</small>" in text
    assert 'class="number"' not in html_table.render_table(rows, "t", words=True)
    assert html_table.render_table([], "t") == "<p>No rows.</p>"


@pytest.mark.parametrize(
    ("value", "text"),
    [(-3, "−3"), (9999, "9999"), (12345, "12,345"), (-0.25, "−0.25"), (1 / 3, "0.3333"),
     (123456.7, "123,500"), (-1.5e-9, "−1.5e−09"), (2e12, "2e+12"), (float("inf"), "inf")],
)  # fmt: skip
def test_numbers_are_formatted(value, text):
    assert html_table._number(value) == text
