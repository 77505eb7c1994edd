"""The GPU kernels, interpreted on the CPU, agree with the regularisers."""

import pytest

from simplex_pallas_cases import CASES, errors, mapped_error

SLOW = (
    "a power of two of actions",
    "one action more than a power of two",
    "a long row to be filled up, equal values",
)
"""Cases of which the longer rows are examples, too; each shape is a compilation."""


@pytest.mark.parametrize(
    ("name", "regularizer"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case[0] in SLOW)) for case in CASES],
)
def test_kernels_agree_with_the_regularizers(name, regularizer):
    found = errors(name, regularizer, interpret=True)
    assert max(found.values()) <= 1, found


def test_kernels_mapped_over_regularizers_and_coefficients_are_the_single_ones():
    assert mapped_error(interpret=True) == 0
