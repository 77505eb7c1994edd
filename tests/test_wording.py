"""Counts in messages."""

import pytest

from tsallax.wording import plural


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 states"), (1, "1 state"), (2, "2 states"), (1200, "1,200 states")],
)
def test_only_one_is_singular(count, expected):
    assert plural(count, "state") == expected
    assert plural(count, "state", separator="") == expected.replace(",", "")
