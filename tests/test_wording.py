"""Counts in messages, and aligned columns."""

import pytest

from tsallax.wording import aligned, plural


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 states"), (1, "1 state"), (2, "2 states"), (1200, "1,200 states")],
)
def test_only_one_is_singular(count, expected):
    assert plural(count, "state") == expected
    assert plural(count, "state", separator="") == expected.replace(",", "")


def test_columns_are_aligned_without_trailing_spaces():
    rows = [("a", "long cell", "x"), ("longer", "b", "")]
    assert aligned(rows).splitlines() == ["a       long cell  x", "longer  b"]
    assert aligned({"a": "1", "bcd": "two words"}.items()) == "a    1\nbcd  two words"
