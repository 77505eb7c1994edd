"""Refusals of input that cannot be used."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

import pytest

from tsallax.errors import InvalidInput


@contextmanager
def refused(*words: str, source: str | PathLike[str] | None = None) -> Iterator[None]:
    """Inside, `InvalidInput` is raised: one line with these words, about this source."""
    with pytest.raises(InvalidInput) as caught:
        yield
    text = str(caught.value)
    assert "\n" not in text
    assert [word for word in words if word not in text] == [], text
    assert source is None or caught.value.source == str(source)
