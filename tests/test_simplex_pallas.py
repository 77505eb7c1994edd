"""The GPU kernels, interpreted on the CPU, agree with the regularisers."""

import pytest

from simplex_pallas_cases import CASES, errors, mapped_error


@pytest.mark.parametrize(("name", "regularizer"), CASES)
def test_kernels_agree_with_the_regularizers(name, regularizer):
    found = errors(name, regularizer, interpret=True)
    assert max(found.values()) <= 1, found


def test_kernels_mapped_over_regularizers_and_coefficients_are_the_single_ones():
    assert mapped_error(interpret=True) == 0
