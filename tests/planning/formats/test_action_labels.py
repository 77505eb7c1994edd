"""Labels of choices become actions with or without names."""

import numpy as np
import pytest

from tsallax.errors import InvalidInput
from tsallax.planning.formats.action_labels import actions_of_labels


def test_choices_without_labels_have_no_actions():
    assert actions_of_labels(np.zeros(3, np.int64), []) == (None, None)
    assert actions_of_labels(np.zeros(3, np.int64), [b"__NOLABEL__"], b"__NOLABEL__") == (
        None,
        None,
    )


def test_numbers_that_are_too_large_or_not_canonical_are_names():
    action, names = actions_of_labels(np.array([0, 1]), [b"0", b"1000"])
    assert names == ["0", "1000"]
    assert action is not None
    assert action.tolist() == [0, 1]
    assert actions_of_labels(np.array([0, 1]), [b"0", b"01"])[1] == ["0", "01"]


def test_given_names_decide_the_order():
    action, names = actions_of_labels(np.array([0, 1]), [b"z", b"x"], b"", ["x", "y", "z"])
    assert names == ["x", "y", "z"]
    assert action is not None
    assert action.tolist() == [2, 0]
    with pytest.raises(InvalidInput, match="is not among the names"):
        actions_of_labels(np.array([0]), [b"w"], b"", ["x"])


def test_some_choices_without_a_label_are_one_unnamed_action():
    assert actions_of_labels(np.array([0, 1]), [b"a", b""])[1] == ["a", "unnamed"]
    with pytest.raises(InvalidInput, match="not UTF-8"):
        actions_of_labels(np.array([0]), [b"\xff"])
