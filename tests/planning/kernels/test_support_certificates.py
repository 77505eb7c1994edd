"""Certificates of the support for rows whose answer is known by hand."""

import numpy as np
import pytest

from tsallax.planning.kernels.support_certificates import certify_support


def verdicts(low, high, alpha, q):
    """What bounds on the action values of one state prove."""
    n = len(low)
    pointer, found = np.array([0, n], np.uint32), np.zeros(n, np.int8)
    certify_support(pointer, alpha, q, n, np.array(low), np.array(high), found)
    return found.tolist()


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ([2.0, 1.0, 0.0], [2.0, 1.0, 0.0], [1, -1, -1]),
        ([2.0, 1.0, 0.0], [2.5, 2.1, 0.5], [0, 0, -1]),
        ([1.0, 1.0], [1.0, 1.0], [1, 1]),
        ([3.0], [4.0], [1]),
    ],
)
def test_hard_supports_are_the_best_actions(low, high, expected):
    assert verdicts(low, high, None, None) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ([1.0, 0.8, -1.0], [1.0, 0.8, -1.0], [1, 1, -1]),
        ([1.0, 0.0], [1.0, 0.0], [1, -1]),
        ([1.0, 0.45], [1.05, 0.55], [1, 0]),
        ([3.0], [4.0], [1]),
    ],
)
def test_sparse_supports_end_at_the_threshold(low, high, expected):
    """With alpha = 1/2 and two actions, the threshold is 1/2 below the better one."""
    assert verdicts(low, high, 0.5, None) == expected
    if len(low) != 2 or 0.45 not in low:
        assert verdicts(low, high, 0.5, 2.0) == expected


def test_supports_of_a_larger_index_are_smaller():
    low = high = [1.0, 0.7]
    assert verdicts(low, high, 0.5, 1.5) == [1, 1]
    assert verdicts(low, high, 0.5, 3.0) == [1, -1]
