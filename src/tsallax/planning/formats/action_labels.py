"""Actions of choices that a text file labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tsallax.errors import InvalidInput
from tsallax.planning.formats.explicit_model import FEW_ACTIONS


def actions_of_labels(
    label_of: NDArray[np.int64],
    labels: Sequence[bytes],
    unlabelled: bytes = b"",
    names: Sequence[str] | None = None,
) -> tuple[NDArray[np.int64] | None, list[str] | None]:
    """The action of each choice and the names of the actions.

    Labels that are small numbers are the actions themselves; other labels
    name the actions, which are numbered as they appear in `names` or else in the file. Without
    labels the action of a choice is its position in the state, given here as None.

    >>> actions_of_labels(np.array([0, 1, 0]), [b"run", b"wait"])
    (array([0, 1, 0]), ['run', 'wait'])
    >>> actions_of_labels(np.array([0, 1, 0]), [b"2", b"0"])
    (array([2, 0, 2]), None)
    """
    if not labels or list(labels) == [unlabelled]:
        return None, None
    if names is not None:
        index = {name.encode(): i for i, name in enumerate(names)}
        numbers = [index.get(label, _number(label, len(names))) for label in labels]
        if None in numbers:
            label = labels[numbers.index(None)]
            raise InvalidInput(f"action {label[:60]!r} is not among the names of the actions")
        return np.array(numbers, np.int64)[label_of], list(names)
    numbers = [_number(label, max(len(label_of), FEW_ACTIONS)) for label in labels]
    if None not in numbers:
        return np.array(numbers, np.int64)[label_of], None
    try:
        texts = [label.decode() if label != unlabelled else "unnamed" for label in labels]
    except UnicodeDecodeError:
        raise InvalidInput("the label of an action is not UTF-8") from None
    kinds: dict[str, int] = {}
    same = np.array([kinds.setdefault(text, len(kinds)) for text in texts], np.int64)
    return same[label_of], list(kinds)


def _number(label: bytes, below: int) -> int | None:
    """A label as the number of an action."""
    plain = label.isdigit() and len(label) < 19 and label in (b"0", label.lstrip(b"0"))
    return int(label) if plain and int(label) < below else None
